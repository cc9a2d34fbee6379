"""Experiments: the cost of choices in the contract, measured on the fake cluster. They have no verdicts."""
