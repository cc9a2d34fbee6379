"""Tests that a gang is bound as a whole or not at all. A waiting gang holds no capacity, and is bound when it fits."""

from __future__ import annotations

from conformance.grove.expected import ExpectedClique, ExpectedObjects, expected
from conformance.testing import composition, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

GPUS = 8
"""The GPUs of one dgx-h100 node. Every GPU pod of this module fills a node, so the number of nodes is the number of
such pods."""


class GangLargerThanThePool(Scene):
    """Two nodes, later more, and a large set whose minimum needs three nodes: a router, two prefill pods and a decode
    pod. Two more pods are above the minimum. Smaller sets are created later and fit."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        large = env.workload(
            "disaggregated",
            setName="large",
            routers=1,
            workers=1,
            prefills=3,
            prefillsMinAvailable=2,
            prefillGpus=GPUS,
            decodes=2,
            decodesMinAvailable=1,
            decodeGpus=GPUS,
        )
        expected_set = expected(large)
        [self.gang] = expected_set.gangs.values()
        self.large_cliques = expected_set.of_gang(self.gang.name)
        env.create(large)
        env.wait_for("large gang initialized", composition.is_initialized(self.large_cliques[0].name))
        env.wait_for("large gang ungated", predicates.all_ungated(self.large_cliques))

        # A later gang that fits proves that the scheduler is working and has tried the large gang.
        small_set = env.workload("frontend", setName="small")
        env.create(small_set)
        env.wait_for("small set bound", predicates.all_bound(_cliques(expected(small_set))))
        env.quiet(1)

        # A set that needs all GPUs proves that the large set does not reserve any GPU.
        filler_set = env.workload("frontend", setName="filler", gpus=GPUS)
        env.create(filler_set)
        env.wait_for("nodes filled", predicates.all_bound(_cliques(expected(filler_set))))
        env.quiet(1)

        # A waiting gang is retried when nodes are added. The large gang does not fit on these nodes either.
        late_workload = env.workload("frontend", setName="late", gpus=GPUS)
        self.late_cliques = _cliques(expected(late_workload))
        env.create(late_workload)
        env.wait_for("late set ungated", predicates.all_ungated(self.late_cliques))
        env.quiet(1)
        env.mark("two nodes more")
        env.nodes("dgx-h100", 2)
        env.wait_for("late set bound", predicates.all_bound(self.late_cliques))
        env.quiet(1)

        env.mark("room for the minimum")
        env.nodes("dgx-h100", 3)
        env.wait_for("large gang's minimum bound", predicates.is_admitted(expected_set, self.gang))
        env.quiet(1)
        env.mark("room for all pods")
        env.nodes("dgx-h100", 2)
        env.wait_for("all pods of the large gang bound", predicates.all_bound(self.large_cliques))


@requirement("GANG-004", reaches="large gang initialized")
def test_a_gang_whose_pods_exist_is_initialized(run: Recorded[GangLargerThanThePool]) -> None: ...


@requirement("GANG-006", reaches=("large gang ungated", "late set ungated"))
def test_waiting_gangs_are_ungated(run: Recorded[GangLargerThanThePool]) -> None:
    """Neither gang fits at the time at which all of its pods exist."""


@requirement("SCHED-001")
def test_a_gang_that_does_not_fit_binds_nothing(run: Recorded[GangLargerThanThePool]) -> None:
    """No pod is bound while other gangs are bound, or when too few nodes are added."""
    large, late_unbound = predicates.none_bound(run.scene.large_cliques), predicates.none_bound(run.scene.late_cliques)
    run.always("no pod of the large gang is bound", large, until="room for the minimum")
    run.always("no pod of the late gang is bound while the nodes are full", late_unbound, until="two nodes more")


@requirement("SCHED-002", reaches="late set bound")
def test_a_waiting_gang_is_bound_once_nodes_appear(run: Recorded[GangLargerThanThePool]) -> None: ...


@requirement("SCHED-003", reaches="large gang's minimum bound")
def test_pods_above_the_minimum_take_no_room_of_the_minimum(run: Recorded[GangLargerThanThePool]) -> None:
    bound = predicates.bound_counts(run.at("room for all pods"), run.scene.large_cliques)
    run.expect("bound pods where only the minimum fits", dict(run.scene.gang.minimums), bound)


@requirement("SCHED-004", reaches="nodes filled")
def test_a_waiting_gang_holds_no_capacity(run: Recorded[GangLargerThanThePool]) -> None: ...


@requirement("SCHED-005", reaches="small set bound")
def test_a_later_gang_that_fits_is_bound(run: Recorded[GangLargerThanThePool]) -> None: ...


@requirement("SCHED-006", reaches="all pods of the large gang bound")
def test_pods_above_the_minimum_are_bound(run: Recorded[GangLargerThanThePool]) -> None: ...


test_invariants = invariants(GangLargerThanThePool, "INV-001", "INV-003", "INV-004", "INV-005", "INV-009", "INV-010")


def _cliques(expected_set: ExpectedObjects) -> list[ExpectedClique]:
    return list(expected_set.cliques.values())
