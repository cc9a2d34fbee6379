"""Experiments that measure on the fake cluster what choices in the contract cost. They have no verdicts."""
