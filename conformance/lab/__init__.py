"""Experiments: what a choice in the contract costs, measured on the fake cluster. They judge nobody."""
