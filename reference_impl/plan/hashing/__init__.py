"""Hashes of templates: the text that is hashed (`dump`, `quantity`), the hash function (`fnv`), the canonical form
(`canonical`), the schemes in use (`schemes`), and the recognition of stored hashes (`window`)."""
