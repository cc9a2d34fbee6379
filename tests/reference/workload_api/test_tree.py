"""Tests of the Workload API objects for a PodGang, following the tables of docs/spec on shapes, limits, names and
priority."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reference_impl.plan import labels
from reference_impl.plan.workload_api import names
from reference_impl.plan.workload_api.difference import Verb
from reference_impl.plan.workload_api.mode import Form, Mode
from reference_impl.plan.workload_api.tree import Leaf, Tree, TreeNode
from tests.reference.workload_api import builders
from tests.reference.workload_api.builders import disaggregated, gang, group, packed, pcs, planned

FLAT = Mode(form=Form.FLAT)


def specs(kind: str, pod_gang: Any = None, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the specs, by name, of the objects of one kind that a gang gets."""
    changes = planned(pod_gang or disaggregated(), **options).difference.changes
    assert all(change.verb is Verb.CREATE for change in changes)
    return {change.name: change.body["spec"] for change in changes if change.kind == kind}


def test_a_gang_becomes_a_root_with_a_node_for_each_replica_and_a_leaf_for_each_clique():
    assert len(specs("Workload")) == 1
    [workload] = specs("Workload").values()
    assert workload["controllerRef"] == {"apiGroup": "scheduler.grove.io", "kind": "PodGang", "name": "dis-0"}
    [root] = workload["compositePodGroupTemplates"]

    def shape(node: dict[str, Any]) -> Any:
        topology = node.get("schedulingConstraints", {}).get("topology", [{"key": None}])
        [policy] = node["schedulingPolicy"].values()
        children = [*node.get("podGroupTemplates", ()), *node.get("compositePodGroupTemplates", ())]
        return (node["name"], policy, topology[0]["key"], [shape(child) for child in children])

    assert shape(root) == (
        "root",
        {"minGroupCount": 3},
        "block",
        [
            ("leaf-dis-0-router", {"minCount": 1}, None, []),
            (
                "group-dis-0-prefill-0",
                {"minGroupCount": 2},
                "rack",
                [
                    ("leaf-dis-0-prefill-0-pl", {"minCount": 1}, None, []),
                    ("leaf-dis-0-prefill-0-pw", {"minCount": 2}, None, []),
                ],
            ),
            (
                "group-dis-0-decode-0",
                {"minGroupCount": 2},
                None,
                [
                    ("leaf-dis-0-decode-0-dl", {"minCount": 1}, None, []),
                    ("leaf-dis-0-decode-0-dw", {"minCount": 1}, None, []),
                ],
            ),
        ],
    )


def test_the_runtime_groups_match_the_templates():
    pod_gang = disaggregated(priorityClassName="high")
    [workload] = specs("Workload", pod_gang).values()
    templates: dict[str, dict[str, Any]] = {}

    def collect(nodes: list[dict[str, Any]]) -> None:
        for node in nodes:
            templates[node["name"]] = node
            collect(node.get("podGroupTemplates", []))
            collect(node.get("compositePodGroupTemplates", []))

    collect(workload["compositePodGroupTemplates"])
    groups = {**specs("CompositePodGroup", pod_gang), **specs("PodGroup", pod_gang)}
    assert len(groups) == len(templates) == 8
    for spec in groups.values():
        assert spec["workloadRef"]["workloadName"] == "dis-0"
        template = templates.pop(spec["workloadRef"]["templateName"])
        for field in ("schedulingPolicy", "schedulingConstraints", "priorityClassName", "disruptionMode"):
            assert spec.get(field) == template.get(field), field
        assert spec.get("priorityClassName") == "high"


def test_parents_come_first_and_every_parent_exists():
    changes = planned(disaggregated()).difference.changes
    assert [c.kind for c in changes] == ["Workload", *["CompositePodGroup"] * 3, *["PodGroup"] * 5]
    created: set[str] = set()
    for change in changes[1:]:
        parent = change.body["spec"].get("parentCompositePodGroupName")
        assert (parent in created) if parent else change.name == changes[1].name
        if change.kind == "CompositePodGroup":
            created.add(change.name)
    parents = {c.body["metadata"]["labels"].get(labels.PODCLIQUE): c.body["spec"] for c in changes}
    by_config = {c.name.rpartition("-")[0]: c.name for c in changes if c.kind == "CompositePodGroup"}
    assert parents["dis-0-prefill-0-pw"]["parentCompositePodGroupName"] == by_config["dis-0-prefill-0"]
    assert parents["dis-0-router"]["parentCompositePodGroupName"] == by_config["dis-0"]


def test_only_the_root_is_evicted_as_a_whole():
    groups = specs("CompositePodGroup")
    assert [spec.get("disruptionMode") for spec in groups.values()] == [{"all": {}}, None, None]
    assert all("disruptionMode" not in spec for spec in specs("PodGroup").values())


