"""Coherent updates (GREP-393) as the suite reads and judges them; nothing here knows the reference."""
