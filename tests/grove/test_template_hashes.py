"""Tests that the suite's own hashes equal the hashes that were recorded from upstream's operators."""

from __future__ import annotations

import pytest

from conformance.grove import template_hashes
from conformance.grove.template_hashes import HashScheme, NotReadable
from tests.reference import hash_vectors

VECTORS = {vector["name"]: vector for vector in hash_vectors.vectors()}
UNREADABLE = {name for name in VECTORS if name.startswith("quantities")} | {"pod-level-resources"}
"""Vectors with notations that the suite does not support, because no template of the suite has them."""


@pytest.mark.parametrize("name", sorted(VECTORS.keys() - UNREADABLE))
def test_recorded_hashes_are_reproduced(name: str) -> None:
    template = VECTORS[name]["template"]
    hashes = {}
    for library, form, clique in hash_vectors.expected(VECTORS[name]):
        scheme = HashScheme(library, form == "canonical")
        template_clique = next((candidate for candidate in template["cliques"] if candidate["name"] == clique), None)
        hashes[library, form, clique] = (
            template_hashes.of_clique(template_clique, template.get("priorityClassName") or "", scheme)
            if template_clique is not None
            else template_hashes.of_set(template, scheme)
        )
    assert hashes == hash_vectors.expected(VECTORS[name])


def test_a_quantity_that_the_suite_does_not_know_is_reported() -> None:
    template = VECTORS["quantities-big"]["template"]
    with pytest.raises(NotReadable, match="quantity"):
        template_hashes.of_set(template, template_hashes.CANONICAL[0])
