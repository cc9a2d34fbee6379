"""Tests that, on an existing cluster, only objects that the run has created get the label of the run's objects."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from conformance.cluster import pace
from conformance.cluster.existing import helm_releases, leftovers, other_scheduler
from conformance.cluster.existing.leftovers import Leftover
from conformance.cluster.existing.marks import HELM_ANNOTATION, RUN_LABEL, with_run_label, with_run_label_if_new
from conformance.errors import HarnessError
from kube.client import Client
from kube.resource import NAMESPACES, NODES

QUEUE = {"kind": "Queue", "metadata": {"name": "q", "labels": {"app": "x"}}}


def test_the_label_is_added_to_existing_labels() -> None:
    assert with_run_label(QUEUE, "r1")["metadata"]["labels"] == {"app": "x", RUN_LABEL: "r1"}
    assert QUEUE["metadata"]["labels"] == {"app": "x"}, "the manifest itself is as it was"  # type: ignore[index]
    assert with_run_label(QUEUE, "") == QUEUE


@pytest.mark.parametrize(
    ("stored_object", "label"),
    [(None, "r1"), (QUEUE, None), (with_run_label(QUEUE, "r1"), "r1"), (with_run_label(QUEUE, "r0"), None)],
)
def test_only_objects_that_the_run_has_created_are_labeled(stored_object: Any, label: str | None) -> None:
    document = with_run_label_if_new(QUEUE, None if stored_object is None else orjson.dumps(stored_object), "r1")
    assert document["metadata"]["labels"].get(RUN_LABEL) == label


def test_leftover_objects_are_reported_in_one_line() -> None:
    left_objects = [
        Leftover(NODES, None, "n0", "r1"),
        Leftover(NODES, None, "n1", "r1"),
        Leftover(NAMESPACES, None, "a", "r0"),
    ]
    assert leftovers.describe(left_objects) == "1 namespaces, 2 nodes, of the run r0, r1"


class SlowClient:
    """A client of an API server that takes a second to delete a node."""

    def __init__(self) -> None:
        self.deleted = 0.0

    async def delete(self, *_: Any) -> None:
        self.deleted = time.monotonic()

    async def get_or_none(self, *_: Any) -> Any:
        return {} if time.monotonic() < self.deleted + 1 else None


@pytest.mark.parametrize("factor", [1.0, 20.0])
def test_an_overloaded_machine_has_more_time_to_remove_leftovers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, factor: float
) -> None:
    monkeypatch.setattr(pace, "factor", lambda: factor)
    monkeypatch.setattr(leftovers, "TIMEOUT_SECONDS", 0.5)
    expectation = (
        nullcontext() if factor > 1 else pytest.raises(HarnessError, match="1 objects are still there after 1 s")
    )
    with expectation:
        asyncio.run(leftovers.remove(cast(Client, SlowClient()), [Leftover(NODES, None, "n0", "r1")], tmp_path))


def test_a_helm_release_has_a_note() -> None:
    note = helm_releases.note("my-system", "my-operator", "r1")
    assert note["metadata"]["annotations"] == {HELM_ANNOTATION: "my-system/my-operator"}
    assert note["metadata"]["labels"] == {RUN_LABEL: "r1"}


@pytest.mark.parametrize(
    ("pod", "verb"),
    [
        ({"spec": {}}, ""),
        ({"spec": {}, "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}, "looked at"),
        ({"spec": {"nodeName": "n0"}}, "bound"),
    ],
)
def test_a_scheduler_is_recognized_by_its_changes_to_a_pod(pod: Any, verb: str) -> None:
    assert other_scheduler.scheduler_action(pod) == verb


@pytest.mark.parametrize(
    ("event", "reporter"),
    [
        (
            {
                "metadata": {"managedFields": [{"manager": "kube-scheduler"}]},
                "reportingComponent": "default-scheduler",
                "reportingInstance": "default-scheduler-vm",
            },
            "kube-scheduler as default-scheduler at default-scheduler-vm",
        ),
        ({"metadata": {}, "source": {"component": "volcano"}}, "as volcano"),
        ({"metadata": {}}, ""),
    ],
)
def test_the_reporter_of_an_event_is_named(event: dict[str, Any], reporter: str) -> None:
    assert other_scheduler.reporter([event]) == reporter
