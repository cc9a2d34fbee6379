"""The profile `upgrade`: another version of the operator takes over, and nothing is restarted."""
