"""Mutants of the mapping of PodGangs to the Workload API: shape, counts, topology, priority, owners and names."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from mutants.workload_api import WRONG, change_objects
from reference_impl.api.models import GangTopology, PodCliqueSet, PodGang
from reference_impl.api.workload_api import WorkloadObject
from reference_impl.control.workload_api import GangPlans
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.workload_api import difference, manifests, names, standing, tree
from reference_impl.plan.workload_api.mode import Form
from reference_impl.plan.workload_api.tree import MappingError, Tree, TreeNode

wrong = WRONG.add
TREE = "test_tree:test_a_gang_becomes_a_root_with_a_node_for_each_replica_and_a_leaf_for_each_clique"
RUNTIME = "test_tree:test_the_runtime_groups_match_the_templates"
OWNED = "test_tree:test_objects_are_owned_by_the_gang_and_have_its_labels"


@wrong("wl-child-optional", "requires all children of the root but one", TREE)
def _child_optional() -> None:
    def count(self: TreeNode) -> int:
        return max(1, len(self.leaves) + len(self.children) - 1)

    replace(TreeNode, "count", property(count))


@wrong("wl-minimum-of-one", "writes minCount 1 for each PodGroup", TREE)
def _minimum_of_one() -> None:
    original = manifests._leaf
    replace(manifests, "_leaf", lambda of, leaf, count: original(of, leaf, 1))


@wrong("wl-subgroups-flattened", "hangs all PodGroups directly under the root", TREE)
@around(tree, "tree")
def _subgroups_flattened(
    original: Original, gang: PodGang, minimums: Any, priority_class: str | None, form: Form
) -> Tree:
    spec = msgspec.structs.replace(gang.spec, topology_constraint_group_configs=None)
    return original(msgspec.structs.replace(gang, spec=spec), minimums, priority_class, form)


@wrong("wl-key-of-replicas-lost", "drops the required topology of scaling group replicas", TREE)
@around(tree, "tree")
def _key_of_replicas_lost(
    original: Original, gang: PodGang, minimums: Any, priority_class: str | None, form: Form
) -> Tree:
    result = original(gang, minimums, priority_class, form)
    children = tuple(TreeNode(child.name, None, child.leaves) for child in result.root.children)
    return Tree(TreeNode(result.root.name, result.root.key, result.root.leaves, children), result.priority_class)


@wrong(
    "wl-key-of-cliques-lost",
    "drops the required topology of cliques",
    "test_tree:test_a_scaled_gang_has_the_key_of_its_scaling_group_at_the_root",
)
def _key_of_cliques_lost() -> None:
    original = manifests._leaf
    replace(manifests, "_leaf", lambda of, leaf, count: original(of, dataclasses.replace(leaf, key=None), count))


@wrong(
    "wl-preferred-enforced",
    "requires preferred topology",
    "test_tree:test_groups_without_members_and_preferred_keys_are_omitted",
)
@instead_of(tree, "required_key")
def _preferred_enforced(constraint: GangTopology | None) -> str | None:
    pack = constraint.pack_constraint if constraint is not None else None
    return (pack.required or pack.preferred or None) if pack is not None else None


@wrong("wl-priority-of-leaves-only", "writes the priority class to PodGroups, not to composites", RUNTIME)
def _priority_of_leaves_only() -> None:
    original = manifests._node

    def node(of: Tree, node: TreeNode, least: int, *, whole: bool) -> Manifest:
        return original(Tree(of.root), node, least, whole=whole)

    replace(manifests, "_node", node)


@wrong(
    "wl-priorities-mixed",
    "maps gangs whose pods differ in priority",
    "test_tree:test_pods_of_different_priority_classes_are_rejected#0",
)
@instead_of(tree, "priority_class")
def _priorities_mixed(gang: PodGang, pcs: PodCliqueSet | None) -> str | None:
    classes = tree.pod_classes(pcs) if pcs is not None else {}
    return gang.spec.priority_class_name or next(filter(None, classes.values()), None)


@wrong(
    "wl-surplus-cut",
    "maps the first eight entries of each list, and drops the others silently",
    "test_tree:test_a_gang_beyond_the_limits_is_rejected_as_a_whole#0",
)
@instead_of(tree, "_check_limits")
def _surplus_cut(node: TreeNode) -> None:
    object.__setattr__(node, "leaves", node.leaves[: tree.MAX_ENTRIES])
    object.__setattr__(node, "children", node.children[: tree.MAX_ENTRIES])


@wrong("wl-objects-unowned", "creates objects without an owner", OWNED)
def _objects_unowned() -> None:
    def unowned(gang: PodGang, objects: list[Manifest]) -> list[Manifest]:
        for manifest in objects:
            del manifest["metadata"]["ownerReferences"]
        return objects

    change_objects(unowned)


@wrong("wl-objects-unlabelled", "creates objects without the label of their gang", OWNED)
def _objects_unlabelled() -> None:
    def unlabelled(gang: PodGang, objects: list[Manifest]) -> list[Manifest]:
        for manifest in objects:
            del manifest["metadata"]["labels"][labels.PODGANG]
        return objects

    change_objects(unlabelled)


@wrong(
    "wl-names-reused",
    "uses the groups of a former gang for one that is created again under its name",
    "test_tree:test_a_recreated_gang_shares_no_group_with_the_former_gang",
)
def _names_reused() -> None:
    def controls(gang: PodGang, current: WorkloadObject) -> bool:
        owner = current.metadata.controller
        return owner is not None and owner.name == gang.metadata.name

    replace(names, "composite", lambda gang, node: node.name)
    replace(names, "leaf", lambda gang, of, one, parent: one.clique)
    replace(difference, "controls", controls)


@wrong(
    "wl-template-names-too-long",
    "names templates after their cliques, however long these are",
    "test_tree:test_names_of_templates_are_dns_labels_and_differ",
)
def _template_names_too_long() -> None:
    replace(names, "template", lambda kind, name: f"{kind}-{name}")


@wrong(
    "wl-parents-missing",
    "writes parents that do not exist into groups",
    "test_tree:test_parents_come_first_and_every_parent_exists",
)
def _parents_missing() -> None:
    def orphaned(gang: PodGang, objects: list[Manifest]) -> list[Manifest]:
        for manifest in objects:
            if "parentCompositePodGroupName" in manifest["spec"]:
                manifest["spec"]["parentCompositePodGroupName"] = gang.metadata.name
        return objects

    change_objects(orphaned)


@wrong(
    "wl-released-minimum-forgotten",
    "lowers minCount to 1 when the minimum of a group is released",
    "test_difference:test_a_released_minimum_keeps_its_last_value",
)
@instead_of(standing, "minimums")
def _released_minimum_forgotten(gang: PodGang, earlier: Any, templates: Any) -> dict[str, int]:
    return {group.name: max(1, group.min_replicas) for group in gang.spec.podgroups}


@wrong(
    "wl-released-minimum-refused",
    "refuses a gang once the minimum of a group is released",
    "test_difference:test_a_released_minimum_keeps_its_last_value",
)
@around(tree, "tree")
def _released_minimum_refused(
    original: Original, gang: PodGang, minimums: Any, priority_class: str | None, form: Form
) -> Tree:
    if any(not group.min_replicas for group in gang.spec.podgroups):
        raise MappingError("a PodGroup has minReplicas 0")
    return original(gang, minimums, priority_class, form)


@wrong(
    "wl-scaled-gangs-plain",
    "makes nothing of scaled gangs",
    "test_operator:test_a_scaling_group_that_shrinks_and_grows_reuses_no_names",
)
@around(GangPlans, "serves")
def _scaled_gangs_plain(original: Original, self: GangPlans, gang: PodGang | None) -> bool:
    meta = gang.metadata if gang is not None else None
    base = meta is not None and meta.name == f"{meta.label(labels.PART_OF)}-{meta.label(labels.REPLICA_INDEX)}"
    return original(self, gang) and base


@wrong("wl-workload-left-out", "creates the runtime groups without their Workload", TREE)
def _workload_left_out() -> None:
    change_objects(lambda gang, objects: [manifest for manifest in objects if manifest["kind"] != "Workload"])


@mutant("operator", "names the PodCliqueSet as the controller of a Workload", "WAPI-093")
def _wl_controller_is_the_set() -> None:
    def controlled_by_set(gang: PodGang, objects: list[Manifest]) -> list[Manifest]:
        for manifest in objects:
            if manifest["kind"] == "Workload":
                manifest["spec"]["controllerRef"]["name"] = gang.metadata.label(labels.PART_OF)
        return objects

    change_objects(controlled_by_set)
