"""Implementations under test: one YAML descriptor each, and the drivers that start, stop and kill them."""
