"""Tests with gangs that compete, and of the order within one gang."""

from __future__ import annotations

from conformance.grove.fields import text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing.benches import Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf


class TwoGangsForOneRoom(Scene):
    """Two gangs of two pods each, and three nodes. The gates of the two gangs are removed alternately. The third node
    has room for a pod that belongs to no gang. Then the pods of the running gang are deleted."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "rivals")
        self.gangs = [Leaf("a", pods=2, minimum=2), Leaf("b", pods=2, minimum=2)]
        self.bench.add_nodes(1, 1, 1)
        self.bench.create_groups(*self.gangs)
        for gang in self.gangs:
            self.bench.create_pods(gang, gated=True)
        for index in range(2):
            for gang in self.gangs:
                self.bench.ungate(gang, index)
        winner = env.wait_for("one gang bound", self._winner)
        [self.loser] = [gang for gang in self.gangs if gang is not winner]
        self.bench.create_plain_pod("single")
        env.wait_for("single Pod bound", self.bench.are_running("single"))
        self.bench.bind_witness()
        env.mark("the other has waited")
        for index in range(2):
            self.bench.delete_pod(winner, index)
        env.wait_for("the other gang bound", self.bench.all_bound(self.loser))

    def _winner(self, view: View) -> Leaf | Unmet:
        bound = [gang for gang in self.gangs if self.bench.all_bound(gang)(view)]
        return bound[0] if bound else Unmet(f"bound are {self.bench.bound_counts(view, *self.gangs)} of a and b")


class UnevenNodes(Scene):
    """Equal pods of one gang, and nodes of several sizes that together have room for exactly these pods."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench, self.gang = Bench(env, "uneven"), Leaf("g", pods=7, minimum=7)
        self.bench.add_nodes(1, 3, 2, 1)
        self.bench.submit(self.gang)
        env.wait_for("whole gang bound", self.bench.all_bound(self.gang))


class OlderPodsFirst(Scene):
    """A gang of four pods with minCount 2, and two nodes. Because creation times are in whole seconds, two pods are
    more than a second older than the other pods. The names of the older pods sort last."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench, self.gang = Bench(env, "ages"), Leaf("g", pods=4, minimum=2)
        self.bench.add_nodes(1, 1)
        self.bench.create_groups(self.gang)
        self.bench.create_pods(self.gang, first=2, count=2, gated=True)
        env.wait_for("a second later", lambda view: len(self.bench.live_pods(view, self.gang)) == 2)
        env.quiet(2.2, real=True)
        self.bench.create_pods(self.gang, first=0, count=2, gated=True)
        for index in range(4):
            self.bench.ungate(self.gang, index)
        env.wait_for("minimum bound", self.bench.has_bound((self.gang, 2)))
        self.bench.bind_witness()
        env.mark("at rest")


class HopelessGang(Scene):
    """A gang of three pods of high priority, and two nodes with pods of low priority. Evicting the latter would not
    make enough room."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "hopeless")
        self.bench.create_priority_classes(1, 10)
        self.gang = Leaf("g", pods=3, minimum=3, priority="conformance-10")
        self.bench.add_nodes(1, 1)
        for victim in ("x", "y"):
            self.bench.create_plain_pod(victim, priority="conformance-1")
        env.wait_for("low Pods bound", self.bench.are_running("x", "y"))
        self.bench.submit(self.gang)
        env.wait_for("gang tried", self.bench.has_reason("pods", "g-0", "False/Unschedulable"))
        self.bench.bind_witness()
        env.mark("at rest")


@requirement("WAPI-012", reaches=("one gang bound", "the other gang bound"))
def test_of_two_gangs_one_is_bound_whole(run: Recorded[TwoGangsForOneRoom]) -> None:
    run.always(
        "no Pod of the other is bound", run.scene.bench.none_bound(run.scene.loser), until="the other has waited"
    )


@requirement("WAPI-013", reaches="single Pod bound")
def test_a_waiting_gang_holds_up_nobody(run: Recorded[TwoGangsForOneRoom]) -> None:
    run.given("one gang bound")


@requirement("WAPI-014", reaches="whole gang bound")
def test_equal_pods_are_placed_where_they_fit(run: Recorded[UnevenNodes]) -> None: ...


@requirement("WAPI-015")
def test_older_pods_of_a_gang_are_placed_first(run: Recorded[OlderPodsFirst]) -> None:
    run.given("minimum bound")
    bound = [name for name in (f"g-{i}" for i in range(4)) if run.scene.bench.is_running(run.at("at rest"), name)]
    run.expect("the bound Pods", ["g-2", "g-3"], bound)


@requirement("WAPI-016")
def test_no_node_stays_nominated_for_a_gang_that_failed(run: Recorded[HopelessGang]) -> None:
    view = run.at("at rest")
    nominated = {
        text(pod, "metadata", "name"): text(pod, "status", "nominatedNodeName")
        for pod in run.scene.bench.live_pods(view, run.scene.gang)
    }
    run.expect("nominated nodes", dict.fromkeys(nominated, ""), nominated)


@requirement("WAPI-017")
def test_nobody_is_evicted_in_vain(run: Recorded[HopelessGang]) -> None:
    run.given("gang tried")
    run.always(
        "the low Pods run",
        run.scene.bench.are_running("x", "y"),
        after="low Pods bound",
        until="at rest",
    )
