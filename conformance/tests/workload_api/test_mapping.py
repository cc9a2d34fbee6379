"""Tests of the objects that an operator creates from PodGangs for kube-scheduler: their shape, minimums, owners,
topology and priority."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import condition_is, controller, items, name, number, text, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.benches import BLOCK, RACK
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.topology_bindings import topology_binding
from conformance.tests.workload_api import objects_of_gangs as objects

ZONE = "topology.kubernetes.io/zone"
LEVELS = {"zone": ZONE, "block": BLOCK, "rack": RACK, "host": "kubernetes.io/hostname"}
PRIORITY_CLASS = "conformance-10"


class GangsThatWait(Scene):
    """A set with two components whose minimums are one and two, and a set with a router and two worker replicas, one of
    which is required. There are no nodes for the pods."""

    def play(self, env: SceneEnvironment) -> None:
        pair = env.workload("components", setName="pair", prefills=3, decodes=4, decodesMinAvailable=2)
        group = env.workload("disaggregated", setName="group", workers=2, workersMinAvailable=1)
        self.pair, self.group = expected(pair), expected(group)
        self.gangs = [
            (expected_set, gang) for expected_set in (self.pair, self.group) for gang in expected_set.base_gangs
        ]
        self.cliques = [clique for expected_set, gang in self.gangs for clique in expected_set.of_gang(gang.name)]
        for workload in (pair, group):
            env.create(workload)
        env.settle("groups exist", self._groups_exist)
        env.settle("pods exist", self._pods_exist)
        env.settle("trees in place", all_of(*(objects.is_tree_complete(*entry) for entry in self.gangs)))
        env.settle("Workloads in place", all_of(*(objects.has_workload(gang) for _, gang in self.gangs)))
        env.settle("pods in their groups", all_of(*(objects.has_pods(*entry) for entry in self.gangs)))
        env.quiet(2)
        env.mark("at rest")

    def _groups_exist(self, view: View) -> bool | Unmet:
        """At least as many groups exist as the gangs need, whatever their owners."""
        roots, leaves = len(view.list("compositepodgroups")), len(view.list("podgroups"))
        enough = roots >= len(self.gangs) and leaves >= len(self.cliques)
        return enough or Unmet(f"there are {roots} CompositePodGroups and {leaves} PodGroups")

    def _pods_exist(self, view: View) -> bool | Unmet:
        minimums = {name: count for _, gang in self.gangs for name, count in gang.minimums.items()}
        counts = {clique.name: len(predicates.pods_of(view, clique.name)) for clique in self.cliques}
        lacking = [name for name, count in minimums.items() if counts[name] < count]
        return not lacking or Unmet(f"{counts[lacking[0]]} of {minimums[lacking[0]]} pods of {lacking[0]} exist")


class RequiredDomains(Scene):
    """A set that must be in one zone, with each scaling group replica in one rack. A standalone clique requires one
    host, and a clique in the replicas prefers one host."""

    def play(self, env: SceneEnvironment) -> None:
        binding = f"{env.namespace}-levels"
        env.create(topology_binding(binding, LEVELS))
        workload = env.workload("packed", binding=binding)
        template = workload["spec"]["template"]
        [front] = [clique_template for clique_template in template["cliques"] if clique_template["name"] == "fe"]
        front["topologyConstraint"] = {"topologyName": binding, "pack": {"required": "host"}}
        self.expected, self.set = expected(workload), name(workload)
        [self.base] = self.expected.base_gangs
        groups = template["podCliqueScalingGroups"]
        packed = {
            clique_name for group in groups if "topologyConstraint" in group for clique_name in group["cliqueNames"]
        }
        cliques = self.expected.of_gang(self.base.name)
        self.packed = [clique for clique in cliques if clique.template.name in packed]
        [self.front] = [clique for clique in cliques if clique.template.name == "fe"]
        env.create(workload)
        env.wait_for("tree in place", objects.is_complete(self.expected, self.base))
        env.settle("a Warning about the preference", self._warned, 10)
        env.mark("at rest")
        env.delete("clustertopologybindings", binding)

    def _warned(self, view: View) -> bool | Unmet:
        return _have_events(view, name(objects.podgang(view, self.base)), self.set)


class SetsWithClasses(Scene):
    """Three sets. In the first set, the set has a PriorityClass. In the second set, all cliques have it. In the third
    set, both have it. There is room for all pods."""

    def play(self, env: SceneEnvironment) -> None:
        entry = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": PRIORITY_CLASS}}
        if env.dry_run.ask(env.dry_run.create({**entry, "value": 10})).accepted:
            env.create({**entry, "value": 10})
        env.nodes("dgx-h100", 2)
        self.cliques = []
        self.refused = []
        for set_name in ("set", "cliques", "both"):
            workload = env.workload("components", setName=set_name, prefills=1, decodes=1)
            template = workload["spec"]["template"]
            if set_name != "cliques":
                template["priorityClassName"] = PRIORITY_CLASS
            for clique in template["cliques"] if set_name != "set" else ():
                clique["spec"]["podSpec"]["priorityClassName"] = PRIORITY_CLASS
            if env.dry_run.ask(env.dry_run.create(workload)).refused:
                self.refused.append(set_name)
                continue
            env.create(workload)
            self.cliques += list(expected(workload).cliques.values())
        env.wait_for("accepted sets bound", predicates.all_bound(self.cliques))


class TooManyCliques(Scene):
    """A set with nine standalone cliques, which may be rejected, and later a set with eight cliques. There is room for
    both sets."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 6)
        nine, eight = (self._set(env, count) for count in (9, 8))
        self.nine, self.eight = list(expected(nine).cliques.values()), list(expected(eight).cliques.values())
        [self.gang] = expected(nine).base_gangs
        self.refused = env.dry_run.ask(env.dry_run.create(nine)).refused
        if not self.refused:
            env.create(nine)
        env.settle("a Warning about the gang", self._warned, 20)
        env.create(eight)
        env.wait_for("eight cliques bound", predicates.all_bound(self.eight))
        env.quiet(1, real=True)
        env.mark("at rest")

    def _set(self, env: SceneEnvironment, count: int) -> Object:
        workload = env.workload("components", setName=f"c{count}", prefills=1, decodes=1)
        [first, *_] = workload["spec"]["template"]["cliques"]
        names = [f"part{index}" for index in range(count)]
        workload["spec"]["template"]["cliques"] = [
            {**first, "name": role, "spec": {**first["spec"], "roleName": role}} for role in names
        ]
        return workload

    def _warned(self, view: View) -> bool | Unmet:
        return self.refused or _have_events(view, name(objects.podgang(view, self.gang)), "c9")


