"""Tests of the condition UpdateInProgress during an update that makes progress, stops making progress, and ends."""

from __future__ import annotations

from conformance.grove import pods, updates
from conformance.grove.fields import condition_is, name
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS

CONDITION = "UpdateInProgress"
PODS, DEADLINE = 3, "4s"
CLIQUE, GROUP = "u-0-a", "u-0-g"
BEGUN, STUCK, MOVED, ENDED = "update told", "standstill told", "movement told", "end told"


class UpdateThatStandsStill(Scene):
    """One node with room for all pods. A set's clique with three pods, minAvailable 1, maxUnavailable 3 and
    progressDeadline 4s is changed. The set's scaling group is not changed. New pods become Ready only when they are
    released, first one pod and then all pods."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        small = {"aloneMinAvailable": 1, "groups": 1, "groupsMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        workload = env.workload("kept", setName="u", alone=PODS, **small)
        budget = {"maxUnavailable": PODS, "progressDeadline": DEADLINE}
        workload["spec"]["template"]["cliques"][0]["rollingUpdate"] = budget
        env.create(workload)
        env.wait_for("set available", predicates.is_available("u", 1))
        env.wait_for("all pods Ready", changes.ready({CLIQUE: PODS}))
        env.settle("rest told", _reported({SETS: "False", CLIQUES: "False", GROUPS: "False"}))
        env.quiet(1)
        env.mark("change")
        changes.hold(workload, "a")
        self.before = changes.change(env, workload, "a", tag="2")
        env.settle(BEGUN, _reported({CLIQUES: "True"}))
        changes.require_held(env, CLIQUE)
        env.settle(f"{BEGUN} by the set", _reported({SETS: "True"}))
        env.wait_for("new pods wait", _pods_wait)
        env.settle(STUCK, _stuck(CLIQUES), 30, real=True)
        env.settle(f"{STUCK} by the set", _stuck(SETS), 30, real=True)
        env.mark("standing still")
        first = changes.held_pods(env.history.view(), CLIQUE)[0]
        env.patch("pods", name(first), {"metadata": {"annotations": {changes.HELD: None}}}, missing_ok=True)
        env.settle(MOVED, _moving(CLIQUES), 30, real=True)
        env.settle(f"{MOVED} by the set", _moving(SETS), 30, real=True)
        env.wait_for("one pod Ready", _one_ready)
        env.quiet(1)
        env.mark("one Ready")
        ended = changes.done("u", self.before)
        changes.release_until(env, "update ends", [CLIQUE], ended)
        env.settle("update ended", ended, 60)
        env.settle(ENDED, _reported({CLIQUES: "False"}))
        env.settle(f"{ENDED} by the set", _reported({SETS: "False"}))
        env.quiet(1)
        env.mark("end")


NAMES = {SETS: "u", CLIQUES: CLIQUE, GROUPS: GROUP}


@predicate
def _reported(view: View, statuses: dict[str, str]) -> bool | Unmet:
    """The conditions of these objects have these statuses."""
    current = {
        resource: condition_is(view.get(resource, NAMES[resource]), CONDITION) or "absent" for resource in statuses
    }
    return current == statuses or Unmet(f"{CONDITION} is {current}, not {statuses}")


@predicate
def _stuck(view: View, resource: str) -> bool | Unmet:
    """The condition of this object is Unknown. The predicate also holds if the update has ended, because UPD-052 judges
    updates that end too early."""
    current = view.get(resource, NAMES[resource])
    status = condition_is(current, CONDITION) or "absent"
    return status == "Unknown" or updates.has_ended(current) or Unmet(f"{CONDITION} is {status}, not Unknown")


@predicate
def _moving(view: View, resource: str) -> bool | Unmet:
    """The condition of this object is not Unknown."""
    status = condition_is(view.get(resource, NAMES[resource]), CONDITION) or "absent"
    return status in ("True", "False") or Unmet(f"{CONDITION} is {status}")


def _pods_wait(view: View) -> bool | Unmet:
    """At least one new pod waits to become Ready. An operator need not use all of maxUnavailable."""
    return bool(changes.held_pods(view, CLIQUE)) or Unmet("no new pod waits to become Ready")


def _one_ready(view: View) -> bool | Unmet:
    """Exactly one pod of the new template is Ready."""
    ready = [pod for pod in predicates.pods_of(view, CLIQUE) if changes.tag(pod) == "2" and pods.is_ready(pod)]
    return len(ready) == 1 or Unmet(f"{len(ready)} new pods are Ready")


@requirement("UPD-050", reaches=(BEGUN, ENDED))
def test_a_condition_says_whether_an_update_runs(run: Recorded[UpdateThatStandsStill]) -> None:
    """The scaling group is not updated. It may report the end of the update, or lack the condition."""
    run.given("update ended")
    reported = condition_is(run.at("end").get(GROUPS, GROUP), CONDITION)
    run.expect("whether the scaling group is being updated in the end", False, reported in ("True", "Unknown"))


@requirement("UPD-061", reaches=("rest told", *(f"{step} by the set" for step in (BEGUN, STUCK, MOVED, ENDED))))
def test_the_set_says_what_its_component_does(run: Recorded[UpdateThatStandsStill]) -> None:
    """Only one of its components is updated."""


@requirement("UPD-051", reaches=(STUCK, MOVED))
def test_an_update_that_stands_still_is_reported(run: Recorded[UpdateThatStandsStill]) -> None:
    """A pod that becomes Ready counts as progress. No pod may be recreated from the old template."""
    created = changes.created_with_another_tag(run.after("new pods wait"), CLIQUE, "2")
    run.expect("pods that were made from the template of before", [], created)
    if updates.has_ended(run.at(STUCK).get(CLIQUES, CLIQUE)):
        raise Blocked("the update had ended before any new Pod was Ready (UPD-052)", "circumstances")


@requirement("UPD-052", reaches="update ended")
def test_an_update_ends_with_the_last_ready_pod(run: Recorded[UpdateThatStandsStill]) -> None:
    """One of three new pods is Ready, which equals minAvailable."""
    run.given("one pod Ready")
    clique, pcs = (run.at("one Ready").get(resource, NAMES[resource]) for resource in (CLIQUES, SETS))
    run.expect("updates that have ended with one of three pods Ready", [False, False],
               [updates.has_ended(clique), updates.has_ended(pcs)])  # fmt: skip


test_invariants = invariants(UpdateThatStandsStill, "INV-001", "INV-004", "INV-005", "INV-009")
