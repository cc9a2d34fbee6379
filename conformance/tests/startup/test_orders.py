"""Tests of the order in which cliques start, for each startup type. All parents are held back at first and then
released step by step."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove.expected import ExpectedClique, expected
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.startup.predicates import (
    are_ready,
    are_waiting,
    none_are_ready,
    pod_names,
    release,
    require_premises,
    with_held_pods,
)

ANY_ORDER, IN_ORDER, EXPLICIT, BEHIND_GROUP = "any", "order", "explicit", "after-group"
"""The names of the sets. In BEHIND_GROUP, a clique starts after a scaling group."""
ORDERED = (IN_ORDER, EXPLICIT)
ALL_HELD, FRONTS_HELD, ONE_HELD = "all held back", "fronts held back", "a base replica held back"
OTHERS_HELD, LAST_STEP, WORKERS = "scaled gangs held back", "the end", "workers without order are Ready"


def scaled_step(set_name: str) -> str:
    """Return the step at which one scaled gang of a set is Ready."""
    return f"a scaled gang of {set_name} is Ready"


def base_step(set_name: str) -> str:
    """Return the step at which the base gang of a set is Ready."""
    return f"the base gang of {set_name} is Ready"


class HeldBackInEachOrder(Scene):
    """Nodes with room for all pods. There is a set of each startup type, with two replicas of a scaling group in the
    base gang and two in scaled gangs. Fronts and leaders are held back. First the leader of one replica in the base
    gang is released, then the front, then the other leader, and then the leader of one scaled gang. The leader of the
    other scaled gang stays held back. In another set a clique starts after a scaling group, whose replicas are released
    one by one."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        types = {ANY_ORDER: "AnyOrder", IN_ORDER: "InOrder", EXPLICIT: "Explicit"}
        chains = [
            env.workload(
                "chain", setName=name, startup=f"CliqueStartupType{of_type}", fronts=1, groups=4, groupsMinAvailable=2
            )
            for name, of_type in types.items()
        ]
        workloads = [
            *(with_held_pods(chain, "fe", "ld") for chain in chains),
            with_held_pods(env.workload("after-group"), "wk"),
        ]
        self.cliques = {name: clique for workload in workloads for name, clique in expected(workload).cliques.items()}
        for workload in workloads:
            env.create(workload)
        # Pods of scaled gangs may wait until the base gang is Ready.
        base = [clique for clique in self.cliques.values() if not clique.base_gang]
        env.wait_for("base gangs bound", predicates.all_bound(base))
        env.wait_for("base gangs under way", are_waiting(base))
        env.settle(WORKERS, are_ready(self.of(ANY_ORDER, "wk", (0, 1))), 60)
        require_premises(env, *workloads)
        env.quiet(1)
        env.mark(ALL_HELD)
        self._release(env, [*(f"{set_name}-0-sg-0-ld" for set_name in ORDERED), f"{BEHIND_GROUP}-0-sg-0-wk"])
        env.quiet(1)
        env.mark(FRONTS_HELD)
        self._release(env, [f"{set_name}-0-fe" for set_name in ORDERED])
        env.settle("fronts Ready", are_ready([self.cliques[f"{set_name}-0-fe"] for set_name in ORDERED]), 60)
        env.quiet(1)
        env.mark(ONE_HELD)
        self._release(env, [*(f"{set_name}-0-sg-1-ld" for set_name in ORDERED), f"{BEHIND_GROUP}-0-sg-1-wk"])
        for set_name in (*ORDERED, BEHIND_GROUP):
            env.settle(base_step(set_name), are_ready(self.base(set_name)), 60)
        scaled_cliques = [clique for set_name in ORDERED for clique in self.of(set_name, "", (2, 3))]
        env.settle(
            "scaled gangs under way", all_of(predicates.all_bound(scaled_cliques), are_waiting(scaled_cliques)), 60
        )
        env.quiet(1)
        env.mark(OTHERS_HELD)
        for set_name in ORDERED:
            self._release(env, [f"{set_name}-0-sg-2-ld"])
            env.settle(scaled_step(set_name), are_ready(self.of(set_name, "", (2,))), 60)
        env.quiet(1)
        env.mark(LAST_STEP)

    def of(self, set_name: str, template: str, replicas: Iterable[int]) -> list[ExpectedClique]:
        """Return the cliques of these replicas of a set's scaling group. If `template` is not empty, return only the
        cliques of that template."""
        heads = tuple(f"{set_name}-0-sg-{replica}-{template}" for replica in replicas)
        return [member for name, member in self.cliques.items() if name.startswith(heads)]

    def base(self, set_name: str) -> list[ExpectedClique]:
        """Return the cliques of the base gang of a set."""
        return [c for name, c in self.cliques.items() if name.startswith(f"{set_name}-0-") and not c.base_gang]

    def _release(self, env: SceneEnvironment, cliques: Iterable[str]) -> None:
        for clique in cliques:
            for pod in pod_names(env.history.view(), clique):
                release(env, pod)


