"""Tests with a PodCliqueSet of a thousand pods, as in Grove's own scale test. The set is deployed, triggered by an
annotation, changed without an effect on its pods, and deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from conformance.grove import labels, pods
from conformance.grove.expected import expected
from conformance.grove.fields import Document, label, name, number, terminating
from conformance.history.query import Unmet, predicate
from conformance.history.record import ADDED, DELETED
from conformance.history.view import View
from conformance.scale.phases import Action, LoadPhase, Until
from conformance.testing import sets
from conformance.testing.incarnations import uids
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.scale.load import Load

REPLICAS, MIN_REPLICAS = 500, 20
PODS_PER_NODE = 10
SET_NAME = "scale"
TRIGGER_PATCH = {"metadata": {"annotations": {labels.TRIGGER: "steady"}}}
"""The patch of Grove's scale test, which does not change the spec (E2E-321)."""


class ThousandPods(Scene):
    """A set with 500 replicas of two pods on 100 nodes. When all pods are Ready, an annotation of the set changes. Then
    the order of its ports changes and the set gets one more replica, which shows that the operator has processed the
    change. Finally the set is deleted, and the scene does not wait for its pods. If the time scale is less than 1, the
    set has proportionally fewer replicas, but at least 20, and the number of nodes fits the set."""

    plays_alone = True

    def play(self, env: SceneEnvironment) -> None:
        self.replicas = size = max(MIN_REPLICAS, round(REPLICAS * min(1.0, env.time_scale)))
        workload = env.workload("expert-worker", setName=SET_NAME, replicas=size)
        self.expected = expected(workload)
        count = self.expected.pods
        env.nodes("tiny", -(-count // PODS_PER_NODE))

        load = Load(env)
        load.start_phase(
            LoadPhase("deploy", Action.CREATE, Until.SETTLED, size, 0), count, lambda: env.create(workload)
        )
        load.wait("all Pods Ready", load.missing_ready_pods)
        load.wait("statuses current", load.missing_status_updates, required=False)
        load.wait("statuses without errors", load.status_errors, required=False)

        touch = LoadPhase("steady-state-reconcile", Action.PATCH, Until.OBSERVED, size, size)
        load.start_phase(touch, count, lambda: env.patch(sets.SETS, SET_NAME, TRIGGER_PATCH))
        env.quiet(1.5)
        env.mark("nothing moves after the annotation")

        after = env.workload("expert-worker", setName=SET_NAME, replicas=size + 1, first=9090, second=8080)
        change = LoadPhase("no-op-update", Action.PATCH, Until.OBSERVED, size + 1, size)
        load.start_phase(change, expected(after).pods, lambda: env.patch(sets.SETS, SET_NAME, {"spec": after["spec"]}))
        env.wait_for("a further replica is Ready", _has_ready_pods(f"{SET_NAME}-{size}-expert-worker"))
        env.quiet(1.5)
        env.mark("nothing moves after the change")

        load.start_phase(
            LoadPhase("delete", Action.DELETE, Until.GONE, 0, size + 1), 0, lambda: env.delete(sets.SETS, SET_NAME)
        )
        load.wait("set gone", load.remaining_set)


@requirement("LOAD-001", reaches="all Pods Ready")
def test_all_pods_become_ready(run: Recorded[ThousandPods]) -> None:
    """The wait continues as long as more pods become bound or Ready."""


@requirement("LOAD-002")
def test_the_objects_are_those_of_the_template(run: Recorded[ThousandPods]) -> None:
    """Objects that are being deleted, such as replaced pods (LOAD-004), are not counted."""
    view, expected_set = run.at("statuses current"), run.scene.expected
    sizes = {clique.name: clique.template.replicas for clique in expected_set.cliques.values()}
    run.same("Pods of each PodClique", sizes, _pods_of_cliques(view))
    run.expect("PodCliqueScalingGroups", [], view.names("podcliquescalinggroups"))
    run.expect("number of PodGangs", len(expected_set.gangs), len(_objects_not_terminating(view, "podgangs")))
    beyond = [
        f"{resource}/{name(item)}"
        for resource in ("podcliques", "pods")
        for item in _objects_not_terminating(view, resource)
        if label(item, labels.SET_INDEX).isdigit() and int(label(item, labels.SET_INDEX)) >= run.scene.replicas
    ]
    run.expect("objects with the index of a replica that the set does not have", [], beyond)


@requirement("LOAD-003", reaches="statuses current")
def test_the_statuses_become_current(run: Recorded[ThousandPods]) -> None:
    """The wait continues as long as more replicas become available or updated."""


@requirement("LOAD-008", reaches="statuses without errors")
def test_the_statuses_have_no_errors(run: Recorded[ThousandPods]) -> None:
    """The statuses of the set and of all its PodCliques are read immediately after they have become current."""


@requirement("LOAD-004")
def test_each_pod_is_created_once(run: Recorded[ThousandPods]) -> None:
    """All records until the statuses are current are judged."""
    records = run.until("statuses current").records("pods")
    run.expect("number of Pods created", run.scene.expected.pods, sum(record.kind == ADDED for record in records))
    deleted = {record.name for record in records if record.kind == DELETED or terminating(record.object)}
    run.expect("Pods deleted", [], sorted(deleted))


@requirement("LOAD-005")
def test_an_annotation_disturbs_nothing(run: Recorded[ThousandPods]) -> None:
    """The set has the same pods before and after the annotation is added, and is available in between."""
    start, end = "statuses current", "nothing moves after the annotation"
    _expect_same_pods(run, start, end)
    run.always("the set is available", _has_available_replicas, after=start, until=end)


@requirement("LOAD-006")
def test_a_change_without_meaning_restarts_nothing(run: Recorded[ThousandPods]) -> None:
    """The additional replica, which is part of the same change, shows that the operator has processed the change."""
    run.given("a further replica is Ready")
    start, end = "nothing moves after the annotation", "nothing moves after the change"
    _expect_same_pods(run, start, end)
    run.expect("updateProgress of the set", None, sets.update_progress(run.at(end), SET_NAME))


@requirement("LOAD-007", reaches="set gone")
def test_a_deleted_set_is_gone(run: Recorded[ThousandPods]) -> None:
    """The step does not wait for the pods of the set."""


test_invariants = invariants(ThousandPods, "INV-001", "INV-004", "INV-005", "INV-009", "INV-010")


@predicate
def _has_ready_pods(view: View, clique: str) -> bool | Unmet:
    """Both pods of a clique are Ready. The predicate does not read other pods, because it is evaluated after each of
    many records."""
    count = sum(map(pods.is_ready, view.list("pods", {labels.CLIQUE: clique})))
    return count >= 2 or Unmet(f"{count} of 2 pods of {clique} are Ready")


def _pods_of_cliques(view: View) -> dict[str, int]:
    """Return PodClique → number of pods. Pods without an owner have a separate key."""
    owners = Counter(pods.clique(pod) or f"no owner: {name(pod)}" for pod in _objects_not_terminating(view, "pods"))
    return dict.fromkeys(map(name, _objects_not_terminating(view, "podcliques")), 0) | owners


def _objects_not_terminating(view: View, resource: str) -> list[Document]:
    """Return the objects of a kind that are not being deleted."""
    return [item for item in view.list(resource) if not terminating(item)]


def _expect_same_pods(run: Recorded[Any], start: str, end: str) -> None:
    """Expect that every pod that exists at the first step also exists, with the same UID, at the second step."""
    before, now = uids(run.at(start), "pods"), uids(run.at(end), "pods")
    run.same("Pods with their UIDs", before, _comparable_fields(before, now))


def _comparable_fields(former: Mapping[str, object], current: Mapping[str, str]) -> dict[str, str]:
    return {key: current.get(key, "gone") for key in former}


def _has_available_replicas(view: View) -> bool | Unmet:
    replicas = number(view.get(sets.SETS, SET_NAME), "status", "availableReplicas") or 0
    return replicas >= 1 or Unmet(f"availableReplicas is {replicas}")
