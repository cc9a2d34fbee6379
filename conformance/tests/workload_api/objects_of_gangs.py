"""The objects that an operator has created from a PodGang: the Workload, the tree of groups, and the groups of its
pods.

Objects are found by their controller, or else by the references of pods and groups. Gangs are found by their contents.
Names are not used, because no document promises them. Only WAPI-074 requires a controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.grove.expected import ExpectedClique, ExpectedGang, ExpectedObjects
from conformance.grove.fields import controller, items, name, number, terminating, text, uid
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.testing import composition, predicates
from conformance.testing.benches import pod_group_name
from conformance.testing.observed import all_of

Object = Mapping[str, Any]
MAX_LEVELS = 4
"""The maximum depth of a tree (KEP-6012)."""


@dataclass(frozen=True)
class GangObjects:
    """The objects of a PodGang."""

    workloads: list[Object]
    composites: list[Object]
    leaves: list[Object]

    @property
    def roots(self) -> list[Object]:
        """Return the CompositePodGroups without a parent."""
        return [composite for composite in self.composites if not parent_name(composite)]

    def children(self, of: Object) -> list[Object]:
        """Return the CompositePodGroups and PodGroups directly below a CompositePodGroup."""
        return [group for group in (*self.composites, *self.leaves) if parent_name(group) == name(of)]

    def depth(self, of: Object) -> int:
        """Return the number of CompositePodGroup levels from this CompositePodGroup down, including itself."""
        depths = [self.depth(child) for child in self.children(of) if child in self.composites]
        return 1 + max(depths, default=0)


def podgang(view: View, gang: ExpectedGang) -> Object:
    """Return the PodGang that holds the gang's PodCliques, or an empty mapping."""
    return composition.gang_of(view, min(gang.minimums)) or {}


def objects_of_gang(view: View, gang: ExpectedGang) -> GangObjects:
    """Return the objects that a PodGang controls. If it controls no object of a kind, return instead the groups in the
    trees of the groups that its pods name, or the Workloads that its groups name. Objects that are being deleted are
    left out."""
    owner = uid(podgang(view, gang))
    composites, leaves, workloads = (
        _existing_objects(view, resource) for resource in ("compositepodgroups", "podgroups", "workloads")
    )
    parents = {name(group): parent_name(group) for group in composites}

    def owned(candidates: list[Object]) -> list[Object]:
        return [group for group in candidates if owner and text(controller(group), "uid") == owner]

    def within(candidates: list[Object], groups: list[Object]) -> list[Object]:
        """Return the candidates that are in the trees of these groups."""
        roots = {_top_group(group, parents) for group in groups} - {""}
        return [group for group in candidates if group in groups or {name(group), _top_group(group, parents)} & roots]

    named_groups = {pod_group_name(pod) for clique in gang.minimums for pod in predicates.pods_of(view, clique)}
    own_groups = owned(leaves) or within(leaves, [group for group in leaves if name(group) in named_groups])
    own_composites = owned(composites) or within(composites, own_groups)
    workload_names = {text(group, "spec", "workloadRef", "workloadName") for group in (*own_composites, *own_groups)}
    return GangObjects(
        owned(workloads) or [group for group in workloads if name(group) in workload_names], own_composites, own_groups
    )


def _existing_objects(view: View, resource: str) -> list[Object]:
    return [item for item in view.list(resource) if not terminating(item)]


def _top_group(group: Object, parents: Mapping[str, str]) -> str:
    """Return the name of the highest CompositePodGroup above a group, or an empty string for a root."""
    highest, above = "", parent_name(group)
    for _ in range(MAX_LEVELS):
        if above in parents:
            highest, above = above, parents[above]
    return highest


def parent_name(group: Object) -> str:
    """Return the name of the CompositePodGroup above a group, or an empty string for a root."""
    return text(group, "spec", "parentCompositePodGroupName")


def minimum_of(group: Object) -> int | None:
    """Return the minCount of a PodGroup, or the minGroupCount of a CompositePodGroup."""
    gang = ("spec", "schedulingPolicy", "gang")
    return number(group, *gang, "minCount" if group.get("kind") == "PodGroup" else "minGroupCount")


def topology_key(group: Object) -> str:
    """Return the topology key of a group, or an empty string if it has none."""
    constraints = items(group, "spec", "schedulingConstraints", "topology")
    return text(constraints[0], "key") if constraints else ""


def named_groups(view: View, clique: ExpectedClique) -> set[str]:
    """Return the names of the PodGroups that the pods of a clique name. An empty string stands for pods that do not
    name a PodGroup."""
    return {pod_group_name(pod) for pod in predicates.pods_of(view, clique.name)}


def leaf_of(view: View, clique: ExpectedClique) -> Object:
    """Return the PodGroup of a clique's pods, or an empty mapping if the pods do not all name the same existing
    PodGroup."""
    names = named_groups(view, clique)
    return (view.get("podgroups", names.pop()) or {}) if len(names) == 1 else {}


@predicate
def is_tree_complete(view: View, expected_set: ExpectedObjects, gang: ExpectedGang) -> bool | Unmet:
    """The gang has exactly one root, and at least as many PodGroups as cliques."""
    tree, cliques = objects_of_gang(view, gang), expected_set.of_gang(gang.name)
    complete = len(tree.roots) == 1 and len(tree.leaves) >= len(cliques)
    return complete or Unmet(
        f"{gang.name} has {len(tree.roots)} roots, and {len(tree.leaves)} PodGroups for {len(cliques)} cliques"
    )


@predicate
def has_workload(view: View, gang: ExpectedGang) -> bool | Unmet:
    """The gang has a Workload."""
    return bool(objects_of_gang(view, gang).workloads) or Unmet(f"{gang.name} has no Workload")


@predicate
def has_pods(view: View, expected_set: ExpectedObjects, gang: ExpectedGang) -> bool | Unmet:
    """Each clique of the gang has pods, and these pods name one of the gang's PodGroups."""
    tree = objects_of_gang(view, gang)
    for clique in expected_set.of_gang(gang.name):
        if not predicates.pods_of(view, clique.name) or leaf_of(view, clique) not in tree.leaves:
            return Unmet(f"the pods of {clique.name} name {sorted(named_groups(view, clique))}, none of {gang.name}")
    return True


def is_complete(expected_set: ExpectedObjects, gang: ExpectedGang) -> Predicate:
    """The gang has a tree with a PodGroup for each of its cliques. The pods of each clique exist and name its
    PodGroup."""
    return all_of(is_tree_complete(expected_set, gang), has_pods(expected_set, gang))
