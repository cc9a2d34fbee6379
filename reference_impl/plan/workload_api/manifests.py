"""The objects of a gang: a Workload, and the runtime groups, which the scheduler reads (WL-H03 to WL-H08, WL37-M06)."""

from __future__ import annotations

from collections.abc import Mapping

from reference_impl.api import workload_api as api
from reference_impl.api.models import PODGANGS, SCHEDULER_GROUP, PodGang
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest, owner_reference
from reference_impl.plan.workload_api import names
from reference_impl.plan.workload_api.mode import Form
from reference_impl.plan.workload_api.tree import Leaf, Tree, TreeNode

EVICT_WHOLE_GANG: Manifest = {"all": {}}
"""The disruption mode of the root. A gang is evicted as a whole, because a partial eviction would leave it below its
minimum (GS-31, WL37-P03, WL37-P06)."""
FLAT_EVICT_WHOLE_GANG = "PodGroup"
"""The same mode on Kubernetes 1.36 (WL-F08)."""


def group_names(gang: PodGang, tree: Tree, form: Form) -> dict[str, str]:
    """Return the name of the PodGroup that the pods of each clique refer to."""
    return {
        leaf.clique: names.leaf(gang, tree, leaf, parent if form is Form.TREE else None) for leaf, parent in tree.leaves
    }


def desired(
    gang: PodGang, tree: Tree, form: Form, counts: Mapping[str, int], *, required_groups: int | None = None
) -> list[Manifest]:
    """Return all objects of a gang in the order of creation, parents first. `counts` holds the `minCount` of each
    clique's PodGroup, which may be less than the template's minimum while pods of the clique run outside the PodGroup.
    `required_groups` limits the `minGroupCount` of all runtime composites; the Workload always shows the intended
    gang."""
    if form is Form.FLAT:
        return _flat_manifests(gang, tree, counts)
    root = tree.root
    manifests = [_workload(gang, tree)]
    for node, parent in ((root, None), *((child, root) for child in root.children)):
        min_group_count = node.count if required_groups is None else min(required_groups, node.count)
        reference = {"workloadName": gang.metadata.name, "templateName": _template_of(node, root)}
        spec: Manifest = {"workloadRef": reference, **_node(tree, node, min_group_count, whole=node is root)}
        if parent is not None:
            spec["parentCompositePodGroupName"] = names.composite(gang, parent)
        manifests.append(
            _object(gang, api.COMPOSITES.api_version, "CompositePodGroup", names.composite(gang, node), spec)
        )
    for leaf, parent in tree.leaves:
        spec = {
            "parentCompositePodGroupName": names.composite(gang, parent),
            "workloadRef": {"workloadName": gang.metadata.name, "templateName": names.template("leaf", leaf.clique)},
            **_leaf(tree, leaf, counts[leaf.clique]),
        }
        name = names.leaf(gang, tree, leaf, parent)
        manifests.append(_object(gang, api.POD_GROUPS.api_version, "PodGroup", name, spec, clique=leaf.clique))
    return manifests


def _template_of(node: TreeNode, root: TreeNode) -> str:
    return names.ROOT if node is root else names.template("group", node.name)


def _workload(gang: PodGang, tree: Tree) -> Manifest:
    def template(node: TreeNode) -> Manifest:
        manifest = {"name": _template_of(node, tree.root), **_node(tree, node, node.count, whole=node is tree.root)}
        if node.leaves:
            manifest["podGroupTemplates"] = [
                {"name": names.template("leaf", leaf.clique), **_leaf(tree, leaf, leaf.minimum)} for leaf in node.leaves
            ]
        if node.children:
            manifest["compositePodGroupTemplates"] = [template(child) for child in node.children]
        return manifest

    spec = {"controllerRef": _controller(gang), "compositePodGroupTemplates": [template(tree.root)]}
    return _object(gang, api.WORKLOADS.api_version, "Workload", gang.metadata.name, spec)


def _node(tree: Tree, node: TreeNode, min_group_count: int, *, whole: bool) -> Manifest:
    """Return the fields that a composite and its template have in common. All parts of a tree have the same priority
    class (WL37-V13)."""
    mode = {"disruptionMode": EVICT_WHOLE_GANG} if whole else {}
    return {"schedulingPolicy": {"gang": {"minGroupCount": min_group_count}}, **_common_fields(tree, node.key), **mode}


def _leaf(tree: Tree, leaf: Leaf, count: int) -> Manifest:
    return {"schedulingPolicy": {"gang": {"minCount": count}}, **_common_fields(tree, leaf.key)}


def _common_fields(tree: Tree, key: str | None) -> Manifest:
    fields: Manifest = {}
    if key:
        fields["schedulingConstraints"] = {"topology": [{"key": key}]}
    if tree.priority_class:
        fields["priorityClassName"] = tree.priority_class
    return fields


def _controller(gang: PodGang) -> Manifest:
    return {"apiGroup": SCHEDULER_GROUP, "kind": PODGANGS.kind, "name": gang.metadata.name}


def _flat_manifests(gang: PodGang, tree: Tree, counts: Mapping[str, int]) -> list[Manifest]:
    """Return the objects for Kubernetes 1.36 (WL-M04, WL-M06)."""
    [(leaf, _)] = tree.leaves
    template, version = names.template("leaf", leaf.clique), api.FLAT_WORKLOADS.api_version
    mode = {"disruptionMode": FLAT_EVICT_WHOLE_GANG}
    spec = {
        "controllerRef": _controller(gang),
        "podGroupTemplates": [{"name": template, **_leaf(tree, leaf, leaf.minimum), **mode}],
    }
    reference = {"workload": {"workloadName": gang.metadata.name, "podGroupTemplateName": template}}
    group = {"podGroupTemplateRef": reference, **_leaf(tree, leaf, counts[leaf.clique]), **mode}
    return [
        _object(gang, version, "Workload", gang.metadata.name, spec),
        _object(gang, version, "PodGroup", names.leaf(gang, tree, leaf, None), group, clique=leaf.clique),
    ]


def _object(
    gang: PodGang, version: str, kind: str, name: str, spec: Manifest, *, clique: str | None = None
) -> Manifest:
    """Return an object that has the labels of its gang and is owned by the gang (WL-HC04)."""
    meta = gang.metadata
    tags = {**(meta.labels or {}), labels.PODGANG: meta.name, **({labels.PODCLIQUE: clique} if clique else {})}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": tags,
            "ownerReferences": [owner_reference(PODGANGS.api_version, PODGANGS.kind, meta)],
        },
        "spec": spec,
    }
