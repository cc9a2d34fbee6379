"""Tests in which a set and its scaling groups are scaled out while no pod of the set is running."""

from __future__ import annotations

from typing import Any

from conformance.grove.expected import expected
from conformance.testing import predicates
from conformance.testing.disruption import GROUPS, SETS
from conformance.testing.observed import all_of, are_present
from conformance.testing.scaled import scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

SIZES: dict[str, Any] = {
    "routers": 1,
    "workersMinAvailable": 2,
    "prefills": 2,
    "prefillsMinAvailable": 1,
    "prefillGpus": 4,
    "decodeGpus": 4,
}
"""A replica of the scaling group requires one prefill pod and one decode pod, which together request the GPUs of a
whole node. In addition, each replica has one prefill pod that it does not require."""


class ScaledOutWhileItWaits(Scene):
    """One node, on which the base gang does not fit because it needs two nodes. While it waits, the set gets a second
    replica, and the scaling group of each replica gets one more replica. Finally there is room for all pods."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 1)
        first_set = env.workload("disaggregated", workers=3, **SIZES)
        [waiting] = expected(first_set).base_gangs
        self.expected = expected(env.workload("disaggregated", replicas=2, workers=4, **SIZES))
        cliques = list(self.expected.cliques.values())
        self.base_cliques = [clique for gang in self.expected.base_gangs for clique in self.expected.of_gang(gang.name)]
        self.scaled_cliques = [
            clique for gang in self.expected.scaled_gangs for clique in self.expected.of_gang(gang.name)
        ]
        env.create(first_set)
        env.wait_for("the base gang waits", predicates.all_ungated(expected(first_set).of_gang(waiting.name)))
        scale(env, GROUPS, "inference-0-workers", 4)
        scale(env, SETS, "inference", 2)
        env.wait_for("the second replica has its group", are_present(GROUPS, ["inference-1-workers"]))
        scale(env, GROUPS, "inference-1-workers", 4)
        env.wait_for("all pods exist", predicates.all_exist(cliques))
        env.wait_for("both base gangs wait", predicates.all_ungated(self.base_cliques))
        env.quiet(1)
        env.mark("nothing fits")
        env.nodes("dgx-h100", 12)
        minimums = (predicates.has_minimum_ready(self.expected, gang) for gang in self.expected.base_gangs)
        env.wait_for("minimums of the base gangs Ready", all_of(*minimums))
        env.wait_for("scaled gangs ungated", predicates.all_ungated(self.scaled_cliques))
        env.wait_for("everything bound", predicates.all_bound(cliques))


@requirement("SCHED-001")
def test_what_does_not_fit_is_not_bound(run: Recorded[ScaledOutWhileItWaits]) -> None:
    """Single pods of all four gangs would fit on the node."""
    run.always("no pod of a base gang is bound", predicates.none_bound(run.scene.base_cliques), until="nothing fits")


@requirement("GANG-007")
def test_added_replicas_keep_their_gates(run: Recorded[ScaledOutWhileItWaits]) -> None:
    """The replicas were added after their base gang, and wait for it like the replicas that existed from the start."""
    run.always(
        "no pod of a scaled gang is ungated", predicates.none_ungated(run.scene.scaled_cliques), until="nothing fits"
    )


@requirement("SCALE-006", reaches="all pods exist")
def test_a_group_is_scaled_out_whose_gang_waits(run: Recorded[ScaledOutWhileItWaits]) -> None: ...


@requirement("GANG-008", reaches="scaled gangs ungated")
def test_added_replicas_lose_their_gates(run: Recorded[ScaledOutWhileItWaits]) -> None: ...


@requirement("SCHED-006", reaches="everything bound")
def test_everything_is_bound_in_the_end(run: Recorded[ScaledOutWhileItWaits]) -> None: ...


test_invariants = invariants(ScaledOutWhileItWaits, "INV-001", "INV-002", "INV-004", "INV-005", "INV-008", "INV-010")
