"""Tests that the PodGangs of a set are found by their controller or their label."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove import labels
from conformance.grove.fields import uid
from conformance.testing import following
from tests.history.story import Story

SET, GANG = "s", "s-0"


@pytest.mark.parametrize(
    ("owner", "count"),
    (
        ({"controller": True}, 1),
        ({}, 1),
        (None, 1),
        ({"controller": True, "kind": "PodGangMap", "uid": "of a map"}, 1),
        ({"controller": True, "uid": "of an earlier set"}, 0),
    ),
)
def test_gangs_are_found_by_their_owners(owner: dict[str, Any] | None, count: int) -> None:
    story = Story()
    story.owned("podcliquesets", SET, None)
    reference = {"kind": "PodCliqueSet", "name": SET, "uid": uid(story.history.view().get("podcliquesets", SET))}
    references = [] if owner is None else [reference | owner]
    metadata = {"labels": {labels.PART_OF: SET}, "ownerReferences": references}
    story.record("podgangs", GANG, {"metadata": metadata})
    assert len(following.gangs_of(story.history.view(), SET)) == count
