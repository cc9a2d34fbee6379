"""Tests that a gang scheduler does not change the specs of PodGangs, the parts of their statuses that it does not own,
or scheduling gates, that it changes pods only by binding them, and that it does not evict a gang when the operator sets
its `minReplicas` to 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove.fields import at, items, mapping, name, terminating, text
from conformance.grove.scheduling import manifests
from conformance.grove.scheduling.instance import HOST, Gang, Group, Instance, Node
from conformance.history.query import Unmet, predicate
from conformance.history.record import DELETED, Record
from conformance.history.view import View
from conformance.suite.scenes import writers
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

STATUS_TIME = "2026-01-01T00:00:00Z"
PRIORITY = 77
"""The priority of all pods. No other scene uses its PriorityClass."""
WATCH_SECONDS = 5.0
"""Seconds of real time for which nothing may happen after a change."""
GANGS = Instance(
    (Node("n1", {"gpus": 3}, {HOST: "n1"}),),
    (
        Gang("placed", (Group("w", 3, 3, {"gpus": 1}),), PRIORITY),
        Gang("waits", (Group("w", 4, 4, {"gpus": 1}),), PRIORITY),
        Gang("behind", (Group("w", 1, 1, {"gpus": 1}),), PRIORITY, base="waits"),
        Gang("held", (Group("w", 1, 0, {"gpus": 0}, gated=1),), PRIORITY),
    ),
    name="restraint",
)
"""A gang that fits, a gang that does not fit, a scaled gang whose base gang is the second gang and whose pod has
Grove's gate, and a pod with another gate."""
OPERATOR_CONDITIONS = ("Initialized", "Unhealthy")
"""The condition types of Grove's API that a scheduler must not change. It may add its own condition types."""


class GangsByHand(Scene):
    """Gangs and pods that no operator owns. When the gang that fits is placed, its minimum is set to 0, as operators do
    after a placement. Then the gang loses a pod, which is not replaced."""

    def play(self, env: SceneEnvironment) -> None:
        place, start = env.testbed(GANGS.name), env.audit.mark() if env.audit else 0
        self.own_versions: set[str] = set()
        self.status: Object = manifests.gang_status(STATUS_TIME)["status"]
        self.writers: set[tuple[str, str, str]] | None = None
        [entry] = manifests.priority_classes(GANGS)
        if env.dry_run.ask(env.dry_run.create(entry)).accepted:
            env.create(entry)
        env.create_nodes(manifests.nodes(GANGS, place))
        gangs = manifests.gangs(GANGS, place)
        env.create_all([{**gang, **manifests.gang_status(STATUS_TIME)} for gang in gangs])
        env.create_all(manifests.pods(GANGS, place))
        self.pods = [place.name("placed", "w", str(number)) for number in range(3)]
        env.wait_for("gang placed", predicates.all_placed(self.pods), real=True)
        env.quiet(2, real=True)

        [gang] = [gang for gang in gangs if name(gang) == place.name("placed")]
        groups = [{**group, "minReplicas": 0} for group in gang["spec"]["podgroups"]]
        patched = env.patch("podgangs", name(gang), {"spec": {"podgroups": groups}})
        self.own_versions.add(text(patched, "metadata", "resourceVersion"))
        env.quiet(WATCH_SECONDS, real=True)
        env.mark("minimum released")

        self.lost, *self.rest = self.pods
        env.delete("pods", self.lost)
        env.wait_for("pod lost", lambda view: view.get("pods", self.lost) is None or Unmet(f"{self.lost} exists"))
        env.quiet(WATCH_SECONDS, real=True)
        self.writers = writers.of_objects(env.audit, start, env.namespace) if env.audit else None
        env.mark("nothing moves")

    def written_by_operator(self, resource: str, record: Record) -> bool:
        """Return whether the operator is the only writer of an object according to the API server's audit log. In that
        case, the scheduler has not changed the object."""
        if self.writers is None:
            return False
        wrote = {user for user, kind, target in self.writers if (kind, target) == (resource, record.name)}
        return wrote == {writers.OPERATOR}


@requirement("SCHED-069")
def test_the_spec_of_gangs_stays(run: Recorded[GangsByHand]) -> None:
    """Only the suite writes these PodGangs, in place of an operator. Any other change to a spec was made by the
    scheduler."""
    run.given("gang placed", "nothing moves")
    changed = [
        str(new) for old, new in _changed_records(run, "podgangs") if at(old.object, "spec") != at(new.object, "spec")
    ]
    run.expect("changes of the spec of a PodGang by others than the suite", [], changed)


