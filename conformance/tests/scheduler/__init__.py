"""A gang scheduler alone: gangs and pods made by hand, where the oracle knows what is permitted."""
