"""Recorded hashes of upstream's operators, from `fixtures/hashes/vectors.json`.

Each list has one value for each version of the Kubernetes libraries. Releases write the `legacy` values, and upstream's
PR 566 wrote the `canonical` values.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from conformance import data


@cache
def document() -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads((data.folder("fixtures") / "hashes" / "vectors.json").read_bytes())
    return content


def vectors() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = document()["vectors"]
    return entries


def expected(vector: dict[str, Any]) -> dict[tuple[str, str, str], str]:
    """Return the hashes of a vector by library, form and clique. The generation hash has an empty clique name."""
    every = {**vector["cliques"], "": vector["generation"]}
    return {
        (library, form, name): hashes[form][number]
        for number, library in enumerate(document()["libraries"])
        for name, hashes in every.items()
        for form in ("legacy", "canonical")
    }