@requirement("SCHED-070")
def test_the_rest_of_a_gangs_status_stays(run: Recorded[GangsByHand]) -> None:
    """The suite has written only the condition Initialized, as an operator does."""
    run.given("gang placed", "nothing moves")
    allowed: tuple[Mapping[str, Any], ...] = ({}, _foreign_parts(run.scene.status))
    records = [record for record in run.until("nothing moves").records("podgangs") if record.kind != DELETED]
    unexpected = {
        record.name: rest
        for record in records
        if (rest := _foreign_parts(record.object.get("status"))) not in allowed
        and not run.scene.written_by_operator("podgangs/status", record)
    }
    run.expect("parts of a PodGang's status that are not the scheduler's", {}, unexpected)


@requirement("SCHED-071")
def test_pods_stay_as_they_were_made(run: Recorded[GangsByHand]) -> None:
    """The fields with which a pod was created are compared. A binding may add other fields."""
    run.given("gang placed", "nothing moves")
    lost = [
        f"{part} ({new})" for old, new in _changed_records(run, "pods") for part in _lost_fields(old.object, new.object)
    ]
    run.expect("what pods have lost", [], lost)


@requirement("SCHED-072")
def test_gates_stay(run: Recorded[GangsByHand]) -> None:
    """One pod has Grove's gate because its base gang waits, and one pod has a foreign gate."""
    run.given("gang placed", "nothing moves")
    removed = [
        f"{gate} ({new})"
        for old, new in _changed_records(run, "pods")
        for gate in _gate_names(old.object) - _gate_names(new.object)
    ]
    run.expect("gates that were removed", [], removed)


@requirement("SCHED-073")
def test_a_released_minimum_evicts_nobody(run: Recorded[GangsByHand]) -> None:
    """No pod of higher priority waits, so there is no other reason to evict a pod."""
    run.given("nothing moves")
    run.always("all pods of the gang stay", _are_kept(run.scene.pods), after="gang placed", until="minimum released")
    run.always("the others stay", _are_kept(run.scene.rest), after="minimum released", until="nothing moves")


@predicate
def _are_kept(view: View, pods: list[str]) -> bool | Unmet:
    current = {pod: view.get("pods", pod) for pod in pods}
    deleted = [pod for pod, current_pod in current.items() if current_pod is None or terminating(current_pod)]
    return not deleted or Unmet(f"{', '.join(deleted)} were deleted")


def _changed_records(run: Recorded[GangsByHand], resource: str) -> Iterator[tuple[Record, Record]]:
    """Yield each pair of consecutive states of an object whose second state the suite or the operator has not
    written."""
    before: dict[str, Record] = {}
    for record in run.until("nothing moves").records(resource):
        old = before.get(record.uid)
        before[record.uid] = record
        by_suite = record.kind == DELETED or record.version in run.scene.own_versions
        if old is not None and not by_suite and not run.scene.written_by_operator(resource, record):
            yield old, record


def _foreign_parts(status: object) -> Mapping[str, Any]:
    """Return the parts of a PodGang's status that a scheduler must not write."""
    by_type = {text(entry, "type"): entry for entry in items(status, "conditions")}
    conditions = {kind: entry for kind, entry in by_type.items() if kind in OPERATOR_CONDITIONS}
    fields = status if isinstance(status, Mapping) else {}
    remaining = {key: value for key, value in fields.items() if key not in ("conditions", "phase", "placementScore")}
    return {**remaining, **({"conditions": conditions} if conditions else {})}


def _lost_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield each label, annotation and toleration of a pod that was changed or removed."""
    for part in ("labels", "annotations"):
        had, now = mapping(old, "metadata", part), mapping(new, "metadata", part)
        yield from (f"{key} of its {part}" for key, value in had.items() if now.get(key) != value)
    tolerations = items(new, "spec", "tolerations")
    yield from (
        f"the toleration {toleration}"
        for toleration in items(old, "spec", "tolerations")
        if toleration not in tolerations
    )


def _gate_names(pod: Mapping[str, Any]) -> set[str]:
    return {text(gate, "name") for gate in items(pod, "spec", "schedulingGates")}
