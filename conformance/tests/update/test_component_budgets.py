"""Tests of the number of members of a component that are unavailable at the same time during an update with the
strategy RollingRecreate."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import pods
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes

POD_COUNT, POD_BUDGET = 6, 3
REPLICA_COUNT, REPLICA_BUDGET = 5, 2
CLIQUE, GROUP, WHOLE_SET = "c", "g", "w"
"""The names of the sets. In the first set, a standalone clique is updated. In the second set, a scaling group is
updated. In the third set, a clique that needs all its pods is updated."""
MEMBERS = tuple(f"{GROUP}-0-g-{index}-{clique}" for index in range(REPLICA_COUNT) for clique in "bc")


class ComponentsWithBudgets(Scene):
    """One node with room for all pods. The clique of `c` has six pods and maxUnavailable 3. The scaling group of `g`
    has five replicas and maxUnavailable 2. The clique of `w` is like the clique of `c`, but needs all its pods. `w` is
    left out if admission rejects it. All sets are changed at the same time. New pods become Ready only when they are
    released."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        small = {"aloneMinAvailable": 1, "groups": 1, "groupsMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        workloads = {
            CLIQUE: env.workload("kept", setName=CLIQUE, alone=POD_COUNT, **small),
            GROUP: env.workload("kept", setName=GROUP, alone=1, **{**small, "groups": REPLICA_COUNT}),
            WHOLE_SET: env.workload(
                "kept", setName=WHOLE_SET, alone=POD_COUNT, **{**small, "aloneMinAvailable": POD_COUNT}
            ),
        }
        for set_name, workload in workloads.items():
            _give_budget(workload, of_group=set_name == GROUP)
        [reply] = env.dry_run.all([env.dry_run.create(workloads[WHOLE_SET])])
        env.mark(f"{WHOLE_SET}: accepted", "" if reply.accepted else f"refused: {reply.message}")
        if not reply.accepted:
            del workloads[WHOLE_SET]
        for workload in workloads.values():
            env.create(workload)
        env.wait_for("sets available", all_of(*(predicates.is_available(set_name, 1) for set_name in workloads)))
        of_cliques = [set_name for set_name in workloads if set_name != GROUP]
        sizes = {**{f"{set_name}-0-a": POD_COUNT for set_name in of_cliques}, **dict.fromkeys(MEMBERS, 1)}
        env.wait_for("all pods Ready", changes.report_ready(sizes))
        env.quiet(1)
        env.mark("change")
        before = {}
        for set_name, workload in workloads.items():
            parts = ("b", "c") if set_name == GROUP else ("a",)
            changes.hold_pods(workload, *parts)
            before[set_name] = changes.change_image(env, workload, *parts, tag="2")
        changes.require_held(env, f"{CLIQUE}-0-a")
        for set_name in of_cliques:
            env.settle(f"{set_name}: budget used", _has_waiting_pods(f"{set_name}-0-a", POD_BUDGET), 60)
        env.settle(f"{GROUP}: budget used", _has_waiting_replicas(REPLICA_BUDGET), 60)
        env.quiet(1.5)
        env.mark("first pods replaced")
        every = [*(f"{set_name}-0-a" for set_name in of_cliques), *MEMBERS]
        ends = all_of(*(changes.has_ended(set_name, generation) for set_name, generation in before.items()))
        changes.release_until(env, "updates end", every, ends)
        for set_name, generation in before.items():
            env.settle(f"{set_name}: update ended", changes.has_ended(set_name, generation), 30)
        env.quiet(1)
        env.mark("end")


def _give_budget(workload: Object, *, of_group: bool) -> None:
    template = workload["spec"]["template"]
    if of_group:
        template["podCliqueScalingGroups"][0]["rollingUpdate"] = {"maxUnavailable": REPLICA_BUDGET}
    else:
        template["cliques"][0]["rollingUpdate"] = {"maxUnavailable": POD_BUDGET}


def _ready_count(view: View, clique: str) -> int:
    return sum(map(pods.is_ready, predicates.pods_of(view, clique)))


@predicate
def _has_waiting_pods(view: View, clique: str, count: int) -> bool | Unmet:
    """Exactly `count` new pods of a clique wait to become Ready."""
    waiting = len(changes.held_pods(view, clique))
    return waiting == count or Unmet(f"{waiting} of {count} new pods of {clique} wait to become Ready")


def _unavailable_replicas(view: View) -> int:
    """Return the number of replicas of the group that are not complete and Ready; 0 before the group exists."""
    if view.get(changes.GROUPS, f"{GROUP}-0-g") is None:
        return 0
    ready: Mapping[str, int] = {clique: _ready_count(view, clique) for clique in MEMBERS}
    return sum(not all(ready[f"{GROUP}-0-g-{index}-{clique}"] for clique in "bc") for index in range(REPLICA_COUNT))


@predicate
def _has_waiting_replicas(view: View, count: int) -> bool | Unmet:
    """The new pods of exactly `count` replicas of the group wait to become Ready."""
    waiting = sum(bool(changes.held_pods(view, f"{GROUP}-0-g-{index}-b")) for index in range(REPLICA_COUNT))
    return waiting == count or Unmet(f"new pods of {waiting} replicas wait to become Ready, not of {count}")


@requirement("UPD-047", reaches=f"{CLIQUE}: update ended")
def test_a_clique_has_at_most_its_budget_unavailable(run: Recorded[ComponentsWithBudgets]) -> None:
    """The new pods are held, so that the whole budget is used for a while."""
    _expect_within_budget(run, f"{CLIQUE}-0-a")


@requirement("UPD-060", reaches=f"{WHOLE_SET}: update ended")
def test_a_clique_that_needs_all_its_pods_is_updated(run: Recorded[ComponentsWithBudgets]) -> None:
    """The minAvailable of the clique exceeds the number of pods that maxUnavailable leaves available."""
    run.given(f"{WHOLE_SET}: accepted")
    _expect_within_budget(run, f"{WHOLE_SET}-0-a")


def _expect_within_budget(run: Recorded[ComponentsWithBudgets], clique: str) -> None:
    """Expect that at most maxUnavailable pods of a clique are unavailable at any time during the update."""

    def within(view: View) -> bool | Unmet:
        unavailable = POD_COUNT - _ready_count(view, clique) if view.get(changes.CLIQUES, clique) else 0
        return unavailable <= POD_BUDGET or Unmet(f"{unavailable} of {POD_COUNT} pods of {clique} are not Ready")

    run.always(f"at most {POD_BUDGET} pods of {clique} are not Ready", within, after="change", until="end")


@requirement("UPD-048", reaches=f"{GROUP}: update ended")
def test_a_group_has_at_most_its_budget_unavailable(run: Recorded[ComponentsWithBudgets]) -> None:
    """A replica is unavailable if one of its pods is not Ready."""

    def within(view: View) -> bool | Unmet:
        unavailable = _unavailable_replicas(view)
        return unavailable <= REPLICA_BUDGET or Unmet(
            f"{unavailable} of {REPLICA_COUNT} replicas of the group are not available"
        )

    run.always(f"at most {REPLICA_BUDGET} replicas are unavailable", within, after="change", until="end")


@requirement("UPD-049", reaches=(f"{CLIQUE}: budget used", f"{GROUP}: budget used"))
def test_an_update_uses_its_budget(run: Recorded[ComponentsWithBudgets]) -> None:
    """The new pods are not released before maxUnavailable is used up."""


test_invariants = invariants(ComponentsWithBudgets, "INV-001", "INV-004", "INV-005", "INV-009")