@requirement("START-001", reaches=WORKERS)
def test_any_order_waits_for_nothing(run: Recorded[HeldBackInEachOrder]) -> None:
    """The workers' template lists the fronts and leaders in startsAfter, and all fronts and leaders are held back."""


@requirement("START-002", reaches=base_step(IN_ORDER))
def test_a_base_gang_starts_in_the_order_of_the_template(run: Recorded[HeldBackInEachOrder]) -> None:
    """Leaders wait for the front, workers wait for the leaders of both replicas, and no clique waits for the scaled
    gangs."""
    run.given(ALL_HELD)
    scene = run.scene
    leaders, workers = (scene.of(IN_ORDER, clique, (0, 1)) for clique in ("ld", "wk"))
    run.always("no leader of the base gang is Ready", none_are_ready(leaders), until=FRONTS_HELD)
    run.always("no worker of the base gang is Ready", none_are_ready(workers), until=ONE_HELD)


@requirement("START-003", reaches=scaled_step(IN_ORDER))
def test_a_scaled_gang_starts_in_its_own_order(run: Recorded[HeldBackInEachOrder]) -> None:
    """The leader is the first clique of the gang. The worker waits for the leader, although the whole base gang is
    running."""
    _scaled_workers_wait(run, IN_ORDER)


@requirement("START-004", reaches=(base_step(EXPLICIT), base_step(BEHIND_GROUP)))
def test_a_base_gang_starts_after_what_its_templates_name(run: Recorded[HeldBackInEachOrder]) -> None:
    """Workers wait for the front and for the leaders of both replicas. In BEHIND_GROUP, a clique waits for both
    replicas of a group."""
    run.given(ALL_HELD)
    workers = [*run.scene.of(EXPLICIT, "wk", (0, 1)), run.scene.cliques[f"{BEHIND_GROUP}-0-z"]]
    run.always("nothing that others are to start before is Ready", none_are_ready(workers), until=ONE_HELD)


@requirement("START-005", reaches=scaled_step(EXPLICIT))
def test_a_scaled_gang_starts_after_what_its_own_replica_has(run: Recorded[HeldBackInEachOrder]) -> None:
    """The worker's template names the front and the leader, but only the leader is in the worker's gang."""
    _scaled_workers_wait(run, EXPLICIT)


test_invariants = invariants(HeldBackInEachOrder, "INV-001", "INV-004", "INV-005", "INV-006")


def _scaled_workers_wait(run: Recorded[HeldBackInEachOrder], set_name: str) -> None:
    """Expect that no worker of a scaled gang is Ready before its own leader is released."""
    run.given(ALL_HELD)
    for replica, step in ((2, OTHERS_HELD), (3, LAST_STEP)):
        workers = run.scene.of(set_name, "wk", (replica,))
        run.always(f"the worker of replica {replica} is not Ready", none_are_ready(workers), until=step)
    run.given("scaled gangs under way")
