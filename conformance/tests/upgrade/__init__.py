"""The profile `upgrade`: another version of the operator takes over, and no pod is restarted."""
