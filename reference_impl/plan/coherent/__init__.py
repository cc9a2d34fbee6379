"""Coherent updates: which pods each gang holds, and which members an update moves next (spec COH-030 to COH-273)."""
