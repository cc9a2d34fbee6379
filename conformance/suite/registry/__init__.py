"""The registry: requirements, their basis, and the pages and commands that describe them. Needs no cluster."""
