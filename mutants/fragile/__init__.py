"""Mutants that misbehave only when something fails. `nemesis` must find them."""
