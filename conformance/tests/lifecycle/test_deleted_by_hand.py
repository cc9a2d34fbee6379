"""Tests that cliques and scaling groups that another client deletes are recreated, and that sets can be deleted at any
time and with any propagation policy."""

from __future__ import annotations

from collections.abc import Collection

from conformance.grove.expected import expected
from conformance.grove.fields import items, name, number, terminating, text, uid
from conformance.grove.kinds import SCALING_GROUPS
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.deleted import all_deleted, objects_created_after_deletion, objects_deleted_after_set
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.observed import all_of, are_absent
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

SET_NAMES = ("hands", "last", "counts", "again")
GROUP = "hands-0-g"
DELETED_CLIQUES = ("hands-0-a", "hands-0-g-1-b")
"""The cliques that the scene deletes."""


class ObjectsDeletedByHand(Scene):
    """Four available sets. In `hands`, two cliques are deleted, and later its scaling group. The other three sets are
    deleted: `last` with foreground propagation, `counts` while the terminationDelay of one of its cliques is running,
    and `again`, which is recreated as soon as it is gone."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        set_sizes = {
            "alone": 1,
            "aloneMinAvailable": 1,
            "groups": 1,
            "groupsMinAvailable": 1,
            "members": 1,
            "membersMinAvailable": 1,
        }
        shapes = {
            set_name: env.workload("kept", setName=set_name, **({} if set_name == "hands" else set_sizes))
            for set_name in SET_NAMES
        }
        for workload in shapes.values():
            env.create(workload)
        env.wait_for("all sets available", all_of(*(predicates.is_available(set_name, 1) for set_name in SET_NAMES)))
        before = env.quiet(1)
        env.mark("before the deletions")

        disruption.set_pod_states(env, "counts-0-a", disruption.STALLED, 1)
        env.wait_for("countdown running", disruption.are_breached(CLIQUES, ["counts-0-a"]))
        former = incarnations.uids(before, CLIQUES)
        for clique in DELETED_CLIQUES:
            env.delete(CLIQUES, clique)
        env.delete(SETS, "last", "Foreground")
        env.delete(SETS, "counts")
        env.delete(SETS, "again")
        env.wait_for("set of the same name gone", are_absent(SETS, ["again"]), 150)
        env.create(shapes["again"])

        env.settle("deleted cliques recreated", incarnations.are_recreated(CLIQUES, DELETED_CLIQUES, former), 60)
        self.sizes = {clique.name: clique.template.replicas for clique in expected(shapes["hands"]).cliques.values()}
        env.settle("pods of the recreated cliques ready", pods_are(self.sizes, ready=True), 60)
        env.settle("set deleted in the foreground gone", all_deleted(before, "last"), 150)
        env.settle("set deleted during a countdown gone", all_deleted(before, "counts"), 150)

        members = {clique: size for clique, size in self.sizes.items() if clique.startswith(f"{GROUP}-")}
        env.delete(GROUPS, GROUP)
        group = incarnations.are_recreated(GROUPS, [GROUP], incarnations.uids(before, GROUPS))
        env.settle("deleted group recreated", group, 60)
        env.settle(
            "cliques and pods of the group recreated",
            all_of(_is_group_restored(members), pods_are(members, ready=True)),
            60,
        )
        env.settle("set with the recreated group available", predicates.is_available("hands", 1), 60)
        env.wait_for("set of the same name available", predicates.is_available("again", 1))


@predicate
def _is_group_restored(view: View, cliques: Collection[str]) -> bool | Unmet:
    """Each of these cliques exists, and none of them is owned by the deleted group."""
    group = uid(view.get(GROUPS, GROUP))
    for clique_name in cliques:
        clique = view.get(CLIQUES, clique_name)
        owners = items(clique, "metadata", "ownerReferences")
        former = [
            owner for owner in owners if text(owner, "kind") == SCALING_GROUPS.kind and text(owner, "uid") != group
        ]
        if clique is None or terminating(clique) or former:
            return Unmet(f"{clique_name} is missing, or is of the deleted group")
    return True


@requirement("LIFE-005", reaches="set deleted in the foreground gone")
def test_a_set_deleted_in_the_foreground_disappears(run: Recorded[ObjectsDeletedByHand]) -> None:
    """The step waits for the set and for the objects that it owned."""


@requirement("LIFE-011")
def test_a_set_deleted_in_the_foreground_outlives_its_objects(run: Recorded[ObjectsDeletedByHand]) -> None:
    """The order of the deletions in the history is compared."""
    span = run.until("set deleted in the foreground gone")
    run.expect("what was created for the set after its deletion", [], objects_created_after_deletion(span, "last"))
    run.expect("what outlived the set", [], objects_deleted_after_set(span, "last"))


@requirement("LIFE-006", reaches="set deleted during a countdown gone")
def test_a_set_can_be_deleted_during_a_countdown(run: Recorded[ObjectsDeletedByHand]) -> None:
    """A clique of the set is breached, and the set's terminationDelay is several hours."""
    run.given("countdown running")


@requirement("LIFE-007", reaches="set of the same name available")
def test_a_set_of_the_same_name_becomes_available(run: Recorded[ObjectsDeletedByHand]) -> None:
    """The new set is created as soon as the old set is gone. Objects of the old set may still exist."""
    run.given("set of the same name gone")


@requirement("LIFE-008", reaches=("deleted cliques recreated", "pods of the recreated cliques ready"))
def test_deleted_cliques_are_recreated(run: Recorded[ObjectsDeletedByHand]) -> None:
    """One clique is standalone, and the other is in a scaling group."""


@requirement("LIFE-012")
def test_other_cliques_keep_their_pods(run: Recorded[ObjectsDeletedByHand]) -> None:
    """The other cliques include the deleted clique's sibling in the same replica of the scaling group."""
    run.given("all sets available", "deleted cliques recreated")
    before, after = run.at("before the deletions"), run.at("pods of the recreated cliques ready")
    other_cliques = [clique for clique in run.scene.sizes if clique not in DELETED_CLIQUES]
    former: dict[str, object] = {
        name(pod): uid(pod) for clique in other_cliques for pod in predicates.pods_of(before, clique)
    }
    now = {name(pod): uid(pod) for pod in after.list("pods") if not terminating(pod)}
    run.same("pods of the other cliques", former, {pod_name: now.get(pod_name, "") for pod_name in former})


@requirement(
    "LIFE-009",
    reaches=(
        "deleted group recreated",
        "cliques and pods of the group recreated",
        "set with the recreated group available",
    ),
)
def test_a_deleted_group_is_recreated(run: Recorded[ObjectsDeletedByHand]) -> None:
    """The PodCliques are new, or they were kept and are now owned by the new group."""
    group = run.at("set with the recreated group available").get(GROUPS, GROUP)
    run.expect("replicas of the group", 2, number(group, "spec", "replicas"))


test_invariants = invariants(ObjectsDeletedByHand, "INV-001", "INV-004", "INV-005")
