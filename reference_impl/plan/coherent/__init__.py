"""Coherent updates: which gang holds which pods, and what an update moves next (spec COH-030 to COH-273)."""
