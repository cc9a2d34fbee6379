"""Tests that checks of updates judge only their own requirement: UPD-016 covers how many pods are replaced at a time,
and a scaling group replica with outdated pods may be recreated as a whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.grove import labels
from conformance.history.record import DELETED
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.recorded import Span
from conformance.suite.scenes.scene import Step
from conformance.testing import disruption, replay
from conformance.tests.update import changes, test_pod_replacement, test_rolling_recreate, test_set_replicas
from conformance.tests.update.rolling import replica_of_group
from tests.history.story import Story


class AllAtOnce:
    """A recording in which all pods of a clique are replaced at once, and have the last template in the end."""

    def __init__(self, name: str) -> None:
        self.clique, self.unequal = test_pod_replacement.clique_of(name), list[str]()
        size = test_pod_replacement.SIZES[name]
        self.scene = SimpleNamespace(first={name: {f"old-{index}" for index in range(size)}})
        self._end = _view(
            self.clique, test_pod_replacement.FINAL_SIZES[name], test_pod_replacement.LAST_TAG.get(name, "2")
        )

    def at(self, _: str) -> View:
        return self._end

    def given(self, *_: str) -> None:
        """Treat every step as reached."""

    def expect(self, description: str, right: object, actual: object) -> None:
        if right != actual:
            self.unequal.append(description)


def _view(clique: str, pods: int, tag: str) -> View:
    story = Story()
    for index in range(pods):
        spec = {"containers": [{"name": "main", "image": f"registry.example/web:{tag}"}], "nodeName": "n"}
        metadata = {"labels": {labels.CLIQUE: clique}}
        story.record("pods", f"{clique}-{index}", {"metadata": metadata, "spec": spec})
    return story.history.view()


@pytest.mark.parametrize(
    ("name", "judge"),
    [
        ("shrinks", test_pod_replacement.test_the_update_of_a_clique_that_is_scaled_in_ends),
        ("broken", test_pod_replacement.test_a_broken_template_is_fixed_by_another_one),
    ],
)
def test_the_end_of_an_update_is_judged_separately(name: str, judge: Callable[[Any], None]) -> None:
    run = AllAtOnce(name)
    judge(run)
    assert run.unequal == []


@pytest.mark.parametrize(
    ("name", "judge"),
    [
        ("broken", test_pod_replacement.test_a_broken_template_is_fixed_by_another_one),
        ("twice", test_pod_replacement.test_the_last_of_two_changes_applies),
        ("back", test_pod_replacement.test_a_reverted_template_keeps_the_pods_that_have_it),
    ],
)
def test_pods_are_judged_where_no_end_is_reported(name: str, judge: Callable[[Any], None]) -> None:
    """UPD-007 judges whether the end of the update is reported."""
    run, requested = AllAtOnce(name), list[str]()
    run.given = lambda *steps: requested.extend(steps)  # type: ignore[method-assign]
    judge(run)
    assert (run.unequal, [step for step in requested if "update ended" in step]) == ([], [])


class MarkedRecording:
    """The recording of a story. Each step is reached when it is marked."""

    def __init__(self, **scene: object) -> None:
        self.story, self.scene, self.unequal = Story(), SimpleNamespace(**scene), list[str]()
        self.history, self._steps = self.story.history, dict[str, Step]()

    def mark(self, step: str) -> None:
        self._steps[step] = Step.now(step, self.history)

    def pod(self, name: str, clique: str, tag: str, *, hold: bool = False, kind: str = "", hash: str = "") -> None:
        tags = {labels.CLIQUE: clique, labels.TEMPLATE_HASH: hash or tag, labels.POD_INDEX: "0"}
        metadata = {"labels": tags, "annotations": {changes.HOLD_ANNOTATION: "yes"} if hold else {}}
        spec = {"containers": [{"name": "main", "image": f"registry.example/web:{tag}"}], "nodeName": "n"}
        self.story.record("pods", name, {"metadata": metadata, "spec": spec}, kind=kind)

    def clique(self, name: str, hash: str) -> None:
        self.story.record("podcliques", name, {"metadata": {"labels": {labels.TEMPLATE_HASH: hash}}})

    def at(self, step: str) -> View:
        return Span(self.history, None, self._steps[step]).view()

    def between(self, begin: str, end: str) -> Span:
        return Span(self.history, self._steps[begin], self._steps[end])

    def given(self, *_: str) -> None:
        """Treat every step as reached."""

    def expect(self, description: str, right: object, actual: object) -> None:
        if right != actual:
            self.unequal.append(description)

    same = expect


@pytest.mark.parametrize(("deleted", "unequal"), [("old", []), ("added", ["added pods that were replaced"])])
def test_only_added_pods_are_judged_by_their_number(deleted: str, unequal: list[str]) -> None:
    """UPD-005 judges how often an old pod is replaced, and the templates of pods before the scale-out."""
    clique = test_pod_replacement.clique_of("grows")
    run: Any = MarkedRecording(added={"uid-3"})
    run.mark("change")
    run.pod("late", clique, "1")
    run.pod("old", clique, "2")
    run.mark("first pods replaced")
    run.pod("added", clique, "2")
    run.pod(deleted, clique, "2", kind=DELETED)
    run.pod("another", clique, "2")
    run.mark("end")
    test_pod_replacement.test_added_pods_have_the_new_template(run)
    assert run.unequal == unequal


@pytest.mark.parametrize(
    ("unchanged_clique", "unequal"), [("", []), ("s-0-a", ["changed cliques with the hash of before"])]
)
def test_hashes_of_unchanged_cliques_are_left_to_another_requirement(unchanged_clique: str, unequal: list[str]) -> None:
    """TMPL-007 judges whether the hashes of unchanged cliques stay."""
    cliques = ["s-0-a", "s-1-a", "s-0-q"]
    run: Any = MarkedRecording(sizes=dict.fromkeys(cliques, 1))
    for clique in cliques:
        run.clique(clique, "h")
        run.pod(f"{clique}-1", clique, "1", hash="h")
    run.mark("standalone: change")
    for clique in cliques:
        now = "h" if clique == unchanged_clique else "h2"
        run.clique(clique, now)
        if clique != "s-0-q":
            run.pod(f"{clique}-1", clique, "1", kind=DELETED)
            run.pod(f"{clique}-2", clique, "2", hash=now)
    run.mark("standalone: at rest")
    test_rolling_recreate._expect_replaced_once(run, "standalone", {})
    assert run.unequal == unequal


def test_a_replica_need_not_be_terminated_during_its_update() -> None:
    """GREP-291 says that gang termination pauses during an update."""
    run: Any = MarkedRecording()
    run.pod("a-0", "recycled-0-a", "2", hold=True)
    run.pod("a-1", "recycled-0-a", "1")
    run.mark("recycled: at rest")
    with pytest.raises(Blocked) as blocked:
        test_set_replicas.test_a_terminated_replica_is_not_updated(run)
    assert blocked.value.cause == "circumstances"


@pytest.mark.parametrize(("tag", "hold", "blocks"), [("2", True, False), ("2", False, True), ("1", False, False)])
def test_pods_that_are_not_held_block_a_scene(tag: str, hold: bool, blocks: bool) -> None:
    """The annotations of a template need not be copied to pods (RES-115)."""
    run = MarkedRecording()
    run.pod("a-0", "s-0-a", tag, hold=hold)
    env: Any = SimpleNamespace(settled=lambda description, predicate: run.history.view())
    with pytest.raises(Blocked) if blocks else contextlib.nullcontext():
        changes.require_held(env, "s-0-a")


def test_every_scene_that_holds_pods_requires_that_they_are_held() -> None:
    sources = {path.name: path.read_text("utf-8") for path in Path(str(changes.__file__)).parent.glob("test_*.py")}
    holding = {name for name, source in sources.items() if "changes.hold_pods(" in source}
    assert holding and all("changes.require_held(" in sources[name] for name in holding)


def test_two_replicas_of_a_set_may_be_updated_together() -> None:
    """The scene continues, because the pods on which it acts exist."""
    story = Story()
    for clique in ("in-0-web", "in-1-web"):
        for index, tag in enumerate("12"):
            metadata = {
                "labels": {labels.CLIQUE: clique},
                "annotations": {changes.HOLD_ANNOTATION: "yes"} if tag == "2" else {},
            }
            spec = {"containers": [{"name": "main", "image": f"registry.example/web:{tag}"}], "nodeName": "n"}
            story.record("pods", f"{clique}-{index}", {"metadata": metadata, "spec": spec})
    updating_replicas = [{"replicaIndex": 0}, {"replicaIndex": 1}]
    story.record(disruption.SETS, "in", {"status": {"updateProgress": {"currentlyUpdating": updating_replicas}}})
    view = story.history.view()
    assert test_set_replicas._has_one_held_replica("in", 2)(view) is True
    assert all(test_set_replicas._has_turn("in", index)(view) is True for index in (0, 1))


CHANGES_OF_A_REPLICA = {
    "whole": ("+b1 +c1 change -b1 -c1 +b2 +c2", []),
    "mixed before": ("+b1 +c2 change -b1 -c2 +b2 +c2", ["c"]),
    "mixed after a kill": ("+b1 +c1 change -b1 +b2 -b2 -c1 +b2 +c2", ["b"]),
    "again": ("+b1 +c1 change -b1 -c1 +b2 +c2 -b2 -c2 +b2 +c2", []),
    "standalone": ("+a1 +A2 change -A2 -a1 +a2 +A2", []),
}
"""Created (+) and deleted (-) pods, by clique and template, and the cliques whose pods may be recreated.

The cliques b and c are those of a scaling group replica; a and A are pods of a standalone clique."""


@pytest.mark.parametrize(("steps", "permitted"), CHANGES_OF_A_REPLICA.values(), ids=CHANGES_OF_A_REPLICA)
def test_a_replica_with_outdated_pods_may_be_recreated(steps: str, permitted: list[str]) -> None:
    """Up-to-date pods that were created while their replica had outdated pods may be deleted with the outdated pods."""
    story = Story()
    start = Step.now("begin", story.history)
    for step in steps.split():
        if step == "change":
            start = Step.now("change", story.history)
            continue
        clique = "s-0-a" if step[1] in "aA" else f"s-0-g-0-{step[1]}"
        spec = {"containers": [{"name": "main", "image": f"registry.example/web:{step[2]}"}]}
        pod = {"metadata": {"labels": {labels.CLIQUE: clique}}, "spec": spec}
        story.record("pods", step[1:], pod, kind=DELETED if step[0] == "-" else "")
    span = Span(story.history, start, Step.now("end", story.history))
    recreated = replay.deletions_beside_outdated(
        span, replica_of_group, lambda record: changes.image_tag(record.object) == "1"
    )
    assert [record.name[0] for record in recreated] == permitted
