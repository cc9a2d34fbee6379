"""Tests of PodGangs on Kubernetes' own scheduler that wait, run, are scaled, lose pods, and lose their groups."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove.expected import ExpectedClique, ExpectedGang, expected
from conformance.grove.fields import condition_is, name, terminating, uid
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.testing import composition, node_selection, predicates
from conformance.testing.blocked_deletion import block_deletion
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.workload_api import objects_of_gangs as objects

GROUPS = "podcliquescalinggroups"


class ServiceOnTooFewNodes(Scene):
    """Ten prefill pods, one of which is required, and a decode pod that does not fit on any node. Later a node is added
    for the decode pod. No prefill pod may use that node."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("single", 10)
        workload = env.workload("components", prefills=10, prefillGpus=1, decodes=1, decodeGpus=8)
        node_selection.restrict_to_gpu_nodes(workload, "prefill", gpus=1)
        self.expected = expected(workload)
        [self.gang] = self.expected.base_gangs
        self.cliques = list(self.expected.cliques.values())
        env.create(workload)
        env.wait_for("tree in place", objects.is_complete(self.expected, self.gang))
        env.settle("gang is Initialized", _reports_conditions(self.gang, Initialized="True"), 20)
        later = env.workload("frontend", setName="later")
        env.create(later)
        env.wait_for("later set bound", predicates.all_bound(list(expected(later).cliques.values())))
        env.quiet(2, real=True)
        env.mark("tried")
        env.nodes("dgx-h100", 1)
        env.wait_for("minimums bound", predicates.is_admitted(self.expected, self.gang))
        env.wait_for("extras bound", predicates.all_bound(self.cliques))
        env.settle("gang says so", _reports_conditions(self.gang, Scheduled="True", Ready="True"))


class ScarceNodes(Scene):
    """Two components of ten pods each, and later ten nodes. One pod of each component is required. Either component
    could take all nodes, so kube-scheduler must not place all pods of the component that it tries first."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("components", prefills=10, prefillGpus=1, decodes=10, decodeGpus=1)
        expected_set = expected(workload)
        [gang] = expected_set.base_gangs
        env.create(workload)
        env.wait_for("tree in place", objects.is_complete(expected_set, gang))
        env.settle("gang is Initialized", _reports_conditions(gang, Initialized="True"), 20)
        env.quiet(2, real=True)
        env.nodes("single", 10)
        env.settle("minimums bound", predicates.is_admitted(expected_set, gang), 60)


class LostGroups(Scene):
    """A running service whose root and Workload are deleted by another client, one after the other."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 1)
        workload = env.workload("components", prefills=2, decodes=1)
        self.expected = expected(workload)
        [self.gang] = self.expected.base_gangs
        self.cliques = list(self.expected.cliques.values())
        env.create(workload)
        tree, its_workload = objects.is_complete(self.expected, self.gang), objects.has_workload(self.gang)
        env.wait_for("tree in place", all_of(tree, its_workload))
        env.wait_for("service bound", predicates.all_bound(self.cliques))
        env.quiet(1)
        view = env.history.view()
        self.pods = {name(pod): uid(pod) for c in self.cliques for pod in predicates.pods_of(view, c.name)}
        env.mark("before")
        current = objects.objects_of_gang(view, self.gang)
        for resource, item in (("compositepodgroups", current.roots[0]), ("workloads", current.workloads[0])):
            old = uid(item)
            env.delete(resource, name(item))
            env.wait_for(f"{resource} made again", self._made_again(resource, old))
        env.quiet(1)
        env.mark("at rest")

    def _made_again(self, resource: str, old: str) -> Predicate:
        def check(view: View) -> bool | Unmet:
            tree = objects.objects_of_gang(view, self.gang)
            current = tree.roots if resource == "compositepodgroups" else tree.workloads
            is_new = len(current) == 1 and uid(current[0]) != old
            return is_new or Unmet(f"{self.gang.name} has {len(current)} {resource}, none of them new")

        return check


