"""Tests with trees of groups: CompositePodGroups above PodGroups."""

from __future__ import annotations

from conformance.history.query import Predicate, Unmet
from conformance.history.view import View
from conformance.testing.benches import Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf, Tree


class TreesInParts(Scene):
    """Two trees, and room for all pods. The root of the first tree does not exist yet. The root of the second tree
    requires two children but has only one."""

    def play(self, env: SceneEnvironment) -> None:
        self.rootless, self.childless = Bench(env, "rootless", trees=True), Bench(env, "childless", trees=True)
        self.leaves = [Leaf("p", 2, 2), Leaf("d", 1, 1)]
        root = Tree("root", (), minimum=2)
        for bench in (self.rootless, self.childless):
            bench.add_nodes(1, 1, 1)
        for leaf in self.leaves:
            self.rootless.create_pods(leaf)
            self.rootless.create_child(leaf, root)
        self.childless.create_groups(root)
        self.childless.create_child(self.leaves[0], root)
        self.childless.create_pods(self.leaves[0])
        for bench in (self.rootless, self.childless):
            bench.bind_witness()
        env.mark("incomplete")
        self.rootless.create_groups(root)
        env.wait_for("bound with the root", self.rootless.all_bound(*self.leaves))
        self.childless.create_child(self.leaves[1], root)
        self.childless.create_pods(self.leaves[1])
        env.wait_for("bound with the last child", self.childless.all_bound(*self.leaves))


class TreesWithoutRoom(Scene):
    """Three trees without enough room. The first tree has four prefill and two decode pods, all of which are required,
    and five nodes. The second tree requires two of three replicas of two pods each, and has three nodes. The third tree
    has three levels and a minimum of six pods, and has five nodes. Then more nodes are added one by one."""

    def play(self, env: SceneEnvironment) -> None:
        self.pair, self.replicas = Bench(env, "pair", trees=True), Bench(env, "replicas", trees=True)
        self.levels = Bench(env, "levels", trees=True)
        self.both = Tree("root", [Leaf("p", 4, 4), Leaf("d", 2, 2)], minimum=2)
        self.three = Tree("root", [Leaf(f"r{index}", 2, 2) for index in range(3)], minimum=2)
        roles = [Tree("prefill", [Leaf("p", 4, 4)], minimum=1), Tree("decode", [Leaf("d", 2, 2)], minimum=1)]
        self.deep = Tree("root", roles, minimum=2)
        self.pair.add_nodes(1, 1, 1, 1, 1)
        self.replicas.add_nodes(1, 1, 1)
        self.levels.add_nodes(1, 1, 1, 1, 1)
        self.parts = [(self.pair, self.both), (self.replicas, self.three), (self.levels, self.deep)]
        for bench, tree in self.parts:
            bench.submit(tree)
        for bench, _ in self.parts:
            bench.bind_witness()
        env.mark("tried")
        for bench, _ in self.parts:
            bench.add_nodes(1)
        env.wait_for("pair bound", self.pair.all_bound(self.both))
        env.wait_for("levels bound", self.levels.all_bound(self.deep))
        env.wait_for("two replicas bound", self._whole(2))
        self.replicas.add_nodes(1)
        self.replicas.bind_witness("later")
        env.mark("third replica tried")
        self.replicas.add_nodes(1)
        env.wait_for("third replica bound", self._whole(3))

    def _whole(self, count: int) -> Predicate:
        def check(view: View) -> bool | Unmet:
            bound = self.replicas.bound_counts(view, *self.three.leaves)
            return bound.count(2) >= count or Unmet(f"bound are {bound}, and {count} whole ones are wanted")

        return check


class TwoTreesForOneRoom(Scene):
    """Two trees, each with two PodGroups of two pods, and room for one of the trees. The gates of the two trees are
    removed alternately."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "rivals", trees=True)
        self.trees = [Tree(name, [Leaf(f"{name}p", 2, 2), Leaf(f"{name}d", 2, 2)], minimum=2) for name in "ab"]
        self.bench.add_nodes(1, 1, 1, 1)
        self.bench.create_groups(*self.trees)
        for leaf in (leaf for tree in self.trees for leaf in tree.leaves):
            self.bench.create_pods(leaf, gated=True)
        for leaves in zip(*(tree.leaves for tree in self.trees), strict=True):
            for index in range(2):
                for leaf in leaves:
                    self.bench.ungate(leaf, index)
        env.wait_for("one tree bound", self._one)
        self.bench.bind_witness()
        env.mark("at rest")

    def _one(self, view: View) -> bool | Unmet:
        bound_trees = [tree.name for tree in self.trees if self.bench.all_bound(tree)(view)]
        return bool(bound_trees) or Unmet("no tree is bound")


@requirement("WAPI-050", reaches="bound with the root")
def test_a_tree_waits_for_its_root(run: Recorded[TreesInParts]) -> None:
    run.always("no pod is bound", run.scene.rootless.none_bound(*run.scene.leaves), until="incomplete")


@requirement("WAPI-051", reaches="bound with the last child")
def test_a_tree_waits_for_its_children(run: Recorded[TreesInParts]) -> None:
    run.always("no pod is bound", run.scene.childless.none_bound(*run.scene.leaves), until="incomplete")


@requirement("WAPI-052", reaches=("pair bound", "levels bound"))
def test_a_tree_is_placed_whole_or_not_at_all(run: Recorded[TreesWithoutRoom]) -> None:
    for bench, tree in (run.scene.parts[0], run.scene.parts[2]):
        run.always(f"no pod of {bench.name} is bound", bench.none_bound(tree), until="tried")


@requirement("WAPI-053")
def test_as_many_replicas_as_required_are_placed_whole(run: Recorded[TreesWithoutRoom]) -> None:
    """No document promises that a tree with more children than required is placed."""
    bench, tree = run.scene.parts[1]
    run.always("no pod is bound", bench.none_bound(tree), until="tried")
    run.given("two replicas bound")
    run.expect(
        "bound Pods of each replica", [0, 2, 2], sorted(bench.bound_counts(run.at("third replica tried"), *tree.leaves))
    )


@requirement("WAPI-054", reaches="one tree bound")
def test_of_two_trees_one_is_bound_whole(run: Recorded[TwoTreesForOneRoom]) -> None:
    bound = [run.scene.bench.bound_counts(run.at("at rest"), *tree.leaves) for tree in run.scene.trees]
    run.expect("bound Pods", [(0, 0), (2, 2)], sorted(bound))