def test_objects_are_owned_by_the_gang_and_have_its_labels():
    for change in planned(disaggregated()).difference.changes:
        meta = change.body["metadata"]
        owners = [
            (reference["kind"], reference["name"], reference["uid"], reference["controller"])
            for reference in meta.get("ownerReferences", [])
        ]
        assert owners == [("PodGang", "dis-0", "1", True)]
        assert meta["labels"].get(labels.PODGANG) == "dis-0"
        assert meta["labels"].get(labels.SCHEDULER_NAME) == "default-scheduler"
        assert (labels.PODCLIQUE in meta["labels"]) == (change.kind == "PodGroup")


def test_a_scaled_gang_has_the_key_of_its_scaling_group_at_the_root():
    pod_gang = gang(group("a", 1, **packed(required="host")), group("b", 2), **packed(required="rack"))
    [root] = specs("CompositePodGroup", pod_gang).values()
    assert root["schedulingConstraints"] == {"topology": [{"key": "rack"}]}
    keys = [spec.get("schedulingConstraints") for spec in specs("PodGroup", pod_gang).values()]
    assert keys == [{"topology": [{"key": "host"}]}, None]


def test_groups_without_members_and_preferred_keys_are_omitted():
    empty = [{"name": "empty", "podGroupNames": [], **packed(required="rack")}]
    pod_gang = gang(group("a", 1, **packed(preferred="host")), topologyConstraintGroupConfigs=empty)
    assert len(specs("CompositePodGroup", pod_gang)) == 1
    assert all("schedulingConstraints" not in spec for spec in specs("PodGroup", pod_gang).values())


# -- limits (WL37-V10, WL-H10) -----------------------------------------------------------------------------------------


def large_gang(leaves: int, replicas: int, members: int = 1) -> Any:
    leaf_groups = [group(f"a{i}", 1) for i in range(leaves)]
    children = {f"r{i}": [f"r{i}-m{j}" for j in range(members)] for i in range(replicas)}
    configs = [{"name": name, "podGroupNames": pod_groups} for name, pod_groups in children.items()]
    return gang(
        *leaf_groups,
        *(group(m, 1) for pod_groups in children.values() for m in pod_groups),
        topologyConstraintGroupConfigs=configs,
    )


@pytest.mark.parametrize("size", [(1, 0), (8, 0), (0, 8), (8, 8), (1, 8, 8)])
def test_eight_entries_of_each_kind_are_mapped(size: tuple[int, ...]):
    plan = planned(large_gang(*size))
    assert not plan.refusal and len(plan.groups) == len(large_gang(*size).spec.podgroups)


def test_no_gang_has_more_levels_than_the_api_permits():
    """A PodGang has at most topology groups of PodGroups, which makes three of the four permitted levels (WL37-V11)."""

    def depth(node: dict[str, Any]) -> int:
        children = [*node.get("podGroupTemplates", ()), *node.get("compositePodGroupTemplates", ())]
        return 1 + max(map(depth, children), default=0)

    for size in ((1, 0), (8, 0), (1, 8, 8)):
        [workload] = specs("Workload", large_gang(*size)).values()
        [root] = workload["compositePodGroupTemplates"]
        assert depth(root) == (3 if size[1] else 2)


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ((9, 0), '"dis-0" has 9 PodGroups'),
        ((0, 9), '"dis-0" has 9 topology constraint groups'),
        ((1, 2, 9), '"r0" has 9 PodGroups'),
        ((0, 0), "no PodGroups"),
    ],
)
def test_a_gang_beyond_the_limits_is_rejected_as_a_whole(size: tuple[int, ...], reason: str):
    plan = planned(large_gang(*size))
    assert reason in plan.refusal
    assert not plan.in_place and not plan.difference.changes and not plan.groups


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ([{"name": "r", "podGroupNames": ["a", "x"]}], 'names an unknown PodGroup "x"'),
        ([{"name": "r", "podGroupNames": ["a"]}, {"name": "q", "podGroupNames": ["a"]}], '"a" is in two'),
    ],
)
def test_inconsistent_groups_are_rejected(configs: Any, reason: str):
    assert reason in planned(gang(group("a", 1), topologyConstraintGroupConfigs=configs)).refusal
    assert "same name" in planned(gang(group("a", 1), group("a", 1))).refusal


# -- names (WL37-V12, WL37-V15, WL37-L03) ------------------------------------------------------------------------------


def test_names_of_templates_are_dns_labels_and_differ():
    long, dotted = "x" * 64, "a.b"
    configs = [{"name": "root", "podGroupNames": ["root"]}, {"name": long, "podGroupNames": [long, dotted]}]
    pod_gang = gang(group("root", 1), group(long, 1), group(dotted, 1), topologyConstraintGroupConfigs=configs)
    [workload] = specs("Workload", pod_gang).values()
    template_names: list[str] = []

    def collect(nodes: list[dict[str, Any]]) -> None:
        for node in nodes:
            template_names.append(node["name"])
            collect(node.get("podGroupTemplates", []))
            collect(node.get("compositePodGroupTemplates", []))

    collect(workload["compositePodGroupTemplates"])
    assert len(template_names) == len(set(template_names)) == 6
    assert all(len(name) <= 63 and re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) for name in template_names)


