"""Tests with a standalone clique that loses its last pod, and a scaled gang that loses a pod above its minimum."""

from __future__ import annotations

from conformance.grove import pods
from conformance.grove.expected import expected
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.disruption import CLIQUES
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

STANDALONE_CLIQUE, SCALED_CLIQUE = "e-0-a", "e-0-g-1-c"
"""The standalone clique, and a clique of a scaled gang. Each of them has two pods and minAvailable 1."""


class CliqueEmptied(Scene):
    """One node, which is cordoned when a set is available on it, and a terminationDelay of one second. A standalone
    clique and a clique of a scaled gang each lose a pod, which reduces them to their minimum. Later the standalone
    clique also loses its other pod."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", 1)
        minimums = {"aloneMinAvailable": 1, "groupsMinAvailable": 1, "membersMinAvailable": 1}
        workload = env.workload("kept", setName="e", delay="1s", **minimums)
        cliques = list(expected(workload).cliques.values())
        self.cliques = [clique.name for clique in cliques]
        self.other_cliques = [name for name in self.cliques if not name.startswith("e-0-g-1-")]
        env.create(workload)
        env.wait_for("set available", predicates.is_available("e", 1))
        env.wait_for("pods Ready", pods_are(predicates.sizes(cliques), ready=True))
        disruption.cordon(env, nodes)
        disruption.delete_pods(env, STANDALONE_CLIQUE, 1)
        disruption.delete_pods(env, SCALED_CLIQUE, 1)
        env.wait_for("cliques at their minimum", disruption.have_bound_pods({STANDALONE_CLIQUE: 1, SCALED_CLIQUE: 1}))
        env.quiet(4, real=True)
        env.mark("last pod lost")
        before = incarnations.uids(env.history.view(), CLIQUES)
        for pod in disruption.pods_by_index(env, STANDALONE_CLIQUE):
            if pods.is_bound(pod):
                env.delete("pods", pod["metadata"]["name"])
        env.settle(
            "cliques of its gang recreated", incarnations.are_recreated(CLIQUES, self.other_cliques, before), 120
        )
        env.settle("all cliques recreated", incarnations.are_recreated(CLIQUES, self.cliques, before), 120)


@requirement("TERM-001", reaches="cliques of its gang recreated")
def test_a_clique_without_any_pod_has_its_replica_recreated(run: Recorded[CliqueEmptied]) -> None:
    """A clique with no scheduled pod left is breached as well."""
    run.given("set available", "pods Ready")


@requirement("TERM-027", reaches="all cliques recreated")
def test_scaled_gangs_are_recreated_with_their_base_gang(run: Recorded[CliqueEmptied]) -> None:
    """The scaled gang still has all the pods that it needs."""
    run.given("set available", "pods Ready", "cliques of its gang recreated")


@requirement("TERM-009")
def test_cliques_at_their_minimum_are_spared(run: Recorded[CliqueEmptied]) -> None:
    """A clique of a scaled gang whose pod is not replaced is judged by its minimum, like a standalone clique."""
    run.given("pods Ready", "cliques at their minimum")
    one_each = dict.fromkeys(run.scene.cliques, 1)
    run.same(
        "cliques that each name has had", one_each, disruption.incarnation_counts(run.until("last pod lost"), one_each)
    )


test_invariants = invariants(CliqueEmptied, "INV-001", "INV-004", "INV-005")
