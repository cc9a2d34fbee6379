"""Mutants by profile: each module registers its own mutants."""
