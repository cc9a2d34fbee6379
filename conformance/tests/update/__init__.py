"""The profile `update`: a changed template reaches the pods, with as little disruption as possible."""
