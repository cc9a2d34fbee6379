"""Tests of requirements of inference that Kubernetes' gangs do not meet when pods are added or removed later, which the
KEPs accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing.benches import RACK, Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf, Tree

LOW_PRIORITY, HIGH_PRIORITY = "conformance-1", "conformance-10"
BENCH_COUNT = 6
"""The number of repetitions of an instance. A scheduler may place a single instance correctly by chance."""


@predicate
def all_benches(view: View, benches: Sequence[Bench], condition: Callable[[Bench, View], bool]) -> bool | Unmet:
    """A condition holds for every bench."""
    missing = [bench.name for bench in benches if not condition(bench, view)]
    return not missing or Unmet(f"not of {len(missing)} of {len(benches)}: {', '.join(missing)}")


class ExtrasThatEvict(Scene):
    """Two free nodes and two nodes with pods of low priority. A tree of high priority has two PodGroups with one
    required pod each. The second PodGroup has two more pods. The instance is repeated several times."""

    def play(self, env: SceneEnvironment) -> None:
        children = [Leaf("a-one", 1, 1, priority=HIGH_PRIORITY), Leaf("b-many", 3, 1, priority=HIGH_PRIORITY)]
        tree = Tree("root", children, 2, priority=HIGH_PRIORITY)
        benches = [Bench(env, f"evicting{number}", trees=True) for number in range(BENCH_COUNT)]
        benches[0].create_priority_classes(1, 10)
        for bench in benches:
            nodes = bench.add_nodes(1, 1, 1, 1)
            for pod, node in zip("xy", nodes[2:], strict=True):
                bench.create_plain_pod(pod, priority=LOW_PRIORITY, node=node)
        env.wait_for(
            "low Pods run", all_benches(benches, lambda bench, view: all(bench.is_running(view, pod) for pod in "xy"))
        )
        for bench in benches:
            bench.submit(tree)
        evicted = all_benches(benches, lambda bench, view: not any(bench.is_running(view, pod) for pod in "xy"))
        env.wait_for("low Pods evicted", evicted)
        env.settle(
            "trees bound", all_benches(benches, lambda bench, view: bool(bench.all_bound(tree)(view))), 15, real=True
        )


class LaterPodsOfABasicGroup(Scene):
    """A rack of two nodes, a rack of three nodes, and a PodGroup with the basic policy that must be in one rack. Two of
    its pods are bound before the third pod is created. The instance is repeated several times, in both orders of the
    racks."""

    def play(self, env: SceneEnvironment) -> None:
        group = Leaf("g", pods=3, key=RACK)
        benches = [Bench(env, f"later{number}") for number in range(BENCH_COUNT)]
        for number, bench in enumerate(benches):
            for size in (2, 3) if number % 2 else (3, 2):
                bench.add_nodes(*[1] * size, rack=f"of-{size}")
        for bench in benches:
            bench.create_groups(group)
            bench.create_pods(group, count=2)
        env.wait_for(
            "first Pods bound", all_benches(benches, lambda bench, view: bench.bound_counts(view, group) == (2,))
        )
        for bench in benches:
            bench.create_pods(group, first=2, count=1)
        env.settle(
            "all Pods bound", all_benches(benches, lambda bench, view: bench.bound_counts(view, group) == (3,)), 5
        )


@requirement("WAPI-090", reaches="trees bound")
def test_a_tree_takes_the_room_that_it_has_made(run: Recorded[ExtrasThatEvict]) -> None:
    run.given("low Pods evicted")


@requirement("WAPI-091", reaches="all Pods bound")
def test_a_domain_holds_pods_that_come_later(run: Recorded[LaterPodsOfABasicGroup]) -> None:
    run.given("first Pods bound")
