"""Comparison of two sides by rounds of scale runs: paired, interleaved, with their uncertainty."""
