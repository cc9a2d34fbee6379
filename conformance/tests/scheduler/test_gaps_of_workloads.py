"""Tests with services whose components a scheduler of single PodGroups cannot place correctly. The operator and the
scheduler run together."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.grove.expected import ExpectedClique, expected
from conformance.suite.scenes.api import Object
from conformance.testing import node_selection, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement


class ServiceThatWaits(Scene):
    """A service that does not fit, and a later set without GPUs that may be bound while the service waits."""

    waiting: Sequence[ExpectedClique]
    """The cliques of the service whose pods wait only for room."""

    def create(self, env: SceneEnvironment, workload: Object) -> None:
        """Create the service, and give the scheduler a chance to place it. Wait until a later set is bound, or until a
        timeout if that set waits as well."""
        env.create(workload)
        env.wait_for("service ungated", predicates.all_ungated(self.waiting))
        later = env.workload("frontend", setName="later")
        env.create(later)
        env.settle("later set bound", predicates.all_bound(list(expected(later).cliques.values())), 20)
        env.quiet(1)
        env.mark("service tried")


class WorkersOfThreeNodes(ServiceThatWaits):
    """Each worker takes three nodes, and two of three workers are the minimum. The five nodes have room for one worker
    and two thirds of another. Later there are eight nodes, then nine."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 5)
        workload = env.workload(
            "disaggregated",
            routers=1,
            workers=3,
            workersMinAvailable=2,
            prefills=2,
            prefillGpus=2,
            decodes=1,
            decodeGpus=2,
        )
        expected_set = expected(workload)
        [base] = expected_set.base_gangs
        [scaled] = expected_set.scaled_gangs
        self.waiting, self.third = expected_set.of_gang(base.name), expected_set.of_gang(scaled.name)
        self.create(env, workload)
        env.nodes("tiny", 3)
        env.wait_for("two workers bound", predicates.all_bound(self.waiting))
        env.wait_for("third worker ungated", predicates.all_ungated(self.third))
        env.quiet(1)
        env.mark("third worker tried")
        env.nodes("tiny", 1)
        env.wait_for("third worker bound", predicates.all_bound(self.third))


class NoNodeForDecode(ServiceThatWaits):
    """Ten nodes for ten prefill pods. No node has room for the decode pod. Later a larger node is added for the decode
    pod alone."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 10)
        workload = env.workload("components", prefills=10, decodes=1, decodeGpus=8)
        node_selection.restrict_to_gpu_nodes(workload, "prefill", gpus=2)
        expected_set = expected(workload)
        [gang] = expected_set.gangs.values()
        self.waiting = expected_set.of_gang(gang.name)
        self.create(env, workload)
        env.nodes("dgx-h100", 1)
        env.wait_for("service bound", predicates.is_admitted(expected_set, gang))


class RoomForOneOfEach(Scene):
    """A service of four prefill and two decode pods. The minimum of each component is one pod. Two nodes are added
    after the service has been created."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("components", prefills=4, decodes=2)
        expected_set = expected(workload)
        [self.gang] = expected_set.gangs.values()
        self.cliques = expected_set.of_gang(self.gang.name)
        env.create(workload)
        # A scheduler can prefer extra pods only once they are ungated.
        env.wait_for("service ungated", predicates.all_ungated(self.cliques))
        env.nodes("tiny", 2)
        env.wait_for("minimum bound", predicates.is_admitted(expected_set, self.gang))
        env.quiet(1)
        env.mark("nothing moves")


@requirement("SCHED-061")
def test_workers_are_placed_whole(run: Recorded[WorkersOfThreeNodes]) -> None:
    """No pod of the base gang is bound before two workers fit, and no pod of the third worker before the third worker
    fits."""
    run.given("service ungated")
    run.always("no pod of two workers is bound", predicates.none_bound(run.scene.waiting), until="service tried")
    run.given("third worker ungated")
    run.always("no pod of the third is bound", predicates.none_bound(run.scene.third), until="third worker tried")


@requirement("SCHED-062", reaches="service bound")
def test_prefill_pods_wait_for_a_decode_pod(run: Recorded[NoNodeForDecode]) -> None:
    """All ten prefill pods would fit, but none may be bound before the decode pod fits."""
    run.given("service ungated")
    run.always("no pod is bound", predicates.none_bound(run.scene.waiting), until="service tried")


@requirement("SCHED-063", reaches="minimum bound")
def test_minimum_of_all_groups_before_extras(run: Recorded[RoomForOneOfEach]) -> None:
    """The two nodes have room for two pods. One pod of each component must be bound, although either component could
    use both nodes."""
    bound = predicates.bound_counts(run.at("nothing moves"), run.scene.cliques)
    run.expect("bound pods where two fit", dict(run.scene.gang.minimums), bound)
