"""Hashes of templates: the text that is hashed (`dump`, `quantity`), the hash (`fnv`), the canonical form
(`canonical`), the ways in which it has all been done (`schemes`), and which stored hashes are those of a present
template (`window`)."""
