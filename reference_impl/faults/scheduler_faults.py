"""Faults of the gang scheduler."""
