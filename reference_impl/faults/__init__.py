"""Deliberate, named wrong behaviours that the suite must catch."""
