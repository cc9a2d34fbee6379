"""Tests of the replicas of a set that an update changes, and of their order."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove import updates
from conformance.grove.fields import condition_is
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, predicates, replay
from conformance.testing.observed import all_of, are_absent
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, SETS

REPLICAS = {"placed": 2, "sound": 3, "out": 2, "in": 2, "twice": 2, "freezes": 1}
"""Set → its replicas. The third replica of `placed` does not fit on any node, and the second replica of `sound` is
breached. While an update is running, `out` and `in` are scaled, `twice` is changed again, and `freezes` is switched to
OnDelete."""
RECYCLED_SET = "recycled"
"""A set whose replica is terminated while it is being updated."""


class SetsInDifferentStates(Scene):
    """A set for each state that an update of replicas can encounter (see REPLICAS). All sets are changed at the same
    time, while the only node is cordoned. New pods become Ready only when they are released, except in `placed` and
    `sound`."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", 1)
        sets = {set_name: _workload(env, set_name, replicas) for set_name, replicas in REPLICAS.items()}
        sets[RECYCLED_SET] = env.workload(
            "rolling", setName=RECYCLED_SET, groups=1, groupsMinAvailable=1, aloneMinAvailable=1, delay="2s"
        )
        for workload in sets.values():
            env.create(workload)
        available = [predicates.is_available(set_name, REPLICAS.get(set_name, 1)) for set_name in sets]
        env.wait_for("sets available", all_of(*available), 150)
        pods = {f"{set_name}-{index}-web": 2 for set_name, replicas in REPLICAS.items() for index in range(replicas)}
        env.wait_for("all pods Ready", changes.report_ready({**pods, "recycled-0-a": 2}))
        disruption.set_pod_states(env, "sound-1-web", disruption.STALLED, 2)
        disruption.cordon(env, nodes)
        scale(env, SETS, "placed", 3)
        env.wait_for("placed: replica without a node", pods_are({"placed-2-web": 2}))
        env.settle("sound: replica breached", disruption.are_breached(CLIQUES, ["sound-1-web"]))
        unplaced = changes.uids(env.quiet(0.7), "placed-2-web")
        env.mark("change")
        before = {}
        for set_name, workload in sets.items():
            clique = "a" if set_name == RECYCLED_SET else "web"
            if set_name not in ("placed", "sound"):
                changes.hold_pods(workload, clique)
            before[set_name] = changes.change_image(env, workload, clique, tag="2")
        changes.require_held(env, "out-0-web", "out-1-web")
        env.settle("placed: turn of the replica without a node", _has_turn("placed", 2), 60)
        env.settle("placed: pod without a node replaced", _is_any_deleted("placed-2-web", unplaced), 60)
        env.settle("sound: turn of the breached replica", _has_turn("sound", 1), 60)
        env.quiet(0.7)
        env.mark("placed: at rest")
        disruption.cordon(env, nodes, undo=True)
        self._first_replicas(env)
        self._second_replicas(env, sets, before)
        env.settle("recycled: replica terminated", lambda view: len(changes.held_pods(view, "recycled-0-a")) == 2, 60)
        env.quiet(0.7)
        env.mark("recycled: at rest")
        env.quiet(1, real=True)
        env.mark("twice: at rest")

        ends = {set_name: changes.has_ended(set_name, before[set_name]) for set_name in sets if set_name != "freezes"}
        every = [f"{set_name}-{index}-web" for set_name in ("out", "in", "twice") for index in range(3)]
        changes.release_until(env, "all updates end", [*every, "recycled-0-a"], all_of(*ends.values()))
        for set_name, ended in ends.items():
            env.settle(f"{set_name}: update ended", ended, 30)
        env.quiet(0.7)
        env.mark("end")

    def _first_replicas(self, env: SceneEnvironment) -> None:
        """Let the update replace pods of the first replicas. Then scale a set and switch off the update of another."""
        first = {
            set_name: _has_one_held_replica(set_name, n)
            for set_name, n in REPLICAS.items()
            if set_name not in ("placed", "sound")
        }
        first[RECYCLED_SET] = changes.has_one_held_pod("recycled-0-a")
        env.settled("first pods replaced", all_of(*first.values()), 60)
        for set_name, replaced in first.items():
            env.settle(f"{set_name}: first pod replaced", replaced, 5)
        scale(env, SETS, "out", 3)
        disruption.set_pod_states(env, "recycled-0-q", disruption.STALLED, 1)
        changes.set_strategy(env, "freezes", changes.ON_DELETE)
        env.settle("freezes: update closed", _is_update_closed, 60)
        changes.release(env, "freezes-0-web")
        env.settle("freezes: pods Ready", changes.report_ready({"freezes-0-web": 2}), 60)

    def _second_replicas(self, env: SceneEnvironment, sets: dict[str, Object], before: dict[str, str]) -> None:
        """Let the update reach the second replicas of two sets. Then scale in one set and change the other set."""
        second = {set_name: changes.has_one_held_pod(f"{set_name}-1-web") for set_name in ("in", "twice")}
        every = all_of(*second.values())
        changes.release_until(env, "pods of the second replicas replaced", ["in-0-web", "twice-0-web"], every)
        for set_name, replaced in second.items():
            env.settle(f"{set_name}: pod of the second replica replaced", replaced, 5)
        scale(env, SETS, "in", 1)
        env.settle("in: second replica deleted", are_absent(CLIQUES, ["in-1-web"]), 60)
        before["twice"] = changes.change_image(env, sets["twice"], "web", tag="3")
        env.settle("twice: pod of the second template deleted", changes.has_one_held_pod("twice-1-web", "3"), 60)


