"""Implementations under test: their YAML descriptors, and the drivers that start, stop and kill implementations."""
