"""Evidence of a failed test: failure bundles with a timeline as text and as a picture."""
