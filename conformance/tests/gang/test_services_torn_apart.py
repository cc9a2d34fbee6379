"""Tests that an inference service is not placed partly if it fits only partly.

A scheduler that considers one pod at a time binds every pod that fits, so GPUs are taken although nothing is served.
Both scenes detect this regardless of the order in which pods are scheduled.
"""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement


class ServiceThatDoesNotFit(Scene):
    """A service that does not fit. A later set without GPUs is bound, which shows that the scheduler has considered the
    service."""

    def create(self, env: SceneEnvironment, workload: Object) -> None:
        """Create the service and then a later set. The later set proves that the scheduler had a chance to place the
        service."""
        self.service = list(expected(workload).cliques.values())
        env.create(workload)
        env.wait_for("service ungated", predicates.all_ungated(self.service))
        later_set = env.workload("frontend", setName="later")
        env.create(later_set)
        env.wait_for("later set bound", predicates.all_bound(list(expected(later_set).cliques.values())))
        env.quiet(1)
        env.mark("service tried")


class NoDecodePodFits(ServiceThatDoesNotFit):
    """Ten nodes with one GPU each. Each of the ten prefill pods fits, but a decode pod requests two GPUs on one
    node."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("single", 10)
        self.create(env, env.workload("serve", prefills=10, decodes=2, decodeGpus=2))


class OneNodeShort(ServiceThatDoesNotFit):
    """Five nodes with one GPU each, later six. The minimum is four prefill and two decode pods. Each PodGroup fits
    alone, but both together need six nodes."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("single", 5)
        self.create(env, env.workload("serve", prefills=4, prefillsMinAvailable=4, decodes=2, decodesMinAvailable=2))
        env.nodes("single", 1)
        env.wait_for("service bound on six nodes", predicates.all_bound(self.service))


@requirement("SCHED-007")
def test_no_prefill_pod_is_bound_where_no_decode_pod_fits(run: Recorded[NoDecodePodFits]) -> None:
    run.given("service ungated")
    run.always("no pod of the service is bound", predicates.none_bound(run.scene.service), until="service tried")


@requirement("SCHED-008", reaches="service bound on six nodes")
def test_a_service_over_six_nodes_waits_for_the_sixth(run: Recorded[OneNodeShort]) -> None:
    run.given("service ungated")
    run.always("no pod of the service is bound", predicates.none_bound(run.scene.service), until="service tried")


@requirement("SCHED-005", reaches="later set bound")
def test_a_later_set_is_bound(run: Recorded[NoDecodePodFits | OneNodeShort]) -> None: ...


test_invariants = invariants(NoDecodePodFits | OneNodeShort, "INV-003", "INV-010")
