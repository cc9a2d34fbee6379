"""Startup order: the parents of each clique, and the start of its pods after the parents."""
