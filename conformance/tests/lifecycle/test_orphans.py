"""Tests with objects that have lost their owner, because the set was deleted with orphan propagation or because their
owner references were removed."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import Document, controller, label, name, text, uid
from conformance.grove.labels import PART_OF
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.observed import all_of, are_absent
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

GANGS = "podgangs"
ORPHANED_SET, EDITED_SET = "left", "edited"
SMALL_SIZES = {
    "alone": 2,
    "aloneMinAvailable": 1,
    "groups": 2,
    "groupsMinAvailable": 1,
    "members": 1,
    "membersMinAvailable": 1,
}
EDITED_OBJECTS = {CLIQUES: f"{EDITED_SET}-0-a", GROUPS: f"{EDITED_SET}-0-g"}


class OrphanedChildren(Scene):
    """Two available sets. `left` is deleted with orphan propagation and recreated; then its image is changed. In
    `edited`, a clique, a scaling group, a gang and a pod lose their owner references, unless admission protects these
    objects."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workloads = {
            set_name: env.workload("kept", setName=set_name, **SMALL_SIZES) for set_name in (ORPHANED_SET, EDITED_SET)
        }
        for workload in workloads.values():
            env.create(workload)
        env.wait_for("both sets available", all_of(*(predicates.is_available(set_name, 1) for set_name in workloads)))
        self.sizes = {
            set_name: {clique.name: clique.template.replicas for clique in expected(workload).cliques.values()}
            for set_name, workload in workloads.items()
        }
        env.wait_for("all pods Ready", all_of(*(pods_are(sizes, ready=True) for sizes in self.sizes.values())))
        before = env.quiet(1)
        env.mark("before")
        self.initial_pods = {set_name: _pods_by_name(before, set_name) for set_name in workloads}
        env.delete(SETS, ORPHANED_SET, "Orphan")
        env.wait_for("set gone", are_absent(SETS, [ORPHANED_SET]), 60)
        self._remove_owner_references(env)
        env.quiet(1.5, real=True)
        env.mark("orphaned")
        env.create(workloads[ORPHANED_SET])
        env.settle("edited: controlled again", _are_objects_controlled(EDITED_SET), 60)
        env.settle(
            "left: adopted", all_of(_are_objects_controlled(ORPHANED_SET), predicates.is_available(ORPHANED_SET, 1)), 60
        )
        env.quiet(1)
        env.mark("adopted")
        for clique in workloads[ORPHANED_SET]["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"]["containers"][0]["image"] = "registry.example/changed:2"
        env.patch(
            SETS,
            ORPHANED_SET,
            {"spec": {"template": {"cliques": workloads[ORPHANED_SET]["spec"]["template"]["cliques"]}}},
        )
        updated = all_of(
            _is_updated(ORPHANED_SET),
            pods_are(self.sizes[ORPHANED_SET], ready=True),
            predicates.is_available(ORPHANED_SET, 1),
        )
        env.settle("left: updated", updated, 150)

    def _remove_owner_references(self, env: SceneEnvironment) -> None:
        """Remove the owner references of one clique, scaling group, gang and pod, if admission permits this."""
        view = env.history.view()
        gang = next(name(item) for item in view.list(GANGS) if label(item, PART_OF) == EDITED_SET)
        pod = name(predicates.pods_of(view, f"{EDITED_SET}-0-a")[0])
        edit = {"metadata": {"ownerReferences": None}}
        for resource, target in {**EDITED_OBJECTS, GANGS: gang, "pods": pod}.items():
            [reply] = env.dry_run.all([env.dry_run.patch(resource, target, edit)])
            if reply.accepted:
                env.history.origins.stripped.add(uid(view.get(resource, target)))
                env.patch(resource, target, edit)


@requirement("LIFE-013")
def test_orphans_are_left_alone(run: Recorded[OrphanedChildren]) -> None:
    """The set is gone, and no other set of its name exists yet."""
    run.given("all pods Ready", "set gone")
    run.same("pods", run.scene.initial_pods[ORPHANED_SET], _pods_by_name(run.at("orphaned"), ORPHANED_SET))


@requirement("LIFE-013", reaches="left: adopted")
def test_a_set_of_the_same_name_adopts_orphans(run: Recorded[OrphanedChildren]) -> None:
    """The new set has the template of the former set."""
    run.given("all pods Ready", "set gone")
    run.same("pods", run.scene.initial_pods[ORPHANED_SET], _pods_by_name(run.at("adopted"), ORPHANED_SET))


@requirement("LIFE-014", reaches="left: updated")
def test_a_set_that_has_adopted_orphans_is_updated(run: Recorded[OrphanedChildren]) -> None:
    """The images of all containers are changed."""
    run.given("all pods Ready", "set gone")


@requirement("LIFE-015", reaches="edited: controlled again")
def test_owner_references_are_restored(run: Recorded[OrphanedChildren]) -> None:
    """A clique, a scaling group, a gang and a pod have lost their owner references."""
    run.given("all pods Ready")
    run.same("pods", run.scene.initial_pods[EDITED_SET], _pods_by_name(run.at("adopted"), EDITED_SET))


test_invariants = invariants(OrphanedChildren, "INV-001")


def _pods_by_name(view: View, set_name: str) -> dict[str, object]:
    """Return name → UID for the pods of a set."""
    return {name(pod): uid(pod) for pod in view.list("pods") if label(pod, PART_OF) == set_name}


@predicate
def _are_objects_controlled(view: View, set_name: str) -> bool | Unmet:
    """Every clique, scaling group, gang and pod of a set has a controller that exists."""
    pcs = view.get(SETS, set_name)
    if pcs is None:
        return Unmet(f"there is no PodCliqueSet {set_name}")
    set_objects = {
        resource: [item for item in view.list(resource) if label(item, PART_OF) == set_name]
        for resource in _OWNED_RESOURCES
    }
    remaining_objects = {uid(pcs), *(uid(item) for resource in (CLIQUES, GROUPS) for item in set_objects[resource])}
    uncontrolled_objects = [
        f"{resource}/{name(item)}"
        for resource, items in set_objects.items()
        for item in items
        if _owner_uid(item) not in remaining_objects
    ]
    return not uncontrolled_objects or Unmet(f"no living object controls {', '.join(sorted(uncontrolled_objects))}")


_OWNED_RESOURCES = (CLIQUES, GROUPS, GANGS, "pods")


def _owner_uid(item: Document) -> str:
    return text(controller(item), "uid")


@predicate
def _is_updated(view: View, set_name: str) -> bool | Unmet:
    """All pods of a set have the new image."""
    old = [name(pod) for pod in view.list("pods") if label(pod, PART_OF) == set_name and not _is_new(pod)]
    return not old or Unmet(f"{len(old)} pods have the old image")


def _is_new(pod: Document) -> bool:
    return str(pod["spec"]["containers"][0]["image"]).endswith("/changed:2")
