"""Outcomes: the checks of a test, and the ledger of a run that keeps them."""
