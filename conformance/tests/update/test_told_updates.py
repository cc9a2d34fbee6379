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
POD_COUNT, DEADLINE = 3, "4s"
CLIQUE, GROUP = "u-0-a", "u-0-g"
UPDATE_REPORTED, STALL_REPORTED, PROGRESS_REPORTED, END_REPORTED = (
    "update told",
    "standstill told",
    "movement told",
    "end told",
)


class UpdateThatStandsStill(Scene):
    """One node with room for all pods. A set's clique with three pods, minAvailable 1, maxUnavailable 3 and
    progressDeadline 4s is changed. The set's scaling group is not changed. New pods become Ready only when they are
    released, first one pod and then all pods."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        small = {"aloneMinAvailable": 1, "groups": 1, "groupsMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        workload = env.workload("kept", setName="u", alone=POD_COUNT, **small)
        budget = {"maxUnavailable": POD_COUNT, "progressDeadline": DEADLINE}
        workload["spec"]["template"]["cliques"][0]["rollingUpdate"] = budget
        env.create(workload)
        env.wait_for("set available", predicates.is_available("u", 1))
        env.wait_for("all pods Ready", changes.report_ready({CLIQUE: POD_COUNT}))
        env.settle("rest told", _are_reported({SETS: "False", CLIQUES: "False", GROUPS: "False"}))
        env.quiet(1)
        env.mark("change")
        changes.hold_pods(workload, "a")
        self.before = changes.change_image(env, workload, "a", tag="2")
        env.settle(UPDATE_REPORTED, _are_reported({CLIQUES: "True"}))
        changes.require_held(env, CLIQUE)
        env.settle(f"{UPDATE_REPORTED} by the set", _are_reported({SETS: "True"}))
        env.wait_for("new pods wait", _have_waiting_pods)
        env.settle(STALL_REPORTED, _reports_stall(CLIQUES), 30, real=True)
        env.settle(f"{STALL_REPORTED} by the set", _reports_stall(SETS), 30, real=True)
        env.mark("standing still")
        first = changes.held_pods(env.history.view(), CLIQUE)[0]
        env.patch("pods", name(first), {"metadata": {"annotations": {changes.HOLD_ANNOTATION: None}}}, missing_ok=True)
        env.settle(PROGRESS_REPORTED, _reports_progress(CLIQUES), 30, real=True)
        env.settle(f"{PROGRESS_REPORTED} by the set", _reports_progress(SETS), 30, real=True)
        env.wait_for("one pod Ready", _has_one_ready_pod)
        env.quiet(1)
        env.mark("one Ready")
        ended = changes.has_ended("u", self.before)
        changes.release_until(env, "update ends", [CLIQUE], ended)
        env.settle("update ended", ended, 60)
        env.settle(END_REPORTED, _are_reported({CLIQUES: "False"}))
        env.settle(f"{END_REPORTED} by the set", _are_reported({SETS: "False"}))
        env.quiet(1)
        env.mark("end")


NAMES = {SETS: "u", CLIQUES: CLIQUE, GROUPS: GROUP}


@predicate
def _are_reported(view: View, statuses: dict[str, str]) -> bool | Unmet:
    """The conditions of these objects have these statuses."""
    current = {
        resource: condition_is(view.get(resource, NAMES[resource]), CONDITION) or "absent" for resource in statuses
    }
    return current == statuses or Unmet(f"{CONDITION} is {current}, not {statuses}")


@predicate
def _reports_stall(view: View, resource: str) -> bool | Unmet:
    """The condition of this object is Unknown. The predicate also holds if the update has ended, because UPD-052 judges
    updates that end too early."""
    current = view.get(resource, NAMES[resource])
    status = condition_is(current, CONDITION) or "absent"
    return status == "Unknown" or updates.has_ended(current) or Unmet(f"{CONDITION} is {status}, not Unknown")


@predicate
def _reports_progress(view: View, resource: str) -> bool | Unmet:
    """The condition of this object is not Unknown."""
    status = condition_is(view.get(resource, NAMES[resource]), CONDITION) or "absent"
    return status in ("True", "False") or Unmet(f"{CONDITION} is {status}")


def _have_waiting_pods(view: View) -> bool | Unmet:
    """At least one new pod waits to become Ready. An operator need not use all of maxUnavailable."""
    return bool(changes.held_pods(view, CLIQUE)) or Unmet("no new pod waits to become Ready")


def _has_one_ready_pod(view: View) -> bool | Unmet:
    """Exactly one pod of the new template is Ready."""
    ready = [pod for pod in predicates.pods_of(view, CLIQUE) if changes.image_tag(pod) == "2" and pods.is_ready(pod)]
    return len(ready) == 1 or Unmet(f"{len(ready)} new pods are Ready")


@requirement("UPD-050", reaches=(UPDATE_REPORTED, END_REPORTED))
def test_a_condition_says_whether_an_update_runs(run: Recorded[UpdateThatStandsStill]) -> None:
    """The scaling group is not updated. It may report the end of the update, or lack the condition."""
    run.given("update ended")
    reported = condition_is(run.at("end").get(GROUPS, GROUP), CONDITION)
    run.expect("whether the scaling group is being updated in the end", False, reported in ("True", "Unknown"))


@requirement(
    "UPD-061",
    reaches=(
        "rest told",
        *(f"{step} by the set" for step in (UPDATE_REPORTED, STALL_REPORTED, PROGRESS_REPORTED, END_REPORTED)),
    ),
)
def test_the_set_says_what_its_component_does(run: Recorded[UpdateThatStandsStill]) -> None:
    """Only one of its components is updated."""


@requirement("UPD-051", reaches=(STALL_REPORTED, PROGRESS_REPORTED))
def test_an_update_that_stands_still_is_reported(run: Recorded[UpdateThatStandsStill]) -> None:
    """A pod that becomes Ready counts as progress. No pod may be recreated from the old template."""
    created = changes.created_with_another_tag(run.after("new pods wait"), CLIQUE, "2")
    run.expect("pods that were made from the template of before", [], created)
    if updates.has_ended(run.at(STALL_REPORTED).get(CLIQUES, CLIQUE)):
        raise Blocked("the update had ended before any new Pod was Ready (UPD-052)", "circumstances")


@requirement("UPD-052", reaches="update ended")
def test_an_update_ends_with_the_last_ready_pod(run: Recorded[UpdateThatStandsStill]) -> None:
    """One of three new pods is Ready, which equals minAvailable."""
    run.given("one pod Ready")
    clique, pcs = (run.at("one Ready").get(resource, NAMES[resource]) for resource in (CLIQUES, SETS))
    run.expect("updates that have ended with one of three pods Ready", [False, False],
               [updates.has_ended(clique), updates.has_ended(pcs)])  # fmt: skip


test_invariants = invariants(UpdateThatStandsStill, "INV-001", "INV-004", "INV-005", "INV-009")
