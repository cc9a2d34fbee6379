"""Tests of the replicas of a scaling group that an update recreates, and of their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import disruption, predicates, replay
from conformance.testing.observed import all_of, are_absent, are_present
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS

GROUP_SIZES = {"sick": 3, "grows": 2, "shrinks": 3, "again": 3}
"""Set → the replicas of its group. The last replica of `sick` is not available. While their first or second replica is
being recreated, `grows` and `shrinks` are scaled, and `again` is changed again."""


class GroupsInDifferentStates(Scene):
    """A set with one scaling group for each state that an update can encounter (see GROUP_SIZES). All sets are changed
    at the same time, with ample capacity. New pods become Ready only when they are released, except in `sick`."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        sets, before = {}, {}
        for set_name, size in GROUP_SIZES.items():
            values = {
                "alone": 1,
                "aloneMinAvailable": 1,
                "groups": size,
                "groupsMinAvailable": 1,
                "members": 1,
                "membersMinAvailable": 1,
            }
            sets[set_name] = env.workload("kept", setName=set_name, **values)
            env.create(sets[set_name])
        members = {set_name: [f"{set_name}-0-g-{j}-b" for j in range(size)] for set_name, size in GROUP_SIZES.items()}
        env.wait_for("sets available", all_of(*(predicates.is_available(set_name, 1) for set_name in sets)), 150)
        ones = [
            f"{set_name}-0-g-{j}-{clique}"
            for set_name, size in GROUP_SIZES.items()
            for j in range(size)
            for clique in "bc"
        ]
        env.wait_for("all pods of the groups Ready", changes.report_ready(dict.fromkeys(ones, 1)))
        disruption.set_pod_states(env, members["sick"][2], disruption.STALLED, 1)
        env.wait_for("one pod not Ready", changes.report_ready({members["sick"][2]: 0}))
        env.quiet(0.7)
        env.mark("change")
        for set_name, workload in sets.items():
            if set_name != "sick":
                changes.hold_pods(workload, "b")
            before[set_name] = changes.change_image(env, workload, "b", tag="2")

        held_members = {set_name: members[set_name] for set_name in ("grows", "shrinks", "again")}
        changes.require_held(env, *members["again"])
        env.settle(
            "first replicas recreated", all_of(*(_have_waiting_pods(cliques) for cliques in held_members.values())), 60
        )
        env.quiet(0.7)
        scale(env, GROUPS, "grows-0-g", 4)
        for clique in members["shrinks"]:
            changes.release(env, clique)
        before["again"] = changes.change_image(env, sets["again"], "b", tag="3")
        env.wait_for("grows: added replicas exist", are_present(CLIQUES, ["grows-0-g-2-b", "grows-0-g-3-b"]))
        env.settle("shrinks: second replica recreated", _have_waiting_pods(members["shrinks"], recreated=2), 60)
        scale(env, GROUPS, "shrinks-0-g", 1)
        env.settle("shrinks: recreated replica deleted", are_absent(CLIQUES, members["shrinks"][1:]), 60)
        env.settle("again: first replica recreated once more", _have_waiting_pods(members["again"], "3"), 60)
        env.quiet(1, real=True)
        env.mark("restarted update at rest")

        ends = {set_name: changes.has_ended(set_name, before[set_name]) for set_name in GROUP_SIZES}
        every = [*(clique for cliques in members.values() for clique in cliques), "grows-0-g-2-b", "grows-0-g-3-b"]
        changes.release_until(env, "all updates end", every, all_of(*ends.values()))
        for set_name, ended in ends.items():
            env.settle(f"{set_name}: update ended", ended, 30)
        sizes = {f"grows-0-g-{j}-{clique}": 1 for j in range(4) for clique in "bc"}
        env.settle("grows: all replicas have their pods", pods_are(sizes), 30)
        env.quiet(0.7)
        env.mark("end")


@requirement("UPD-025")
def test_replicas_that_are_not_available_are_recreated_first(run: Recorded[GroupsInDifferentStates]) -> None:
    """An available replica may be deleted at the same time, and the API server may write either deletion first."""
    run.given("sets available", "all pods of the groups Ready", "one pod not Ready")
    order = replay.deleted_parts(run.between("change", "end"), _replica_of_group("sick"))
    before = _replicas_before(order, "sick-0-g-2")
    run.expect("further replicas that were recreated before the one that is not available", [], before[1:])
    run.given("sick: update ended")
    run.expect("replicas that were deleted", {f"sick-0-g-{j}" for j in range(3)}, set(order))


