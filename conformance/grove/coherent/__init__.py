"""Coherent updates (GREP-393) as the suite reads and judges them. This code is independent of the reference."""
