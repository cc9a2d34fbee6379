"""Tests that the deletion of a set leaves nothing behind, does not affect other objects, and is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.grove import labels
from conformance.grove.expected import ExpectedObjects, expected
from conformance.grove.fields import items, label, name, terminating
from conformance.grove.restricted import restricted
from conformance.history.query import Predicate, Unmet
from conformance.history.record import ADDED, DELETED, Record
from conformance.history.recorder import RECORDED
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, Span, invariants, requirement

SMALL_SIZES: Mapping[str, object] = {
    "workers": 2,
    "prefills": 1,
    "prefillsMinAvailable": 1,
    "prefillGpus": 1,
    "decodeGpus": 1,
}
DELETED_SET, NEIGHBOR = "a", "a-0"
"""The neighbor has the name of the deleted set's base gang. An operator that deletes by name prefix deletes the
neighbor as well."""


class SetDeletedBesideOthers(Scene):
    """Two sets, and two objects that belong to no set. One set is deleted. The name of the other set starts with the
    name of the deleted set. A set that is created afterwards and becomes available proves that the operator has seen
    the deletion and still works."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        deleted_set = env.workload("disaggregated", setName=DELETED_SET, **SMALL_SIZES)
        self.expected = expected(deleted_set)
        for workload in (deleted_set, env.workload("frontend", setName=NEIGHBOR), *_unrelated_objects()):
            env.create(workload)
        env.wait_for("all pods bound", predicates.all_bound(list(self.expected.cliques.values())))
        env.wait_for("neighbour available", predicates.is_available(NEIGHBOR, 1))
        before = env.quiet(1)
        env.mark("before the deletion")

        env.delete("podcliquesets", DELETED_SET)
        env.wait_for("deleted set gone", _is_set_deleted)
        # On an existing cluster the CRDs may be new, and the garbage collector discovers new kinds only every 30 s.
        env.wait_for("objects of the deleted set gone", _are_all_deleted(before, self.expected), 150)

        env.create(env.workload("frontend", setName="later"))
        env.wait_for("later set available", predicates.is_available("later", 1))
        env.quiet(1)
        env.mark("after the deletion")


@requirement("LIFE-001", reaches="deleted set gone")
def test_a_deleted_set_disappears(run: Recorded[SetDeletedBesideOthers]) -> None:
    """The step waits only for the set itself."""


@requirement("LIFE-002", reaches="objects of the deleted set gone")
def test_everything_of_a_deleted_set_is_deleted(run: Recorded[SetDeletedBesideOthers]) -> None:
    """Objects belong to the set by their label or by their name."""
    run.given("all pods bound")
    expected_set = run.scene.expected
    remaining = _surviving_objects(run.at("before the deletion"), run.at("after the deletion"), expected_set)
    run.expect(
        "objects of the set in the end",
        [],
        sorted(remaining | _uids_of_set(run.at("after the deletion"), expected_set)),
    )


@requirement("LIFE-003")
def test_nothing_is_created_for_a_deleted_set(run: Recorded[SetDeletedBesideOthers]) -> None:
    """The objects are ordered by the API server's writes."""
    run.given("later set available")
    created = _created_after_deletion(run.until("after the deletion"), run.scene.expected)
    run.expect("objects created for the set after its deletion", [], created)


@requirement("LIFE-004")
def test_objects_of_others_are_left_alone(run: Recorded[SetDeletedBesideOthers]) -> None:
    """All objects that do not belong to the set keep their UIDs and were never marked for deletion."""
    run.given("neighbour available")
    unrelated = _unrelated_uids(run.at("before the deletion"), run.scene.expected)
    uids = _uids(run.at("after the deletion"))
    run.expect("objects of others", unrelated, {key: uid for key, uid in uids.items() if key in unrelated})
    marked_objects = _unrelated_deletions(run.until("after the deletion"), unrelated)
    run.expect("objects of others that were marked for deletion", [], marked_objects)


