"""Tests of requirements of running inference workloads that neither the KEPs nor kube-scheduler meet."""

from __future__ import annotations

from conformance.testing.benches import Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf, Tree

LOW_PRIORITY, HIGH_PRIORITY = "conformance-1", "conformance-10"
SHORT_WAIT_SECONDS = 5.0
"""Seconds to wait for a binding. Because there is room, a scheduler makes the binding immediately or not at all."""


class RunningTrees(Scene):
    """Three running trees, and room for more pods. Each tree has two prefill pods and one decode pod, all of which are
    required. In the first tree, a gated decode pod is added, and a prefill pod is lost and recreated. In the second
    tree, both prefill pods are lost, one of them is recreated, and a decode pod is added. In the third tree, the
    prefill pods and their PodGroup are deleted, and the decode pod is lost and recreated."""

    def play(self, env: SceneEnvironment) -> None:
        self.gated, self.short_tree, self.bereft = (
            Bench(env, name, trees=True) for name in ("gated", "short", "bereft")
        )
        self.p, self.d = Leaf("p", 2, 2), Leaf("d", 1, 1)
        benches = (self.gated, self.short_tree, self.bereft)
        for bench in benches:
            bench.add_nodes(1, 1, 1, 1)
            bench.submit(Tree("root", [self.p, self.d], minimum=2))
        for bench in benches:
            env.wait_for(f"{bench.name} bound", bench.all_bound(self.p, self.d))
        self.gated.create_pods(self.d, first=1, count=1, gated=True)
        self._lose(env, self.gated, "p-0")
        self._lose(env, self.short_tree, "p-0", "p-1")
        self._lose(env, self.bereft, "p-0", "p-1", "d-0")
        env.delete("podgroups", self.bereft.target.name("p"))
        self.gated.create_pods(self.p, first=2, count=1)
        self.short_tree.create_pods(self.p, first=2, count=1)
        self.short_tree.create_pods(self.d, first=1, count=1)
        self.bereft.create_pods(self.d, first=1, count=1)
        env.settle("bound beside a gated Pod", self.gated.are_running("p-2"), SHORT_WAIT_SECONDS)
        env.settle("bound beside a short sibling", self.short_tree.are_running("d-1"), SHORT_WAIT_SECONDS)
        env.settle("bound without its sibling", self.bereft.are_running("d-1"), SHORT_WAIT_SECONDS)

    def _lose(self, env: SceneEnvironment, bench: Bench, *pods: str) -> None:
        names = [bench.target.name(pod) for pod in pods]
        for name in names:
            env.delete("pods", name)
        env.wait_for(f"{bench.name} has lost pods", lambda view: all(view.get("pods", name) is None for name in names))


class ExtrasThatPreempt(Scene):
    """Two nodes with pods of low priority, and a tree of high priority with two PodGroups that require one pod each.
    The first PodGroup has two more pods."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "greedy", trees=True)
        self.bench.create_priority_classes(1, 10)
        children = [Leaf("a-many", 3, 1, priority=HIGH_PRIORITY), Leaf("b-one", 1, 1, priority=HIGH_PRIORITY)]
        self.tree = Tree("root", children, 2, priority=HIGH_PRIORITY)
        for pod, node in zip("xy", self.bench.add_nodes(1, 1), strict=True):
            self.bench.create_plain_pod(pod, priority=LOW_PRIORITY, node=node)
        env.wait_for("nodes full", self.bench.are_running("x", "y"))
        self.bench.submit(self.tree)
        minimums = [(leaf, 1) for leaf in self.tree.leaves]
        env.settle("minimums bound", self.bench.has_bound(*minimums), SHORT_WAIT_SECONDS)


@requirement("WAPI-065", reaches="bound beside a gated Pod")
def test_a_gated_pod_holds_up_nobody(run: Recorded[RunningTrees]) -> None:
    run.given("gated bound", "gated has lost pods")


@requirement("WAPI-066", reaches="bound beside a short sibling")
def test_a_short_sibling_holds_up_nobody(run: Recorded[RunningTrees]) -> None:
    run.given("short bound", "short has lost pods")


@requirement("WAPI-067", reaches="bound without its sibling")
def test_a_deleted_sibling_holds_up_nobody(run: Recorded[RunningTrees]) -> None:
    run.given("bereft bound", "bereft has lost pods")


@requirement("WAPI-068", reaches="minimums bound")
def test_minimums_preempt_without_extras(run: Recorded[ExtrasThatPreempt]) -> None:
    run.given("nodes full")