class ScaledService(Scene):
    """A running set. Its clique is scaled from two pods to four. Its scaling group is scaled from one replica to two,
    back to one, and to two again, while the pods of the second replica terminate slowly."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        workload = env.workload("disaggregated", routers=2, workers=1, workersMinAvailable=1)
        self.expected = expected(workload)
        [self.base] = self.expected.base_gangs
        env.create(workload)
        env.wait_for("set bound", predicates.all_bound(list(self.expected.cliques.values())))
        env.quiet(1)
        env.mark("before")
        [self.router] = [c for c in self.expected.cliques.values() if not c.group]
        env.patch("podcliques", self.router.name, {"spec": {"replicas": 4}}, subresource="scale")
        env.wait_for("more routers bound", self._routers(4))
        env.mark("scaled out")
        larger = env.workload("disaggregated", routers=2, workers=2, workersMinAvailable=1)
        self.larger = expected(larger)
        [self.scaled] = self.larger.scaled_gangs
        new_cliques = self.larger.of_gang(self.scaled.name)
        group = next(iter(self.expected.groups))
        env.patch(GROUPS, group, {"spec": {"replicas": 2}}, subresource="scale")
        env.wait_for("second replica bound", predicates.all_bound(new_cliques))
        env.mark("second replica")
        view = env.history.view()
        with block_deletion(env, "pods", [name(pod) for c in new_cliques for pod in predicates.pods_of(view, c.name)]):
            env.patch(GROUPS, group, {"spec": {"replicas": 1}}, subresource="scale")
            env.wait_for("second replica gone", self._replica_deleted)
            env.settle("second gang gone", composition.none_in_gangs([clique.name for clique in new_cliques]), 5)
            env.patch(GROUPS, group, {"spec": {"replicas": 2}}, subresource="scale")
            env.settle("bound beside the former pods", predicates.all_bound(new_cliques), 10)
        env.wait_for("second replica bound again", predicates.all_bound(new_cliques))
        env.quiet(1)
        env.mark("at rest")

    def _routers(self, count: int) -> Predicate:
        def check(view: View) -> bool | Unmet:
            count_bound = predicates.bound_counts(view, [self.router])[self.router.name]
            return count_bound == count or Unmet(f"{count_bound} of {count} routers are bound")

        return check

    def _replica_deleted(self, view: View) -> bool | Unmet:
        remaining = [pod for c in self.larger.of_gang(self.scaled.name) for pod in predicates.pods_of(view, c.name)]
        return not remaining or Unmet(f"{len(remaining)} pods of the second replica are still there")


class LostPods(Scene):
    """A running service with two required prefill pods on nodes with two GPUs, and one decode pod on its own node. One
    pod of each clique is lost, and the node of the lost prefill pod is cordoned."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 2)
        env.nodes("single", 1)
        workload = env.workload(
            "components", prefills=2, prefillsMinAvailable=2, prefillGpus=2, decodes=1, decodeGpus=1
        )
        node_selection.restrict_to_gpu_nodes(workload, "decode", gpus=1)
        self.expected = expected(workload)
        [self.gang] = self.expected.base_gangs
        cliques = {c.name.rpartition("-")[2]: c for c in self.expected.cliques.values()}
        env.create(workload)
        env.wait_for("service bound", predicates.all_bound(list(cliques.values())))
        env.settle("gang is Scheduled", _reports_conditions(self.gang, Scheduled="True"))
        view = env.history.view()
        [prefill, *_] = predicates.pods_of(view, cliques["prefill"].name)
        [decode] = predicates.pods_of(view, cliques["decode"].name)
        env.patch("nodes", prefill["spec"]["nodeName"], {"spec": {"unschedulable": True}})
        for pod in (prefill, decode):
            env.delete("pods", name(pod))
        self.decode = cliques["decode"]
        env.settle("the pod that fits is bound again", self._made_again(uid(decode)))

    def _made_again(self, old: str) -> Predicate:
        def check(view: View) -> bool | Unmet:
            new = [pod for pod in predicates.pods_of(view, self.decode.name) if uid(pod) != old]
            bound = [pod for pod in new if pod["spec"].get("nodeName")]
            return bool(bound) or Unmet(f"{len(new)} new pods of {self.decode.name}, none of them bound")

        return check


@requirement("WAPI-080", reaches=("minimums bound", "extras bound"))
def test_a_gang_is_scheduled_whole_or_not_at_all(run: Recorded[ServiceOnTooFewNodes]) -> None:
    """Ten prefill pods would fit, but the decode pod does not. Pods of one component cannot take the room of the other
    component."""
    run.always("no pod is bound", predicates.none_bound(run.scene.cliques), until="tried")