@requirement("UPD-029", reaches="placed: turn of the replica without a node")
def test_a_replica_without_bound_pods_is_updated_first(run: Recorded[SetsInDifferentStates]) -> None:
    """At first no node has room for the new pods of the replica, so an operator could update other replicas in the
    meantime."""
    run.given("sets available", "all pods Ready", "placed: replica without a node")
    run.given("placed: pod without a node replaced")
    lost = replay.parts_by_first_loss(run.between("change", "placed: at rest"), _replica_part("placed"))
    run.expect("replicas that lost pods meanwhile", ["2"], lost)
    run.given("placed: update ended")
    run.expect("first turn of placed", [2], _replicas_in_turn(run, "placed")[:1])


@requirement("UPD-030", reaches="sound: turn of the breached replica")
def test_a_breached_replica_is_updated_first(run: Recorded[SetsInDifferentStates]) -> None:
    """The pods of the replica are running but not Ready, and terminationDelay is long."""
    run.given("sound: replica breached", "sound: update ended")
    run.expect("first turn of sound", [1], _replicas_in_turn(run, "sound")[:1])


@requirement("UPD-031")
def test_an_added_replica_has_the_new_template(run: Recorded[SetsInDifferentStates]) -> None:
    """A replica is added while the first replica is being updated."""
    run.given("out: first pod replaced")
    span = run.between("change", "end")
    run.expect("pods created with another template", [], changes.created_with_another_tag(span, "out-2-web", "2"))
    created = replay.creation_counts(span).get("out-2-web", 0)
    run.expect("pods created for the added replica beyond two", 0, max(0, created - 2))
    run.given("out: update ended")
    run.expect("pods created for the added replica", 2, created)
    _expect_template(run, ["out-2-web"], "2")


@requirement("UPD-032", reaches="in: update ended")
def test_an_update_continues_without_a_replica_that_is_scaled_in(run: Recorded[SetsInDifferentStates]) -> None:
    """A pod of the replica has been replaced, and its successor is not Ready."""
    run.given("in: first pod replaced", "in: pod of the second replica replaced", "in: second replica deleted")
    _expect_template(run, ["in-0-web"], "2")


@requirement("UPD-033")
def test_two_replicas_are_not_out_of_service_together(run: Recorded[SetsInDifferentStates]) -> None:
    """The set is changed again while the second replica lacks a pod."""
    run.given("twice: first pod replaced", "twice: pod of the second replica replaced")
    sizes = {f"twice-{index}-web": 2 for index in range(2)}
    together = replay.concurrent_losses(run.between("change", "twice: at rest"), sizes, _replica_part("twice"))
    run.expect("moments at which two replicas lacked Ready pods", [], together)
    run.given("twice: pod of the second template deleted", "twice: update ended")
    _expect_template(run, ["twice-0-web", "twice-1-web"], "3")


