"""Mutants that misbehave only when something fails, which `nemesis` has to find."""
