"""Coherent updates: which gang holds which pods, and which members an update moves next (spec COH-030 to COH-273)."""