test_invariants = invariants(SetDeletedBesideOthers, "INV-001", "INV-004", "INV-005")


def _unrelated_objects() -> list[Object]:
    """Return objects that belong to no set. One object is named like a pod of the set, and the other like a Service of
    the set."""
    pod = restricted({"containers": [{"name": "main", "image": "registry.example/stranger:1"}]})
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-0-router-stranger"}, "spec": pod},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "a-stranger"},
            "spec": {"clusterIP": "None", "selector": {labels.PART_OF: DELETED_SET}},
        },
    ]


def _is_set_deleted(view: View) -> bool | Unmet:
    current = view.get("podcliquesets", DELETED_SET)
    if current is None:
        return True
    return Unmet(
        "it is marked for deletion and stays" if terminating(current) else "it is not even marked for deletion"
    )


def _are_all_deleted(before: View, expected_set: ExpectedObjects) -> Predicate:
    """No object exists that belongs to the set or belonged to it before. A recreated object of the same name counts as
    existing."""
    former = _uids_of_set(before, expected_set)

    def check(view: View) -> bool | Unmet:
        remaining = sorted(_surviving_objects(before, view, expected_set) | former & _uids_of_set(view, expected_set))
        return not remaining or Unmet(f"{len(remaining)} of {len(former)} objects are left: {', '.join(remaining[:5])}")

    return check


def _surviving_objects(before: View, after: View, expected_set: ExpectedObjects) -> set[str]:
    """Return the objects, as `resource/name`, that belonged to the set before and still exist, even without their
    label."""
    uids = _uids(before)
    set_objects = {uids[key] for key in _uids_of_set(before, expected_set)}
    return {key for key, uid in _uids(after).items() if uid in set_objects}


def _uids_of_set(view: View, expected_set: ExpectedObjects) -> set[str]:
    """Return the objects, as `resource/name`, that belong to the set by their owner, their label or their name."""
    return {
        f"{record.resource}/{record.name}"
        for resource in RECORDED
        for record in view.records(resource)
        if _is_part(record, expected_set)
    }


def _is_part(record: Record, expected_set: ExpectedObjects) -> bool:
    names_by_resource = {
        "podcliquesets": (DELETED_SET,),
        "podcliques": expected_set.cliques,
        "podcliquescalinggroups": expected_set.groups,
        "podgangs": expected_set.gangs,
        "services": expected_set.services,
    }
    return (
        record.name in names_by_resource.get(record.resource, ())
        or label(record.object, labels.PART_OF) == DELETED_SET
        or any(
            owner.get("kind") == "PodCliqueSet" and owner.get("name") == DELETED_SET
            for owner in items(record.object, "metadata", "ownerReferences")
        )
    )


def _uids(view: View) -> dict[str, str]:
    return {f"{r.resource}/{r.name}": r.uid for resource in RECORDED for r in view.records(resource)}


def _unrelated_uids(view: View, expected_set: ExpectedObjects) -> dict[str, str]:
    """Return `resource/name` → UID for the objects that do not belong to the set."""
    parts = _uids_of_set(view, expected_set)
    return {key: uid for key, uid in _uids(view).items() if key not in parts}


def _created_after_deletion(span: Span, expected_set: ExpectedObjects) -> list[str]:
    """Return the objects created for the set after its deletion was requested, ordered by the API server's writes."""
    set_deletion = [r for r in span.records("podcliquesets", DELETED_SET) if r.kind == DELETED or terminating(r.object)]
    if not set_deletion:
        return []
    return [
        f"{record.resource}/{record.name}"
        for record in span.records()
        if record.kind == ADDED and record.revision > set_deletion[0].revision and _is_part(record, expected_set)
    ]


def _unrelated_deletions(span: Span, unrelated: Mapping[str, str]) -> Sequence[str]:
    uids = set(unrelated.values())
    return sorted({name(r.object) for r in span.records() if r.uid in uids and terminating(r.object)})
