"""Mutants that are right as long as nothing fails: for `nemesis`, which has to find them."""
