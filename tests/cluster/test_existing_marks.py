"""What a run has made on an existing cluster is known by a label; what was there before never gets it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from conformance.cluster.existing import helm_releases, leftovers, other_scheduler
from conformance.cluster.existing.leftovers import Left
from conformance.cluster.existing.marks import HELM, RUN, marked, marked_if_own
from kube.resource import NAMESPACES, NODES

QUEUE = {"kind": "Queue", "metadata": {"name": "q", "labels": {"app": "x"}}}


def test_a_label_is_added_to_those_that_there_are() -> None:
    assert marked(QUEUE, "r1")["metadata"]["labels"] == {"app": "x", RUN: "r1"}
    assert QUEUE["metadata"]["labels"] == {"app": "x"}, "the manifest itself is as it was"  # type: ignore[index]
    assert marked(QUEUE, "") == QUEUE


@pytest.mark.parametrize(
    ("there", "label"), [(None, "r1"), (QUEUE, None), (marked(QUEUE, "r1"), "r1"), (marked(QUEUE, "r0"), None)]
)
def test_only_what_the_run_has_made_is_labelled(there: Any, label: str | None) -> None:
    found = marked_if_own(QUEUE, None if there is None else orjson.dumps(there), "r1")
    assert found["metadata"]["labels"].get(RUN) == label


def test_what_was_left_is_told_in_one_line() -> None:
    found = [Left(NODES, None, "n0", "r1"), Left(NODES, None, "n1", "r1"), Left(NAMESPACES, None, "a", "r0")]
    assert leftovers.described(found) == "1 namespaces, 2 nodes, of the run r0, r1"


def test_a_release_of_helm_has_a_note() -> None:
    note = helm_releases.note("my-system", "my-operator", "r1")
    assert note["metadata"]["annotations"] == {HELM: "my-system/my-operator"}
    assert note["metadata"]["labels"] == {RUN: "r1"}


@pytest.mark.parametrize(
    ("pod", "verb"),
    [
        ({"spec": {}}, ""),
        ({"spec": {}, "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}, "looked at"),
        ({"spec": {"nodeName": "n0"}}, "bound"),
    ],
)
def test_a_scheduler_is_noticed_by_what_it_does_with_a_pod(pod: Any, verb: str) -> None:
    assert other_scheduler.verdict(pod) == verb


@pytest.mark.parametrize(
    ("event", "who"),
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
def test_an_event_says_who_it_was(event: dict[str, Any], who: str) -> None:
    assert other_scheduler.reporter([event]) == who
