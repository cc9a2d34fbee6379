"""Runs on a cluster that the suite has not started: the claim, the objects that a run creates there, and KWOK's
stages."""