def test_group_names_fit_for_cliques_with_long_names():
    pod_gang = gang(group("x" * 253, 1))
    assert all(len(change.name) <= 253 for change in planned(pod_gang).difference.changes)


def test_a_recreated_gang_shares_no_group_with_the_former_gang():
    first, second = (planned(disaggregated(uid=uid)).difference.changes for uid in "12")
    kinds = ("CompositePodGroup", "PodGroup")
    shared = {c.name for c in first if c.kind in kinds} & {c.name for c in second if c.kind in kinds}
    assert not shared


@pytest.mark.parametrize(
    ("leaf", "parent", "of_class"),
    [
        (Leaf("a", 1, "rack"), TreeNode("dis-0"), None),
        (Leaf("a", 1), TreeNode("r0"), None),
        (Leaf("a", 1), None, None),
        (Leaf("a", 1), TreeNode("dis-0"), "high"),
        (Leaf("b", 1), TreeNode("dis-0"), None),
    ],
)
def test_a_leaf_has_another_name_if_the_api_could_not_change_it(
    leaf: Leaf, parent: TreeNode | None, of_class: str | None
):
    default_name = names.leaf(gang(), Tree(TreeNode("dis-0")), Leaf("a", 1), TreeNode("dis-0"))
    assert names.leaf(gang(), Tree(TreeNode("dis-0")), Leaf("a", 2), TreeNode("dis-0")) == default_name
    assert names.leaf(gang(), Tree(TreeNode("dis-0"), of_class), leaf, parent) != default_name


# -- priority (WL37-B34, WL37-V13) -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_gang", "owner", "expected"),
    [
        (None, pcs("", ""), None),
        ("high", pcs("", "", of_set="high"), "high"),
        (None, pcs("low", "low"), "low"),
        (None, None, None),
    ],
)
def test_the_root_and_the_pods_have_the_same_priority_class(of_gang: str | None, owner: Any, expected: str | None):
    pod_gang = disaggregated(priorityClassName=of_gang)
    for kind in ("CompositePodGroup", "PodGroup"):
        assert {spec.get("priorityClassName") for spec in specs(kind, pod_gang, owner=owner).values()} == {expected}


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "")])
def test_pods_of_different_priority_classes_are_rejected(classes: tuple[str, ...]):
    plan = planned(disaggregated(), owner=pcs(*classes))
    assert "different priority classes (c0: a, c1: " in plan.refusal


# -- Kubernetes 1.36 (WL-M04, WL-M06) ----------------------------------------------------------------------------------


def test_the_flat_form_is_a_workload_and_a_pod_group():
    pod_gang = gang(group("a", 2), priorityClassName="high")
    [workload] = specs("Workload", pod_gang, mode=FLAT).values()
    [(name, leaf)] = specs("PodGroup", pod_gang, mode=FLAT).items()
    [template] = workload["podGroupTemplates"]
    assert template == {
        "name": "leaf-a",
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "priorityClassName": "high",
        "disruptionMode": "PodGroup",
    }
    assert leaf["podGroupTemplateRef"] == {"workload": {"workloadName": "dis-0", "podGroupTemplateName": "leaf-a"}}
    assert leaf["schedulingPolicy"] == {"gang": {"minCount": 2}} and "parentCompositePodGroupName" not in leaf
    assert planned(pod_gang, mode=FLAT).groups == {"a": name}
    versions = {change.body["apiVersion"] for change in planned(pod_gang, mode=FLAT).difference.changes}
    assert versions == {"scheduling.k8s.io/v1alpha2"}


@pytest.mark.parametrize(
    ("of_group", "of_config", "of_gang", "key"),
    [("host", "rack", "block", "host"), (None, "rack", "block", "rack"), (None, None, "block", "block")],
)
def test_the_flat_form_has_the_narrowest_key(of_group: Any, of_config: Any, of_gang: Any, key: str):
    configs = [{"name": "r", "podGroupNames": ["a"], **packed(required=of_config)}]
    pod_gang = gang(
        group("a", 1, **packed(required=of_group)), **packed(required=of_gang), topologyConstraintGroupConfigs=configs
    )
    [leaf] = specs("PodGroup", pod_gang, mode=FLAT).values()
    assert leaf["schedulingConstraints"] == {"topology": [{"key": key}]}


def test_the_flat_form_cannot_express_a_gang_of_several_groups():
    assert "has 5 PodGroups: Kubernetes 1.36 has no gang of several" in planned(disaggregated(), mode=FLAT).refusal


def test_a_field_that_the_api_server_drops_is_reported_by_name():
    pod_gang = gang(group("a", 1, **packed(required="rack")))
    objects = builders.created(pod_gang, mode=FLAT)
    [group_name] = planned(pod_gang, mode=FLAT).groups.values()
    del objects["PodGroup", group_name].spec["schedulingConstraints"]
    plan = planned(pod_gang, objects=objects, mode=FLAT)
    assert "does not keep spec.schedulingConstraints" in plan.refusal and "TopologyAware" in plan.refusal
