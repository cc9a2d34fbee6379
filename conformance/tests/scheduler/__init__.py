"""A gang scheduler alone. The suite creates gangs and pods, and the oracle knows which outcomes are permitted."""