@requirement("WAPI-081", reaches="gang says so")
def test_the_gang_says_how_it_stands(run: Recorded[ServiceOnTooFewNodes]) -> None:
    gang = objects.podgang(run.at("tried"), run.scene.gang)
    statuses = {
        condition_type: condition_is(gang, condition_type) == "True"
        for condition_type in ("Initialized", "Scheduled", "Ready")
    }
    run.expect("conditions while it waits", {"Initialized": True, "Scheduled": False, "Ready": False}, statuses)


@requirement("WAPI-082", reaches="minimums bound")
def test_minimums_are_bound_before_extras(run: Recorded[ScarceNodes]) -> None: ...


@requirement("WAPI-083", reaches=("compositepodgroups made again", "workloads made again"))
def test_deleted_groups_are_made_again(run: Recorded[LostGroups]) -> None:
    """The root and the Workload are deleted one after the other. No PodGroup is deleted."""
    tree = objects.objects_of_gang(run.at("at rest"), run.scene.gang)
    run.expect("PodGroups under the root", len(tree.leaves), len(tree.children(tree.roots[0])))


@requirement("WAPI-084")
def test_running_pods_survive_the_loss_of_groups(run: Recorded[LostGroups]) -> None:
    """The names and UIDs of the pods must stay the same."""
    run.given("workloads made again")
    view = run.at("at rest")
    uids = {name(pod): uid(pod) for c in run.scene.cliques for pod in predicates.pods_of(view, c.name)}
    run.same("Pods", run.scene.pods, uids)


@requirement("WAPI-085", reaches="more routers bound")
def test_more_pods_join_their_group(run: Recorded[ScaledService]) -> None:
    """It must be the PodGroup that the first two routers have named from the start."""
    old, new = (objects.leaf_of(run.at(step), run.scene.router) for step in ("before", "scaled out"))
    run.expect("whether all routers name one PodGroup", [True, True], [bool(old), bool(new)])
    run.expect("PodGroup of the routers", uid(old), uid(new))


@requirement("WAPI-086")
def test_a_further_replica_has_a_tree_of_its_own(run: Recorded[ScaledService]) -> None:
    """The PodGroups that Pods name are judged, whatever their owner. The base gang's PodGroups keep their UIDs."""
    run.given("more routers bound", "second replica bound")
    base_cliques = run.scene.larger.of_gang(run.scene.base.name)

    def groups(view: View, cliques: Iterable[ExpectedClique]) -> dict[str, str]:
        return {clique.name: uid(objects.leaf_of(view, clique)) for clique in cliques}

    earlier, view = groups(run.at("scaled out"), base_cliques), run.at("second replica")
    scaled_groups = groups(view, run.scene.larger.of_gang(run.scene.scaled.name))
    shared = {clique for clique, group in scaled_groups.items() if not group or group in earlier.values()}
    run.expect("PodCliques of the further replica without a PodGroup of their own", set(), shared)
    run.same("PodGroups of the base", earlier, groups(view, base_cliques))


@requirement("WAPI-096", reaches="second replica bound again")
def test_a_replica_that_comes_back_is_scheduled(run: Recorded[ScaledService]) -> None:
    """The former pods terminate slowly, and there is room for the new pods next to them."""
    run.given("second replica gone")


@requirement("WAPI-087")
def test_a_replica_that_comes_back_has_groups_of_its_own(run: Recorded[ScaledService]) -> None:
    """The PodGroups of the former pods may still be terminating."""
    run.given("second replica bound again")
    view = run.at("at rest")
    leaves = {c.name: objects.leaf_of(view, c) for c in run.scene.larger.of_gang(run.scene.scaled.name)}
    alive = {clique: bool(leaf) and not terminating(leaf) for clique, leaf in leaves.items()}
    run.same("their PodGroups are alive", dict.fromkeys(alive, True), alive)


@requirement("WAPI-088", reaches="the pod that fits is bound again")
def test_a_lost_pod_does_not_wait_for_another(run: Recorded[LostPods]) -> None:
    """One pod of each clique is lost, and the node of one lost pod is cordoned."""
    run.given("service bound")


@predicate
def _reports_conditions(view: View, /, gang: ExpectedGang, **statuses: str) -> bool | Unmet:
    """The conditions of a PodGang have these statuses, by type."""
    current = {condition_type: condition_is(objects.podgang(view, gang), condition_type) for condition_type in statuses}
    return current == statuses or Unmet(f"{gang.name} says {current}")
