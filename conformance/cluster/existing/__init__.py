"""Runs on a cluster that they have not started: the claim, the objects that a run leaves there, and KWOK's stages."""