@requirement("WAPI-070", reaches="trees in place")
def test_a_gang_is_a_tree(run: Recorded[GangsThatWait]) -> None:
    view = run.at("at rest")
    for expected_set, gang in run.scene.gangs:
        tree = objects.objects_of_gang(view, gang)
        run.expect(f"roots of {gang.name}", 1, len(tree.roots))
        run.expect(f"PodGroups of {gang.name}", len(expected_set.of_gang(gang.name)), len(tree.leaves))
        children = {name(group): len(tree.children(group)) for group in tree.composites}
        run.same("children that are required", children, {name(c): objects.minimum_of(c) for c in tree.composites})
        lost = [name(group) for group in (*tree.composites, *tree.leaves) if not _has_root(tree, group)]
        run.expect(f"groups of {gang.name} that hang under no root", [], lost)


@requirement("WAPI-071")
def test_min_count_is_the_minimum_of_the_clique(run: Recorded[GangsThatWait]) -> None:
    run.given("trees in place", "pods in their groups")
    view = run.at("at rest")
    for expected_set, gang in run.scene.gangs:
        groups = items(objects.podgang(view, gang), "spec", "podgroups")
        stated = {text(group, "name"): number(group, "minReplicas") for group in groups}
        counts = {c.name: objects.minimum_of(objects.leaf_of(view, c)) for c in expected_set.of_gang(gang.name)}
        run.same(f"minCount in {gang.name}", stated, counts)


@requirement("WAPI-072")
def test_pods_name_the_group_of_their_clique(run: Recorded[GangsThatWait]) -> None:
    run.given("groups exist", "pods exist")
    view = run.at("at rest")
    named = {clique.name: objects.named_groups(view, clique) for clique in run.scene.cliques}
    unanimous = {clique_name: len(names) == 1 and "" not in names for clique_name, names in named.items()}
    run.same("the Pods of a clique name one PodGroup", dict.fromkeys(unanimous, True), unanimous)
    groups = [group for names in named.values() for group in names if group]
    run.expect("PodGroups of two cliques", [], sorted({group for group in groups if groups.count(group) > 1}))


@requirement("WAPI-093")
def test_a_workload_says_whose_it_is(run: Recorded[GangsThatWait]) -> None:
    """Workloads are identified by their owner. Their names are not judged."""
    run.given("Workloads in place")
    view = run.at("at rest")
    for _, gang in run.scene.gangs:
        refs = {
            text(workload, "spec", "controllerRef", "name")
            for workload in objects.objects_of_gang(view, gang).workloads
        }
        run.expect(f"controllerRef of the Workloads of {gang.name}", {name(objects.podgang(view, gang))}, refs)