@requirement("UPD-034")
def test_a_terminated_replica_is_not_updated(run: Recorded[SetsInDifferentStates]) -> None:
    """The pod of the other clique has not been Ready for longer than terminationDelay, and the new pods are held."""
    run.given("recycled: first pod replaced")
    view = run.at("recycled: at rest")
    if "1" in changes.image_tags(view, "recycled-0-a"):
        raise Blocked("the replica is not terminated: GREP-291 has termination pause during updates", "circumstances")
    run.given("recycled: replica terminated")
    ended = updates.has_ended(view.get(SETS, RECYCLED_SET))
    run.expect("the update is reported to have ended", False, ended)


@requirement("UPD-035", reaches="freezes: update closed")
def test_a_switch_to_on_delete_ends_the_update(run: Recorded[SetsInDifferentStates]) -> None:
    """At that time, one of two pods has the new template."""
    run.given("freezes: first pod replaced", "freezes: pods Ready")
    images = changes.image_tags(run.at("end"), "freezes-0-web")
    run.expect("templates of the pods after the switch", ["1", "2"], images)


test_invariants = invariants(SetsInDifferentStates, "INV-001", "INV-004", "INV-005")


def _workload(env: SceneEnvironment, set_name: str, replicas: int) -> Object:
    workload = env.workload("waiting", setName=set_name, pods=2, minAvailable=2 if set_name == "sound" else 1)
    changes.template(workload, "web").pop("annotations")
    workload["spec"]["replicas"] = replicas
    return workload


def _is_any_deleted(clique: str, pod_uids: Iterable[str]) -> Predicate:
    """At least one of these pods (UIDs) of a clique is deleted or being deleted. UPD-014 covers whether all of them are
    deleted at the same time."""
    deletions = [changes.are_deleted(clique, [pod_uid]) for pod_uid in pod_uids]

    def check(view: View) -> bool | Unmet:
        return any(deleted(view) is True for deleted in deletions) or Unmet(f"no pod of {clique} was replaced")

    return check


def _has_one_held_replica(set_name: str, replicas: int) -> Predicate:
    """One of the two pods of a replica of a set has the new template and is held. The number of replicas that are
    updated at the same time is covered by UPD-001."""
    cliques = [f"{set_name}-{index}-web" for index in range(replicas)]

    def check(view: View) -> bool | Unmet:
        replaced = any(changes.has_one_held_pod(clique)(view) is True for clique in cliques)
        counts = [len(changes.held_pods(view, clique)) for clique in cliques]
        return replaced or Unmet(f"{set_name}: {counts} pods of its replicas are held")

    return check


@predicate
def _has_turn(view: View, set_name: str, index: int) -> bool | Unmet:
    """A replica of a set is being updated."""
    turns = updates.updating_replicas(view.get(SETS, set_name))
    return index in turns or Unmet(f"{set_name}: the turn is {turns}, not {index}")


def _is_update_closed(view: View) -> bool | Unmet:
    """The update that was unfinished at the switch to OnDelete has ended, and breaches are reported again."""
    parts = {"freezes": view.get(SETS, "freezes"), "freezes-0-web": view.get(CLIQUES, "freezes-0-web")}
    unfinished = [part for part, current in parts.items() if not updates.has_ended(current)]
    if condition_is(view.get(CLIQUES, "freezes-0-web"), disruption.BREACHED) in ("", "Unknown"):
        unfinished.append("the breach of freezes-0-web is Unknown")
    return not unfinished or Unmet(f"not ended: {', '.join(unfinished)}")


def _replica_part(set_name: str) -> replay.Part:
    """Return a function from a clique to the index of the set replica to which the clique belongs."""
    return lambda clique: clique.split("-")[1] if clique.startswith(f"{set_name}-") else ""


def _replicas_in_turn(run: Recorded[SetsInDifferentStates], set_name: str) -> list[int | None]:
    """Return the replicas of a set that were being updated, in order."""
    turns: list[int | None] = []
    for record in run.between("change", "end").records(SETS, set_name):
        turns += [index for index in updates.updating_replicas(record.object) if index not in turns[-1:]]
    return turns


def _expect_template(run: Recorded[SetsInDifferentStates], cliques: Iterable[str], tag: str) -> None:
    """Expect that, in the end, both pods of each of these cliques have this template."""
    expected, view = {clique: [tag] * 2 for clique in cliques}, run.at("end")
    run.same("templates of the pods", expected, {clique: changes.image_tags(view, clique) for clique in expected})
