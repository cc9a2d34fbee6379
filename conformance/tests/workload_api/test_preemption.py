"""Tests with gangs that preempt, and gangs that are preempted."""

from __future__ import annotations

from conformance.testing.benches import Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf, Root, Tree

BENCH_COUNT = 5
"""The number of repetitions of an instance. A scheduler may choose the right victim of a single instance by chance."""
LOW_PRIORITY, MIDDLE_PRIORITY, HIGH_PRIORITY = "conformance-1", "conformance-5", "conformance-10"


class VictimsOfGangs(Scene):
    """A gang and a tree of high priority on nodes that are full of pods of low priority, and a gang that need not evict
    pods because there is free room for it."""

    def play(self, env: SceneEnvironment) -> None:
        self.flat, self.tree = Bench(env, "flat"), Bench(env, "tree", trees=True)
        self.gang = Leaf("g", pods=2, minimum=2, priority=HIGH_PRIORITY)
        self.root = Tree(
            "root",
            [Leaf("p", 1, 1, priority=HIGH_PRIORITY), Leaf("d", 1, 1, priority=HIGH_PRIORITY)],
            2,
            priority=HIGH_PRIORITY,
        )
        self.free = Bench(env, "free")
        self.flat.create_priority_classes(1, 5, 10)
        for bench in (self.flat, self.tree):
            bench.add_nodes(1, 1)
            for pod in ("x", "y"):
                bench.create_plain_pod(pod, priority=LOW_PRIORITY)
        self.free.add_nodes(1, 1, 1)
        self.free.create_plain_pod("x", priority=LOW_PRIORITY)
        for bench, pods in ((self.flat, "xy"), (self.tree, "xy"), (self.free, "x")):
            env.wait_for(f"low Pods of {bench.name} bound", bench.are_running(*pods))
        self.flat.submit(self.gang)
        self.tree.submit(self.root)
        self.free.submit(self.gang)
        env.wait_for("gang bound", self.flat.all_bound(self.gang))
        env.wait_for("gang with free room bound", self.free.all_bound(self.gang))
        self.free.bind_witness()
        env.mark("room was enough")
        env.wait_for("tree has evicted", lambda view: self.tree.are_running("x", "y")(view) is not True)


class VictimsAsAWhole(Scene):
    """Three gangs of low priority on two nodes each: a gang with disruptionMode `all`, a tree whose root has `all`, and
    a gang with `single`. Then a pod of high priority needs one node of each gang."""

    def play(self, env: SceneEnvironment) -> None:
        self.whole, self.tree = Bench(env, "whole"), Bench(env, "tree", trees=True)
        self.single = Bench(env, "single")
        self.gang = Leaf("g", pods=2, minimum=2, priority=LOW_PRIORITY, disruption="all")
        leaves = [Leaf(leaf_name, 1, 1, priority=LOW_PRIORITY, disruption="all") for leaf_name in ("p", "d")]
        self.root = Tree("root", leaves, 2, priority=LOW_PRIORITY, disruption="all")
        self.torn = Leaf("g", pods=2, minimum=2, priority=LOW_PRIORITY, disruption="single")
        self.whole.create_priority_classes(1, 10)
        self.parts: list[tuple[Bench, Root]] = [
            (self.whole, self.gang),
            (self.tree, self.root),
            (self.single, self.torn),
        ]
        for bench, victim in self.parts:
            bench.add_nodes(1, 1)
            bench.submit(victim)
        for bench, victim in self.parts:
            env.wait_for(f"{bench.name} bound", bench.all_bound(victim))
        for bench, _ in self.parts:
            bench.create_plain_pod("urgent", priority=HIGH_PRIORITY)
        for bench, _ in self.parts:
            env.wait_for(f"urgent Pod of {bench.name} bound", bench.are_running("urgent"))
        self.single.bind_witness()
        env.mark("at rest")


class VictimsOfTwoPriorities(Scene):
    """Each bench has two nodes, one with a pod of priority 1 and one with a pod of priority 5. The pod of priority 1 is
    on the first node in half of the benches, and on the second node in the other half. A gang of one pod of priority 10
    needs one node."""

    def play(self, env: SceneEnvironment) -> None:
        self.gang = Leaf("g", pods=1, minimum=1, priority=HIGH_PRIORITY)
        self.benches = [
            Bench(env, f"{order}{copy}") for copy in range(BENCH_COUNT) for order in ("lowfirst", "lowlast")
        ]
        self.benches[0].create_priority_classes(1, 5, 10)
        for bench in self.benches:
            order = [("low", LOW_PRIORITY), ("middle", MIDDLE_PRIORITY)]
            nodes = bench.add_nodes(1, 1)
            for node, (pod, priority) in zip(nodes, order[:: 1 if "first" in bench.name else -1], strict=True):
                bench.create_plain_pod(pod, priority=priority, node=node)
        for bench in self.benches:
            env.wait_for(f"Pods of {bench.name} run", bench.are_running("low", "middle"))
            bench.submit(self.gang)
        for bench in self.benches:
            env.wait_for(f"gang of {bench.name} bound", bench.all_bound(self.gang))
        self.benches[-1].bind_witness()
        env.mark("at rest")


@requirement("WAPI-030", reaches="gang bound")
def test_a_gang_evicts_pods_of_lower_priority(run: Recorded[VictimsOfGangs]) -> None:
    run.given("low Pods of flat bound")


@requirement("WAPI-031", reaches="tree has evicted")
def test_a_tree_evicts_pods_of_lower_priority(run: Recorded[VictimsOfGangs]) -> None:
    """Whether the tree takes the room of the evicted pods is covered by WAPI-090."""
    run.given("low Pods of tree bound")


@requirement("WAPI-032")
def test_a_gang_that_fits_evicts_nobody(run: Recorded[VictimsOfGangs]) -> None:
    run.given("gang with free room bound")
    run.always(
        "the low Pod runs", run.scene.free.are_running("x"), after="low Pods of free bound", until="room was enough"
    )


@requirement("WAPI-033")
def test_a_gang_is_evicted_as_a_whole(run: Recorded[VictimsAsAWhole]) -> None:
    run.given("whole bound", "urgent Pod of whole bound")
    run.expect("its bound Pods", (0,), run.scene.whole.bound_counts(run.at("at rest"), run.scene.gang))


@requirement("WAPI-034")
def test_a_tree_is_evicted_as_a_whole(run: Recorded[VictimsAsAWhole]) -> None:
    """The pod of high priority needs one of the two nodes. The pod on the other node must be evicted as well."""
    run.given("tree bound", "urgent Pod of tree bound")
    run.expect("its bound Pods", (0, 0), run.scene.tree.bound_counts(run.at("at rest"), *run.scene.root.leaves))


@requirement("WAPI-035")
def test_the_lowest_priority_is_evicted_first(run: Recorded[VictimsOfTwoPriorities]) -> None:
    run.given(*(f"gang of {bench.name} bound" for bench in run.scene.benches))
    view = run.at("at rest")
    running = {bench.name: bench.is_running(view, "middle") for bench in run.scene.benches}
    run.same("the Pod of priority 5 runs", dict.fromkeys(running, True), running)


@requirement("WAPI-060")
def test_a_gang_is_not_torn_by_eviction(run: Recorded[VictimsAsAWhole]) -> None:
    run.given("single bound", "urgent Pod of single bound")
    [bound] = run.scene.single.bound_counts(run.at("at rest"), run.scene.torn)
    run.expect("its bound Pods, of which two are required", 0, bound)