@requirement("UPD-026", reaches="grows: added replicas exist")
def test_added_replicas_have_the_new_template(run: Recorded[GroupsInDifferentStates]) -> None:
    """Two replicas are added, and their pods are created only once. How many times old replicas are recreated is
    covered by UPD-005."""
    run.given("first replicas recreated")
    created = replay.creation_counts(run.between("change", "end"))
    one_each = {f"grows-0-g-{j}-{clique}": 1 for j in (2, 3) for clique in "bc"}
    run.expect(
        "cliques whose pods were created twice", [], [clique for clique in one_each if created.get(clique, 0) > 1]
    )
    run.given("grows: update ended", "grows: all replicas have their pods")
    run.same("new pods by clique", one_each, {clique: created.get(clique, 0) for clique in one_each})
    _expect_template(run, "grows", (2, 3), "2")


@requirement("UPD-027", reaches="shrinks: update ended")
def test_the_update_of_a_group_that_is_scaled_in_ends(run: Recorded[GroupsInDifferentStates]) -> None:
    """The replica that is being recreated is removed, unless it is the first replica, which stays."""
    run.given("first replicas recreated", "shrinks: second replica recreated", "shrinks: recreated replica deleted")
    _expect_template(run, "shrinks", range(1), "2")


@requirement("UPD-028")
def test_a_change_during_the_update_of_a_group_restarts_it(run: Recorded[GroupsInDifferentStates]) -> None:
    """The set is changed again while the pods of the first recreated replica are held."""
    run.given("first replicas recreated")
    _expect_template(run, "again", range(3), "3")


@requirement("UPD-028")
def test_a_restarted_update_recreates_one_replica_at_a_time(run: Recorded[GroupsInDifferentStates]) -> None:
    """The first replica may or may not count as the selected replica (CHG-RU-60), so the second replica may be
    recreated at the same time."""
    recreated = replay.parts_by_first_loss(
        run.between("change", "restarted update at rest"), _replica_of_group("again")
    )
    run.expect("third replicas that were recreated before the selected one is available", [], recreated[2:])
    sizes = {f"again-0-g-{j}-{clique}": 1 for j in range(3) for clique in "bc"}
    three = replay.concurrent_losses(run.between("change", "end"), sizes, _replica_of_group("again"), limit=2)
    run.expect("moments at which three replicas lacked Ready pods", [], three)


test_invariants = invariants(GroupsInDifferentStates, "INV-001", "INV-004", "INV-005")


@predicate
def _have_waiting_pods(view: View, cliques: Sequence[str], tag: str = "2", recreated: int = 1) -> bool | Unmet:
    """At least `recreated` of these cliques, one per replica, have a pod of this template, and all held pods have this
    template."""
    held_tags = [changes.image_tag(pod) for clique in cliques for pod in changes.held_pods(view, clique)]
    new = sum(tag in changes.image_tags(view, clique) for clique in cliques)
    return (set(held_tags) == {tag} and new >= recreated) or Unmet(
        f"of {', '.join(cliques)}, {new} have pods of template {tag}, wanted {recreated}; held are pods of {held_tags}"
    )


def _replica_of_group(set_name: str) -> replay.Part:
    """Return a function from a clique to the replica of the set's group to which the clique belongs."""
    return lambda clique: clique.rpartition("-")[0] if clique.startswith(f"{set_name}-0-g-") else ""


def _replicas_before(order: list[str], replica: str) -> list[str]:
    """Return the replicas that come before this replica, or all replicas if it is missing."""
    return order[: order.index(replica)] if replica in order else order


def _expect_template(run: Recorded[GroupsInDifferentStates], set_name: str, replicas: Iterable[int], tag: str) -> None:
    """Expect that, in the end, the pods of the changed clique have this template in each of these replicas of the
    group."""
    expected, view = {f"{set_name}-0-g-{j}-b": [tag] for j in replicas}, run.at("end")
    run.same("templates of the pods", expected, {clique: changes.image_tags(view, clique) for clique in expected})
