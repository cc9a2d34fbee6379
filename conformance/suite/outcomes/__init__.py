"""Outcomes: the checks of a test, and the ledger of a run, which stores them."""
