"""Hashes of templates: the hashed text (`dump`, `quantity`), the hash function (`fnv`), the canonical form
(`canonical`), the schemes in use (`schemes`), and the recognition of stored hashes (`window`)."""
