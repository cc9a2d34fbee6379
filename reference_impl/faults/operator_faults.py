"""Faults of the operator."""
