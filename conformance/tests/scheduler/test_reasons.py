"""Tests that the reason why a pod waits is reported in its condition and in an event, where people and autoscalers find
it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import condition, name, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

CONDITION, REASON = "PodScheduled", "Unschedulable"


class GangWithoutRoom(Scene):
    """One node with room for one of two pods, so neither pod is bound. A later set, which requests no GPUs, is
    bound."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 1)
        workload = env.workload("frontend", setName="waits", gpus=8)
        self.cliques = list(expected(workload).cliques.values())
        env.create(workload)
        env.wait_for("waiting pods ungated", predicates.all_ungated(self.cliques))
        env.settle("waiting pods have their condition", _are_unschedulable(self.cliques), timeout=60)

        # A later gang makes the scheduler retry everything, but the reason stays the same.
        later = env.workload("frontend", setName="later")
        env.create(later)
        env.wait_for("later set bound", predicates.all_bound(list(expected(later).cliques.values())))
        env.quiet(2, real=True)
        env.mark("nothing moves")
        env.wait_for("a Warning event about each waiting pod", _have_events(self.cliques), resources=["events"])


@requirement("SCHED-064", reaches="waiting pods have their condition")
def test_waiting_pods_have_a_condition_with_the_reason(run: Recorded[GangWithoutRoom]) -> None:
    """The pod that would fit alone has the condition as well."""
    run.given("waiting pods ungated")


@requirement("SCHED-068")
def test_a_condition_is_written_once_per_reason(run: Recorded[GangWithoutRoom]) -> None:
    """A later gang makes the scheduler retry. If only the times in a condition differ, the condition was written again
    needlessly."""
    run.given("waiting pods have their condition", "later set bound")
    span = run.between("waiting pods have their condition", "nothing moves")
    reported, rewritten = _conditions_by_pod(span.start_view(), run.scene.cliques), []
    for record in span.records("pods"):
        now = condition(record.object, CONDITION)
        if record.name in reported and now != reported[record.name]:
            if text(now, "message") == text(reported[record.name], "message"):
                rewritten.append(record.name)
            reported[record.name] = now
    run.expect(f"rewritten {CONDITION} conditions whose reason stayed the same", [], rewritten)


@requirement("SCHED-065", reaches="a Warning event about each waiting pod")
def test_an_event_about_each_waiting_pod_gives_the_reason(run: Recorded[GangWithoutRoom]) -> None:
    """The event is about the pod. Its reason and message can be anything."""


def _conditions_by_pod(view: View, cliques: Sequence[ExpectedClique]) -> dict[str, Mapping[str, Any]]:
    """Return pod → its condition PodScheduled."""
    members = [pod for clique in cliques for pod in predicates.pods_of(view, clique.name)]
    return {name(pod): condition(pod, CONDITION) for pod in members}


@predicate
def _are_unschedulable(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """Each pod has a condition that reports that the pod cannot be scheduled, and why."""
    for clique in cliques:
        for pod in predicates.pods_of(view, clique.name):
            current = condition(pod, CONDITION)
            reported = [text(current, "status"), text(current, "reason")]
            if reported != ["False", REASON] or not text(current, "message"):
                return Unmet(f"{name(pod)} has {CONDITION}={reported[0]}, {reported[1]}: {text(current, 'message')!r}")
    return True


@predicate
def _have_events(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """There is a Warning event about each pod."""
    warned_objects = {
        text(event.get("regarding") or event.get("involvedObject"), "name")
        for event in view.list("events")
        if text(event, "type") == "Warning" and (text(event, "note") or text(event, "message"))
    }
    pods_without_event = [
        name(pod) for c in cliques for pod in predicates.pods_of(view, c.name) if name(pod) not in warned_objects
    ]
    return not pods_without_event or Unmet(f"no Warning event is about {', '.join(pods_without_event)}")
