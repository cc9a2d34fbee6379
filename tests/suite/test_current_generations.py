"""Tests of which PodGangMap entries must have the generation hash of the set after an update (MAP-042)."""

from __future__ import annotations

from conformance.history.query import Unmet
from conformance.tests.gang_maps.test_updated_sets import _are_hashes_current, _hashes_of_entries
from tests.history.story import Story

UNCHANGED_FIELDS: dict[str, object] = {"podCliques": {"a": 2}}


def answer(**fields: object) -> bool | Unmet:
    """Return the result of the predicate for a map in which an entry with these fields has an old generation hash."""
    story = Story()
    story.record("podcliquesets", "s", {"status": {"currentGenerationHash": "new"}})
    current = {"epoch": "1", "role": "Anchor", "podCliqueSetGenerationHash": "new", **UNCHANGED_FIELDS}
    old = {"epoch": "2", "role": "ScaleOut", "podCliqueSetGenerationHash": "old", **fields}
    story.record("podgangmaps", "s-0", {"spec": {"podCliqueSetReplicaIndex": 0, "entries": [current, old]}})
    return _are_hashes_current("s", _hashes_of_entries)(story.history.view())


def test_an_entry_that_holds_replicas_has_the_generation_of_the_set() -> None:
    assert isinstance(answer(pcsgReplicaIndices={"g": [2]}), Unmet)


def test_an_entry_without_members_may_have_an_old_generation() -> None:
    assert answer(pcsgReplicaIndices={"g": []}) is True
