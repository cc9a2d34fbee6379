"""Tests of a single PodGroup with minCount, for which KEP-4671 makes promises."""

from __future__ import annotations

from conformance.testing.benches import Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf

UNSCHEDULABLE_REASON, SCHEDULED_REASON = "False/Unschedulable", "True/Scheduled"


class GangWithoutRoom(Scene):
    """Two nodes for a gang of three pods with minCount 3, and later a third node."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench, self.gang = Bench(env, "short"), Leaf("g", pods=3, minimum=3)
        self.bench.add_nodes(1, 1)
        self.bench.submit(self.gang)
        env.settle("the gang says that it waits", self.bench.has_reason("podgroups", "g", UNSCHEDULABLE_REASON))
        env.settle("its Pods say that they wait", self.bench.has_reason("pods", "g-0", UNSCHEDULABLE_REASON))
        self.bench.bind_witness()
        env.mark("tried")
        self.bench.add_nodes(1)
        env.wait_for("whole gang bound", self.bench.all_bound(self.gang))
        env.settle("the gang says that it is placed", self.bench.has_reason("podgroups", "g", SCHEDULED_REASON))


class GangWithRoomForItsMinimum(Scene):
    """Two nodes for a gang of four pods with minCount 2, and later two more nodes."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench, self.gang = Bench(env, "extras"), Leaf("g", pods=4, minimum=2)
        self.bench.add_nodes(1, 1)
        self.bench.submit(self.gang)
        env.wait_for("minimum bound", self.bench.has_bound((self.gang, 2)))
        self.bench.bind_witness()
        env.mark("extras tried")
        self.bench.add_nodes(1, 1)
        env.wait_for("extras bound", self.bench.all_bound(self.gang))


class IncompleteGangs(Scene):
    """Pods whose PodGroup does not exist yet, and a PodGroup with fewer pods than its minCount. There is room for all
    pods."""

    def play(self, env: SceneEnvironment) -> None:
        self.groupless, self.podless = Bench(env, "groupless"), Bench(env, "podless")
        self.early, self.gang = Leaf("g", pods=2, minimum=2), Leaf("g", pods=3, minimum=3)
        self.groupless.add_nodes(1, 1)
        self.podless.add_nodes(1, 1, 1)
        self.groupless.create_pods(self.early)
        self.podless.create_groups(self.gang)
        self.podless.create_pods(self.gang, count=2)
        self.groupless.bind_witness()
        self.podless.bind_witness()
        env.mark("incomplete")
        self.groupless.create_groups(self.early)
        env.wait_for("bound with their PodGroup", self.groupless.all_bound(self.early))
        self.podless.create_pods(self.gang, first=2, count=1)
        env.wait_for("bound with the last Pod", self.podless.all_bound(self.gang))


@requirement("WAPI-001")
def test_no_pod_of_a_gang_that_does_not_fit_is_bound(run: Recorded[GangWithoutRoom]) -> None:
    run.always("no pod is bound", run.scene.bench.none_bound(run.scene.gang), until="tried")


@requirement("WAPI-002", reaches="whole gang bound")
def test_a_waiting_gang_is_bound_once_there_is_room(run: Recorded[GangWithoutRoom]) -> None: ...


@requirement("WAPI-003", reaches=("the gang says that it waits", "its Pods say that they wait"))
def test_a_waiting_gang_says_so(run: Recorded[GangWithoutRoom]) -> None: ...


@requirement("WAPI-004", reaches=("minimum bound", "extras bound"))
def test_the_minimum_is_bound_without_the_extras(run: Recorded[GangWithRoomForItsMinimum]) -> None: ...


@requirement("WAPI-005", reaches="bound with their PodGroup")
def test_pods_wait_for_their_pod_group(run: Recorded[IncompleteGangs]) -> None:
    run.always("no pod is bound", run.scene.groupless.none_bound(run.scene.early), until="incomplete")


@requirement("WAPI-006", reaches="bound with the last Pod")
def test_a_gang_waits_for_its_last_pod(run: Recorded[IncompleteGangs]) -> None:
    run.always("no pod is bound", run.scene.podless.none_bound(run.scene.gang), until="incomplete")
