"""Tests that the replacement of evicted pods is judged only if Kubernetes has evicted the pods."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.history.query import Unmet
from conformance.suite.outcomes.checks import Blocked
from conformance.tests.nodes import test_lost_nodes
from tests.history.story import Story

ENDING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


class RecordingWithoutEvictions:
    """A recording in which Kubernetes has evicted no pod."""

    def given(self, *steps: str) -> None:
        assert steps == (test_lost_nodes.EVICTION,)
        raise Blocked("the scene went on without the eviction", "circumstances")


def test_a_cluster_that_evicts_nothing_blocks() -> None:
    run: Any = RecordingWithoutEvictions()
    with pytest.raises(Blocked):
        test_lost_nodes.test_evicted_pods_are_replaced(run)


def test_evicted_pods_are_terminating_or_deleted() -> None:
    story = Story()
    for name in ("a", "b"):
        story.record("pods", name, {})
    evicted = test_lost_nodes._are_pods_evicted(["a", "b"])
    assert isinstance(evicted(story.history.view()), Unmet)
    story.record("pods", "a", ENDING)
    story.delete("pods", "b")
    assert evicted(story.history.view()) is True