@requirement("WAPI-073", reaches="Workloads in place")
def test_groups_refer_to_the_workload(run: Recorded[GangsThatWait]) -> None:
    """The references are compared with the names of existing Workloads."""
    run.given("trees in place")
    view = run.at("at rest")
    for _, gang in run.scene.gangs:
        tree = objects.objects_of_gang(view, gang)
        workloads = {name(item) for item in tree.workloads}
        named = {text(item, "spec", "workloadRef", "workloadName") for item in (*tree.composites, *tree.leaves)}
        run.expect("Workloads that groups name and that do not exist", set(), named - workloads)


@requirement("WAPI-074")
def test_nothing_else_owns_the_groups(run: Recorded[GangsThatWait]) -> None:
    run.given("groups exist")
    view = run.at("at rest")
    gangs = {uid(view.get("podgangs", item)) for item in view.names("podgangs")}
    created = [
        (resource, o) for resource in ("workloads", "compositepodgroups", "podgroups") for o in view.list(resource)
    ]
    owned = {f"{resource}/{name(item)}": text(controller(item), "uid") in gangs for resource, item in created}
    run.same("has a PodGang as controller", dict.fromkeys(owned, True), owned)


@requirement("WAPI-075")
def test_required_keys_are_on_their_levels(run: Recorded[RequiredDomains]) -> None:
    run.given("tree in place")
    view = run.at("at rest")
    tree = objects.objects_of_gang(view, run.scene.base)
    [root] = tree.roots
    run.expect("key of the root", ZONE, objects.topology_key(root))
    parents = {objects.parent_name(objects.leaf_of(view, clique)) for clique in run.scene.packed}
    run.expect("parents of the replica's PodGroups", 1, len(parents))
    replica = view.get("compositepodgroups", min(parents)) or {}
    run.expect(
        "key of the replica, which is not the root", (RACK, True), (objects.topology_key(replica), replica != root)
    )
    leaves = {clique.name: objects.topology_key(objects.leaf_of(view, clique)) for clique in run.scene.packed}
    run.same("keys of its PodGroups", dict.fromkeys(leaves, ""), leaves)
    run.expect(
        "key of the PodGroup of the clique",
        LEVELS["host"],
        objects.topology_key(objects.leaf_of(view, run.scene.front)),
    )


@requirement("WAPI-076", reaches="a Warning about the preference")
def test_an_ignored_preference_is_told(run: Recorded[RequiredDomains]) -> None:
    """A clique prefers one host. The reason and message of the event are not judged."""
    run.given("tree in place")


@requirement("WAPI-077", reaches="accepted sets bound")
def test_sets_with_a_class_are_scheduled(run: Recorded[SetsWithClasses]) -> None:
    """A set that is rejected in a dry run is left out."""


@requirement("WAPI-078")
def test_what_cannot_be_said_is_not_scheduled(run: Recorded[TooManyCliques]) -> None:
    """A later set, whose groups fit into the lists, is bound, so the operator and the scheduler had a chance to
    schedule the first set."""
    run.given("eight cliques bound")
    run.always("no pod of nine cliques is bound", predicates.none_bound(run.scene.nine), until="at rest")


@requirement("WAPI-079", reaches="a Warning about the gang")
def test_what_cannot_be_said_is_told(run: Recorded[TooManyCliques]) -> None:
    """A rejection by admission counts as a report as well."""


@requirement("WAPI-095")
def test_what_cannot_be_said_is_not_called_scheduled(run: Recorded[TooManyCliques]) -> None:
    """Eight of the set's nine cliques would fit into the lists. If all pods are bound, WAPI-078 is violated but the
    condition is correct."""
    run.given("eight cliques bound")
    view = run.at("at rest")
    reported = condition_is(objects.podgang(view, run.scene.gang), "Scheduled") == "True"
    run.expect("Scheduled is True", False, reported and bool(predicates.none_bound(run.scene.nine)(view)))


def _have_events(view: View, *names: str) -> bool | Unmet:
    """Return whether a Warning event is about an object with one of these names."""
    warnings = [event for event in view.list("events") if text(event, "type") == "Warning"]
    warned_objects = {text(event, "regarding", "name") or text(event, "involvedObject", "name") for event in warnings}
    return not warned_objects.isdisjoint(filter(None, names)) or Unmet(f"Warnings are about {sorted(warned_objects)}")


def _has_root(tree: objects.GangObjects, group: objects.Object) -> bool:
    """Return whether the parents of a group lead to the root."""
    by_name = {name(composite): composite for composite in tree.composites}
    for _ in range(4):
        if not objects.parent_name(group):
            return group in tree.roots
        if objects.parent_name(group) not in by_name:
            return False
        group = by_name[objects.parent_name(group)]
    return False
