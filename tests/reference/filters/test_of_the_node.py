"""Tests of the filters that depend only on the node: names, cordons, taints, affinity, and unknown fields."""

from __future__ import annotations

import pytest

from tests.reference.filters.scenes import ZONE, cluster, feasible, node, pod, reasons

NODES = [node("a", "z1", labels={"rank": "5"}), node("b", "z2", labels={"rank": "x"})]


def required(*terms):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def label(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator, value):
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [value]}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "a b"),
        ({"nodeName": "b"}, "b"),
        ({"nodeSelector": {ZONE: "z1"}}, "a"),
        ({"affinity": required(label(ZONE, "In", "z1", "z3"))}, "a"),
        ({"affinity": required(label(ZONE, "NotIn", "z1"))}, "b"),
        ({"affinity": required(label("gpu", "NotIn", "z1"))}, "a b"),
        ({"affinity": required(label("gpu", "Exists"))}, ""),
        ({"affinity": required(label("gpu", "DoesNotExist"))}, "a b"),
        ({"affinity": required(label("rank", "Gt", "4"))}, "a"),
        ({"affinity": required(label("rank", "Lt", "5"))}, ""),
        ({"affinity": required(field("In", "b"))}, "b"),
        ({"affinity": required(field("NotIn", "b"))}, "a"),
        ({"affinity": required({})}, ""),
        ({"affinity": required({}, field("In", "a"))}, "a"),
        ({"affinity": required({**field("In", "a"), **label(ZONE, "In", "z2")})}, ""),
    ],
)
def test_names_labels_and_fields_select_nodes(spec, expected):
    assert feasible(pod(**spec), cluster(NODES)) == expected


def taint(value="", effect="NoSchedule"):
    return {"key": "k", "value": value, "effect": effect}


@pytest.mark.parametrize(
    ("taints", "toleration", "tolerated"),
    [
        ([taint()], None, False),
        ([taint(effect="NoExecute")], None, False),
        ([taint(effect="PreferNoSchedule")], None, True),
        ([taint("v")], {"key": "k", "value": "v"}, True),
        ([taint("v")], {"key": "k", "value": "w"}, False),
        ([taint("v")], {"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ([taint("v"), taint("v", "NoExecute")], {"operator": "Exists"}, True),
        ([taint("5")], {"key": "k", "operator": "Gt", "value": "4"}, True),
        ([taint("5")], {"key": "k", "operator": "Lt", "value": "4"}, False),
        ([taint("3")], {"key": "k", "operator": "Lt", "value": "4"}, True),
        ([taint("05")], {"key": "k", "operator": "Gt", "value": "4"}, False),
        ([taint("x")], {"key": "k", "operator": "Gt", "value": "4"}, False),
    ],
)
def test_taints_repel_pods_without_tolerations(taints, toleration, tolerated):
    state = cluster([node("a", taints=taints)])
    assert (feasible(pod(tolerations=[toleration] if toleration else []), state) == "a") is tolerated


def test_tolerating_its_taint_tolerates_a_cordon():
    state = cluster([node("a", unschedulable=True)])
    assert reasons(pod(), state) == "NodeUnschedulable: node was unschedulable"
    assert feasible(pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]), state) == "a"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"affinity": {"gpuAffinity": {}}}, "gpuAffinity"),
        ({"affinity": {"podAffinity": {"requiredDuringExecution": []}}}, "requiredDuringExecution"),
        ({"affinity": required(label("rank", "Near", "4"), {})}, "Near"),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "Ask"}]}, "Ask"),
        ({"tolerations": [{"key": "k", "operator": "Like", "value": "v"}]}, "Like"),
    ],
)
def test_a_pod_with_an_unknown_field_or_operator_is_placed_nowhere(spec, name):
    assert feasible(pod(**spec), cluster(NODES)) == ""
    assert name in reasons(pod(**spec), cluster(NODES))
