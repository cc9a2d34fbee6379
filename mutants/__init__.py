"""Mutants: deliberate wrong behaviors of the reference implementation that the suite must catch.

`profiles/` contains the mutants, by the profile of the requirements that catch them; `variants/` contains differences
that the contract permits. Both are development tools: the reference loads them only on demand, through the entry points
`grove_reference.extensions` of pyproject.toml, and the wheel does not contain them. `prove` runs the suite against
both.
"""
