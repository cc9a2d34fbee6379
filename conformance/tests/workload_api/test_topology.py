"""Tests with gangs whose pods must be in one topology domain."""

from __future__ import annotations

from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing.benches import BLOCK, RACK, Bench
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf, Tree, pods

ERROR_REASON = "False/SchedulerError"
LOW_PRIORITY, HIGH_PRIORITY = "conformance-1", "conformance-10"


class GangsInRacks(Scene):
    """A gang of three pods, and racks of two and of three nodes. Another gang does not fit into any rack until a node
    is added. One of its nodes is not in any rack."""

    def play(self, env: SceneEnvironment) -> None:
        self.wide, self.narrow = Bench(env, "wide"), Bench(env, "narrow")
        self.gang = Leaf("g", pods=3, minimum=3, key=RACK)
        self.wide.add_nodes(1, 1, rack="a")
        self.wide.add_nodes(1, 1, 1, rack="b")
        self.narrow.add_nodes(1, 1, rack="a")
        self.narrow.add_nodes(1, 1, rack="b")
        self.narrow.add_nodes(1)
        for bench in (self.wide, self.narrow):
            bench.submit(self.gang)
        env.wait_for("gang bound", self.wide.all_bound(self.gang))
        self.narrow.bind_witness()
        env.mark("tried")
        self.narrow.add_nodes(1, rack="b")
        env.wait_for("gang bound in the larger rack", self.narrow.all_bound(self.gang))


class MorePodsInARack(Scene):
    """A gang of two pods in a rack of two nodes, while another rack has room. A third pod is added to the gang. Then a
    pod is lost and recreated, and its node is taken in the meantime. Then the first rack gets two more nodes."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "more")
        self.gang, self.all = Leaf("g", pods=2, minimum=2, key=RACK), Leaf("g", pods=3, minimum=2, key=RACK)
        [first, _] = self.bench.add_nodes(1, 1, rack="a")
        self.bench.submit(self.gang)
        env.wait_for("gang bound", self.bench.all_bound(self.gang))
        self.bench.add_nodes(1, 1, rack="b")
        self.bench.create_pods(self.gang, first=2, count=1)
        self.bench.bind_witness("one")
        env.mark("extra tried")
        view = env.history.view()
        [lost] = [i for i in range(2) if self._node(view, i) == first]
        self.bench.delete_pod(self.gang, lost)
        env.wait_for("Pod gone", lambda v: v.get("pods", self.bench.target.name("g", lost)) is None)
        self.bench.create_plain_pod("taker", node=first)
        self.bench.create_pods(self.gang, first=3, count=1)
        self.bench.bind_witness("two")
        env.mark("replacement tried")
        self.bench.add_nodes(1, 1, rack="a")
        env.wait_for("all bound", self.bench.has_bound((self.all, 3)))

    def _node(self, view: View, index: int) -> str:
        return str((view.get("pods", self.bench.target.name("g", index)) or {})["spec"]["nodeName"])


class GangInTwoRacks(Scene):
    """Two pods of a gang that another client has bound in two racks, and a third pod, for which there is room."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench, self.gang = Bench(env, "split"), Leaf("g", pods=3, minimum=2, key=RACK)
        [a, _] = self.bench.add_nodes(1, 1, rack="a")
        [b] = self.bench.add_nodes(1, rack="b")
        self.bench.create_groups(self.gang)
        for pod, node in zip(pods(self.gang, self.bench.target, count=2), (a, b), strict=True):
            env.create({**pod, "spec": {**pod["spec"], "nodeName": node}})
        env.wait_for("Pods in two racks", self.bench.has_bound((self.gang, 2)))
        self.bench.create_pods(self.gang, first=2, count=1)
        env.settle("third Pod says so", self.bench.has_reason("pods", "g-2", ERROR_REASON))
        self.bench.bind_witness()
        env.mark("tried")


