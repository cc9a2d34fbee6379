"""Profile coherent."""
