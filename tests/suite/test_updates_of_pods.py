"""Checks of updates judge their own requirement: how many pods are replaced at a time is that of UPD-016; a replica of
a group with outdated pods may be recreated as a whole."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.grove import labels
from conformance.history.record import DELETED
from conformance.history.view import View
from conformance.suite.scenes.recorded import Span
from conformance.suite.scenes.scene import Step
from conformance.testing import disruption, replay
from conformance.tests.update import changes, test_pod_replacement, test_set_replicas
from conformance.tests.update.rolling import replica_of_group
from tests.history.story import Story


class AllAtOnce:
    """A recording in which all pods of a clique were replaced at once, and later had the last template."""

    def __init__(self, each: str) -> None:
        self.clique, self.unequal = test_pod_replacement.clique(each), list[str]()
        size = test_pod_replacement.SIZES[each]
        self.scene = SimpleNamespace(first={each: {f"old-{index}" for index in range(size)}})
        self._end = _view(
            self.clique, test_pod_replacement.SIZES_IN_THE_END[each], test_pod_replacement.LAST.get(each, "2")
        )

    def at(self, _: str) -> View:
        return self._end

    def given(self, *_: str) -> None:
        """Take every step for reached."""

    def expect(self, what: str, right: object, seen: object) -> None:
        if right != seen:
            self.unequal.append(what)


def _view(clique: str, pods: int, tag: str) -> View:
    story = Story()
    for index in range(pods):
        spec = {"containers": [{"name": "main", "image": f"registry.example/web:{tag}"}], "nodeName": "n"}
        metadata = {"labels": {labels.CLIQUE: clique}}
        story.tell("pods", f"{clique}-{index}", {"metadata": metadata, "spec": spec})
    return story.history.view()


@pytest.mark.parametrize(
    ("each", "judge"),
    [
        ("shrinks", test_pod_replacement.test_the_update_of_a_clique_that_is_scaled_in_ends),
        ("broken", test_pod_replacement.test_a_broken_template_is_fixed_by_another_one),
    ],
)
def test_the_end_of_an_update_is_judged_by_itself(each: str, judge: Callable[[Any], None]) -> None:
    run = AllAtOnce(each)
    judge(run)
    assert run.unequal == []


def test_two_replicas_of_a_set_may_be_updated_together() -> None:
    """The scene goes on: what it acts on is there."""
    story = Story()
    for clique in ("in-0-web", "in-1-web"):
        for index, tag in enumerate("12"):
            metadata = {"labels": {labels.CLIQUE: clique}, "annotations": {changes.HELD: "yes"} if tag == "2" else {}}
            spec = {"containers": [{"name": "main", "image": f"registry.example/web:{tag}"}], "nodeName": "n"}
            story.tell("pods", f"{clique}-{index}", {"metadata": metadata, "spec": spec})
    turns = [{"replicaIndex": 0}, {"replicaIndex": 1}]
    story.tell(disruption.SETS, "in", {"status": {"updateProgress": {"currentlyUpdating": turns}}})
    view = story.history.view()
    assert test_set_replicas._one_held("in", 2)(view) is True
    assert all(test_set_replicas._turn("in", index)(view) is True for index in (0, 1))


CHANGES_OF_A_REPLICA = {
    "whole": ("+b1 +c1 change -b1 -c1 +b2 +c2", []),
    "mixed before": ("+b1 +c2 change -b1 -c2 +b2 +c2", ["c"]),
    "mixed after a kill": ("+b1 +c1 change -b1 +b2 -b2 -c1 +b2 +c2", ["b"]),
    "again": ("+b1 +c1 change -b1 -c1 +b2 +c2 -b2 -c2 +b2 +c2", []),
    "standalone": ("+a1 +A2 change -A2 -a1 +a2 +A2", []),
}
"""Created and deleted pods of a replica of a group, or of a standalone clique (a, A), by template."""


@pytest.mark.parametrize(("steps", "permitted"), CHANGES_OF_A_REPLICA.values(), ids=CHANGES_OF_A_REPLICA)
def test_a_replica_with_outdated_pods_may_be_recreated(steps: str, permitted: list[str]) -> None:
    """Up-to-date pods that were created beside outdated ones of their replica may go with them."""
    story = Story()
    begin = Step.now("begin", story.history)
    for step in steps.split():
        if step == "change":
            begin = Step.now("change", story.history)
            continue
        clique = "s-0-a" if step[1] in "aA" else f"s-0-g-0-{step[1]}"
        spec = {"containers": [{"name": "main", "image": f"registry.example/web:{step[2]}"}]}
        pod = {"metadata": {"labels": {labels.CLIQUE: clique}}, "spec": spec}
        story.tell("pods", step[1:], pod, kind=DELETED if step[0] == "-" else "")
    span = Span(story.history, begin, Step.now("end", story.history))
    redone = replay.recreated_beside_outdated(span, replica_of_group, lambda record: changes.tag(record.object) == "1")
    assert [record.name[0] for record in redone] == permitted
