"""Comparison of two sides by rounds of scale runs. The rounds are paired and interleaved, and the uncertainty is
given."""
