"""Tests that the pods of a clique are found by their controller, owner or label."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove import labels
from conformance.grove.fields import uid
from conformance.history.view import View
from conformance.testing import predicates
from tests.history.story import Story

CLIQUE = "s-0-a"


def _view(*owners: dict[str, Any]) -> View:
    """Return a view of a clique and one pod with its label and these owners."""
    story = Story()
    story.owned("podcliques", CLIQUE, None)
    clique = uid(story.history.view().get("podcliques", CLIQUE))
    references = [{"kind": "PodClique", "name": CLIQUE, "uid": clique, **owner} for owner in owners]
    story.record("pods", "a1", {"metadata": {"labels": {labels.CLIQUE: CLIQUE}, "ownerReferences": references}})
    return story.history.view()


@pytest.mark.parametrize(
    ("owners", "count"),
    (
        ([{"controller": True}], 1),
        ([{}], 1),
        ([], 1),
        ([{"controller": True, "uid": "of an earlier clique"}], 0),
        ([{"uid": "of an earlier clique"}], 0),
        ([{"controller": True, "name": "s-0-b"}], 0),
        ([{"controller": True, "kind": "ReplicaSet"}], 0),
    ),
)
def test_pods_are_found_by_their_owners(owners: list[dict[str, Any]], count: int) -> None:
    assert len(predicates.pods_of(_view(*owners), CLIQUE)) == count
