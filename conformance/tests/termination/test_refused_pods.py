"""Tests with pods that the API server rejects at first. Their gang has never run, however late its conditions
appear."""

from __future__ import annotations

from conformance.testing import disruption, observed
from conformance.testing.disruption import CLIQUES
from conformance.testing.quotas import limit_pods
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

REFUSED_SECONDS = 8.0
"""Seconds for which pods are rejected. If a condition first appears more than five seconds after the creation of its
clique, some operators conclude that the condition has changed (CHG-DF04)."""
NAMES = ("late-0-a", "late-0-g-0-b", "late-0-g-0-c")


class PodsRefusedAtFirst(Scene):
    """There are no nodes, and for some seconds all pods of a set exceed a quota. When the pods exist, they stay
    Pending. The terminationDelay is one second."""

    def play(self, env: SceneEnvironment) -> None:
        limit_pods(env, "none", 0)
        env.create(
            env.workload(
                "kept", setName="late", groups=1, groupsMinAvailable=1, members=1, membersMinAvailable=1, delay="1s"
            )
        )
        env.wait_for("cliques exist", observed.are_present(CLIQUES, NAMES))
        created = env.history.now()
        while (rest := created + REFUSED_SECONDS - env.history.now()) > 0:
            env.quiet(rest, rest, real=True)
        env.delete("resourcequotas", "none")
        env.wait_for("pods exist", pods_are({"late-0-a": 2, "late-0-g-0-b": 1, "late-0-g-0-c": 1}), 120)
        # A later set gets all its objects, which shows that the operator had a chance to terminate the first set.
        env.create(env.workload("frontend", setName="later", pods=1))
        env.wait_for("pods of a later set exist", pods_are({"later-0-web": 1}))
        env.quiet(6, real=True)
        env.mark("nothing moves")


@requirement("TERM-021")
def test_a_gang_that_never_ran_is_not_terminated(run: Recorded[PodsRefusedAtFirst]) -> None:
    """A set that is created later gets its pods, which shows that the operator had a chance to terminate the first
    set."""
    run.given("cliques exist", "pods exist", "pods of a later set exist")
    one_each = dict.fromkeys(NAMES, 1)
    run.same(
        "cliques that each name has had", one_each, disruption.incarnation_counts(run.until("nothing moves"), one_each)
    )


test_invariants = invariants(PodsRefusedAtFirst, "INV-001", "INV-004")