class PreemptionInARack(Scene):
    """Two full racks, one with pods of low priority and one with pods of high priority, and a gang whose priority is in
    between."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "evicting")
        self.bench.create_priority_classes(1, 10, 20)
        self.gang = Leaf("g", pods=2, minimum=2, key=RACK, priority=HIGH_PRIORITY)
        for rack, priority in (("a", "conformance-20"), ("b", LOW_PRIORITY)):
            for index, node in enumerate(self.bench.add_nodes(1, 1, rack=rack)):
                self.bench.create_plain_pod(f"{rack}{index}", priority=priority, node=node)
        env.wait_for("racks full", self.bench.are_running("a0", "a1", "b0", "b1"))
        self.bench.submit(self.gang)
        env.wait_for("gang bound", self.bench.all_bound(self.gang))


class TreeInABlock(Scene):
    """Two blocks, each with two racks of two nodes. One rack of the first block is full. A tree must be in one block,
    and each of its two PodGroups of two pods must be in one rack."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "blocks", trees=True)
        self.leaves = [Leaf("p", 2, 2, key=RACK), Leaf("d", 2, 2, key=RACK)]
        self.tree = Tree("root", self.leaves, minimum=2, key=BLOCK)
        for block in ("one", "two"):
            for rack in ("a", "b"):
                nodes = self.bench.add_nodes(1, 1, rack=f"{block}-{rack}", block=block)
                if (block, rack) == ("one", "a"):
                    for index, node in enumerate(nodes):
                        self.bench.create_plain_pod(f"taker{index}", node=node)
        env.wait_for("rack full", self.bench.are_running("taker0", "taker1"))
        self.bench.submit(self.tree)
        env.wait_for("tree bound", self.bench.all_bound(self.tree))


@requirement("WAPI-040", reaches=("gang bound", "gang bound in the larger rack"))
def test_a_gang_is_placed_in_one_domain(run: Recorded[GangsInRacks]) -> None:
    scene = run.scene
    run.always("no pod is bound where no rack holds them", scene.narrow.none_bound(scene.gang), until="tried")
    for bench, step in ((scene.wide, "gang bound"), (scene.narrow, "gang bound in the larger rack")):
        run.expect(f"racks of {bench.name}", 1, len(bench.domains(run.at(step), scene.gang, RACK)))


@requirement("WAPI-041", reaches="all bound")
def test_extra_pods_stay_in_the_domain(run: Recorded[MorePodsInARack]) -> None:
    run.given("gang bound")
    [rack] = run.scene.bench.domains(run.at("gang bound"), run.scene.gang, RACK)

    def inside(view: View) -> bool | Unmet:
        domains = run.scene.bench.domains(view, run.scene.all, RACK) - {rack}
        return not domains or Unmet(f"a Pod is bound in {min(domains)} and not in {rack}")

    run.always("all bound Pods are in one rack", inside, after="gang bound", until="all bound")


@requirement("WAPI-092", reaches="third Pod says so")
def test_a_pod_of_a_gang_in_two_domains_says_why(run: Recorded[GangInTwoRacks]) -> None:
    """Another client has bound the first two pods."""
    run.given("Pods in two racks")


@requirement("WAPI-042")
def test_a_gang_in_two_domains_is_an_error(run: Recorded[GangInTwoRacks]) -> None:
    """There is room for the third pod in both racks."""
    run.given("Pods in two racks")
    run.expect("the third Pod is bound", False, run.scene.bench.is_running(run.at("tried"), "g-2"))


@requirement("WAPI-043", reaches="gang bound")
def test_a_gang_evicts_within_its_domain(run: Recorded[PreemptionInARack]) -> None:
    run.given("racks full")
    scene = run.scene
    run.expect("racks", 1, len(scene.bench.domains(run.at("gang bound"), scene.gang, RACK)))
    high = [scene.bench.is_running(run.at("gang bound"), pod) for pod in ("a0", "a1")]
    run.expect("the Pods of high priority run", [True, True], high)


@requirement("WAPI-044", reaches="tree bound")
def test_domains_of_children_are_within_that_of_the_parent(run: Recorded[TreeInABlock]) -> None:
    run.given("rack full")
    view, scene = run.at("tree bound"), run.scene
    blocks = {block for leaf in scene.leaves for block in scene.bench.domains(view, leaf, BLOCK)}
    racks = [len(scene.bench.domains(view, leaf, RACK)) for leaf in scene.leaves]
    run.expect("blocks, and racks of each child", (1, [1, 1]), (len(blocks), racks))
