"""Tests of requirements of inference that Kubernetes' gangs do not meet, which the KEPs accept. No implementation fails
because of these tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing.benches import BLOCK, RACK, Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import POD_LABEL, Leaf, Tree


class UnequalPods(Scene):
    """A gang of two older small pods and one large pod, all of which are required, and two nodes. The large pod fits on
    only one of the nodes, and the small pods fit on both."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "unequal")
        self.small, self.large = Leaf("g", pods=2, minimum=3), Leaf("g", pods=1, minimum=3, gpus=4)
        self.all = Leaf("g", pods=3, minimum=3)
        self.bench.add_nodes(4, 2)
        self.bench.create_groups(self.small)
        self.bench.create_pods(self.small, gated=True)
        env.quiet(2.2, real=True)
        self.bench.create_pods(self.large, first=2, gated=True)
        for index in range(3):
            self.bench.ungate(self.all, index)
        env.settle("gang bound", self.bench.all_bound(self.all), 5)


class MinimumsOfSiblings(Scene):
    """Trees with four prefill and two decode pods, and two nodes. One pod of each kind is required. There is one tree
    for each order of the PodGroups' names."""

    def play(self, env: SceneEnvironment) -> None:
        self.parts: list[tuple[Bench, Tree]] = []
        for first in ("prefill", "decode"):
            names = ("a", "b") if first == "prefill" else ("b", "a")
            leaves = [Leaf(f"{names[0]}-prefill", 4, 1), Leaf(f"{names[1]}-decode", 2, 1)]
            self.parts.append((Bench(env, f"{first}first", trees=True), Tree("root", leaves, minimum=2)))
        for bench, tree in self.parts:
            bench.add_nodes(1, 1)
            bench.submit(tree)
        for bench, tree in self.parts:
            minimums = [(leaf, 1) for leaf in tree.leaves]
            env.settle(f"minimums of {bench.name} bound", bench.has_bound(*minimums), 5)


class RacksOfTwoSizes(Scene):
    """A block with a rack of two nodes and a rack of three nodes, and a tree with a PodGroup for each rack. The smaller
    PodGroup is older. The instance is repeated several times."""

    def play(self, env: SceneEnvironment) -> None:
        self.tree = Tree("root", [Leaf("a", 2, 2, key=RACK), Leaf("b", 3, 3, key=RACK)], minimum=2, key=BLOCK)
        self.benches = [Bench(env, f"racks{number}", trees=True) for number in range(8)]
        for bench in self.benches:
            bench.add_nodes(1, 1, rack="small", block="one")
            bench.add_nodes(1, 1, 1, rack="large", block="one")
        for bench in self.benches:
            bench.submit(self.tree)
        env.settle("all trees bound", self._all, 5)

    def _all(self, view: View) -> bool | Unmet:
        unbound = [bench.name for bench in self.benches if not bench.all_bound(self.tree)(view)]
        return not unbound or Unmet(f"{len(unbound)} of {len(self.benches)} trees are not bound")


class ProtectedPod(Scene):
    """Two nodes with one pod each. The pods have the same priority, and a PodDisruptionBudget protects one of them. A
    gang of one pod of higher priority needs one node. The instance is repeated several times."""

    def play(self, env: SceneEnvironment) -> None:
        self.gang = Leaf("g", pods=1, minimum=1, priority="conformance-10")
        self.benches = [Bench(env, f"budget{number}") for number in range(6)]
        self.benches[0].create_priority_classes(1, 10)
        for bench in self.benches:
            for pod, node in zip(("protected", "free"), bench.add_nodes(1, 1), strict=True):
                bench.create_plain_pod(pod, priority="conformance-1", node=node)
            env.create(self._budget(bench))
        for bench in self.benches:
            env.wait_for(f"Pods of {bench.name} run", bench.are_running("protected", "free"))
            bench.submit(self.gang)
        for bench in self.benches:
            env.wait_for(f"gang of {bench.name} bound", bench.all_bound(self.gang))
        self.benches[-1].bind_witness()
        env.mark("at rest")

    def _budget(self, bench: Bench) -> dict[str, Any]:
        name = bench.target.name("protected")
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {POD_LABEL: name}}},
        }


@requirement("WAPI-061", reaches="gang bound")
def test_unequal_pods_are_placed_where_they_fit(run: Recorded[UnequalPods]) -> None: ...


@requirement("WAPI-062", reaches=("minimums of prefillfirst bound", "minimums of decodefirst bound"))
def test_minimums_of_siblings_come_before_extras(run: Recorded[MinimumsOfSiblings]) -> None: ...


@requirement("WAPI-063", reaches="all trees bound")
def test_domains_of_siblings_are_chosen_together(run: Recorded[RacksOfTwoSizes]) -> None: ...


@requirement("WAPI-064")
def test_pods_with_a_budget_are_evicted_last(run: Recorded[ProtectedPod]) -> None:
    view = run.at("at rest")
    spared: Mapping[str, bool] = {bench.name: bench.is_running(view, "protected") for bench in run.scene.benches}
    run.same("the protected Pod runs", dict.fromkeys(spared, True), spared)
