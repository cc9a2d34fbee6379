"""Profile update: a changed template reaches the pods, with as little out of service as can be."""
