"""The shape of a PodGang on kube-scheduler: a root, a node for each group of PodGroups, and a leaf for each PodGroup
(WL-H03 to WL-H07, WL-H10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reference_impl.api.models import GangTopology, PodCliqueSet, PodGang, PodGroup
from reference_impl.plan.workload_api.mode import Form

MAX_ENTRIES = 8
"""Maximum number of entries in a list of templates (WL37-V10). These trees have a depth of at most 3, and the API
permits 4 (WL37-V11)."""


class MappingError(Exception):
    """This API cannot express a gang. `str()` returns the reason."""


@dataclass(frozen=True)
class Leaf:
    """The pods of one clique in the gang."""

    clique: str
    minimum: int
    """At least 1 (WL37-V02)."""
    key: str | None = None
    """The label key whose value must be the same on the nodes of all its pods."""


@dataclass(frozen=True)
class TreeNode:
    """A group of leaves. The root has the name of the gang."""

    name: str
    key: str | None = None
    leaves: tuple[Leaf, ...] = ()
    children: tuple[TreeNode, ...] = ()

    @property
    def count(self) -> int:
        """The number of direct children, all of which are required (WL-H05)."""
        return len(self.leaves) + len(self.children)


@dataclass(frozen=True)
class Tree:
    """A gang, and the priority class that its root and its pods share."""

    root: TreeNode
    priority_class: str | None = None

    @property
    def leaves(self) -> Iterable[tuple[Leaf, TreeNode]]:
        """All leaves with their parents, in the order of creation: the root's leaves first, then its children's
        leaves."""
        for node in (self.root, *self.root.children):
            for leaf in node.leaves:
                yield leaf, node


def tree(gang: PodGang, minimums: Mapping[str, int], priority_class: str | None, form: Form) -> Tree:
    """Return the tree of a gang with these minimums (number of pods by clique). Raises MappingError if the Workload API
    cannot express the gang."""
    spec = gang.spec
    if not spec.podgroups:
        raise MappingError("the PodGang has no PodGroups")
    groups = {group.name: group for group in spec.podgroups}
    if len(groups) < len(spec.podgroups):
        raise MappingError("two PodGroups of the PodGang have the same name")
    parents: dict[str, str] = {}
    children: list[TreeNode] = []
    for config in spec.topology_constraint_group_configs or ():
        if not config.pod_group_names:
            continue
        for name in config.pod_group_names:
            if name not in groups:
                raise MappingError(f'topology constraint group "{config.name}" names an unknown PodGroup "{name}"')
            if name in parents:
                raise MappingError(f'PodGroup "{name}" is in two topology constraint groups')
            parents[name] = config.name
        leaves = tuple(_leaf(groups[name], minimums) for name in config.pod_group_names)
        children.append(TreeNode(config.name, required_key(config.topology_constraint), leaves))
    ungrouped_leaves = tuple(_leaf(group, minimums) for name, group in groups.items() if name not in parents)
    root = TreeNode(gang.metadata.name, required_key(spec.topology_constraint), ungrouped_leaves, tuple(children))
    if form is Form.FLAT:
        return Tree(_flat_root(root), priority_class)
    for node in (root, *root.children):
        _check_limits(node)
    return Tree(root, priority_class)


def _leaf(group: PodGroup, minimums: Mapping[str, int]) -> Leaf:
    return Leaf(group.name, minimums[group.name], required_key(group.topology_constraint))


def required_key(constraint: GangTopology | None) -> str | None:
    """Return the label key that a constraint requires, or None if it requires none (WL-H06)."""
    pack = constraint.pack_constraint if constraint is not None else None
    return (pack.required or None) if pack is not None else None


def has_preferred_topology(gang: PodGang) -> bool:
    """Return whether a gang has a preferred topology, which this API cannot express (WL-H12, WL37-G12)."""
    spec = gang.spec
    constraints = [
        spec.topology_constraint,
        *(config.topology_constraint for config in spec.topology_constraint_group_configs or ()),
        *(group.topology_constraint for group in spec.podgroups),
    ]
    return any(c is not None and c.pack_constraint is not None and c.pack_constraint.preferred for c in constraints)


def _check_limits(node: TreeNode) -> None:
    for kind, entries in (("PodGroups", node.leaves), ("topology constraint groups", node.children)):
        if len(entries) > MAX_ENTRIES:
            raise MappingError(
                f'"{node.name}" has {len(entries)} {kind}: the Workload API permits {MAX_ENTRIES} at each level'
            )


def _flat_root(root: TreeNode) -> TreeNode:
    """Return a root with a single leaf that has the narrowest key, because there is no parent that could have another
    key."""
    nodes = [(leaf, node) for node in (root, *root.children) for leaf in node.leaves]
    if len(nodes) > 1:
        raise MappingError(
            f"the PodGang has {len(nodes)} PodGroups: Kubernetes 1.36 has no gang of several PodGroups, 1.37 has"
        )
    [(leaf, node)] = nodes
    return TreeNode(root.name, None, (Leaf(leaf.clique, leaf.minimum, leaf.key or node.key or root.key),))


def priority_class(gang: PodGang, pcs: PodCliqueSet | None) -> str | None:
    """Return the priority class of the root and all pods of a gang. kube-scheduler does not try any pod of a gang whose
    priority classes differ (WL37-B34, WL37-V13). A priority class of the set applies to all its pods (OBJ-256). Raises
    MappingError if the priority classes differ."""
    if gang.spec.priority_class_name:
        return gang.spec.priority_class_name
    classes = pod_classes(pcs) if pcs is not None else {}
    if len(set(classes.values())) > 1:
        class_list = ", ".join(f"{clique}: {name or 'none'}" for clique, name in classes.items())
        raise MappingError(f"its pods have different priority classes ({class_list}): a gang of kube-scheduler has one")
    return next(iter(classes.values()), "") or None


def pod_classes(pcs: PodCliqueSet) -> dict[str, str]:
    """Return the priority class of each clique template's pods, or an empty string for pods without a priority
    class."""
    of_set = pcs.spec.template.priority_class_name
    return {c.name: of_set or c.spec.pod_spec.get("priorityClassName") or "" for c in pcs.spec.template.cliques}
