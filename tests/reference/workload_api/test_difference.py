"""Tests of changes to a gang's objects, and of the fields that must not change (docs/spec: sections on life cycle and
validation)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reference_impl.plan import labels
from reference_impl.plan.workload_api.difference import Verb
from reference_impl.plan.workload_api.mode import Form, Mode
from tests.reference.workload_api.builders import (
    Objects,
    bound,
    created,
    disaggregated,
    gang,
    group,
    packed,
    planned,
)

PREFILL = "dis-0-prefill-0-pw"


def verbs(pod_gang: Any, objects: Objects, **options: Any) -> list[tuple[Verb, str]]:
    return [(change.verb, change.kind) for change in planned(pod_gang, objects=objects, **options).difference.changes]


def leaf_of(objects: Objects, clique: str) -> Any:
    [leaf] = [o for (k, _), o in objects.items() if k == "PodGroup" and o.metadata.label(labels.PODCLIQUE) == clique]
    return leaf


@pytest.mark.parametrize("mode", [Mode(), Mode(form=Form.FLAT)])
def test_nothing_is_written_twice(mode: Mode):
    pod_gang = disaggregated() if mode.form is Form.TREE else gang(group("a", 2))
    plan = planned(pod_gang, objects=created(pod_gang, mode=mode), mode=mode)
    assert plan.in_place and not plan.difference.changes


def test_a_gang_is_in_place_only_when_all_its_objects_exist():
    pod_gang = disaggregated()
    all_objects = created(pod_gang)
    for key in all_objects:
        remaining_objects = {other: item for other, item in all_objects.items() if other != key}
        plan = planned(pod_gang, objects=remaining_objects)
        assert not plan.in_place
        assert [(c.verb, (c.kind, c.name)) for c in plan.difference.changes] == [(Verb.CREATE, key)]


def test_a_changed_minimum_is_patched_in_the_template_and_the_group():
    pod_gang = disaggregated()
    objects = created(pod_gang)
    pod_gang.spec.podgroups[2].min_replicas = 3
    changes = planned(pod_gang, objects=objects).difference.changes
    assert [(c.verb, c.kind) for c in changes] == [(Verb.PATCH, "Workload"), (Verb.PATCH, "PodGroup")]
    workload, leaf = changes
    assert leaf.name == leaf_of(objects, PREFILL).metadata.name
    assert leaf.body == {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    [root] = workload.body["spec"]["compositePodGroupTemplates"]
    prefill = root["compositePodGroupTemplates"][0]["podGroupTemplates"]
    assert [t["schedulingPolicy"]["gang"]["minCount"] for t in prefill] == [1, 3]


def test_a_patch_of_the_workload_keeps_the_defaults_of_the_api_server():
    pod_gang = gang(group("a", 1))
    objects = created(pod_gang)
    [root] = objects["Workload", "dis-0"].spec["compositePodGroupTemplates"]
    root |= {"priority": 7, "disruptionMode": {"all": {}}}
    root["podGroupTemplates"][0] |= {"priority": 7, "disruptionMode": {"single": {}}}
    assert verbs(pod_gang, objects) == []
    pod_gang.spec.podgroups[0].min_replicas = 2
    change = planned(pod_gang, objects=objects).difference.changes[0]
    [patched] = change.body["spec"]["compositePodGroupTemplates"]
    assert patched["priority"] == patched["podGroupTemplates"][0]["priority"] == 7


def test_the_default_priority_class_of_the_cluster_is_kept():
    pod_gang = disaggregated()
    objects = created(pod_gang)
    for item in objects.values():
        item.spec["priorityClassName"] = "default-of-the-cluster"
    assert verbs(pod_gang, objects) == []


def test_an_additional_group_recreates_objects_that_the_api_cannot_change():
    pod_gang = gang(group("a", 1), group("b", 1))
    objects = created(pod_gang)
    larger_gang = gang(group("a", 1), group("b", 1), group("c", 1))
    assert verbs(larger_gang, objects) == [
        (Verb.REPLACE, "Workload"),
        (Verb.REPLACE, "CompositePodGroup"),
        (Verb.CREATE, "PodGroup"),
    ]


def test_a_leaf_with_another_shape_gets_a_new_name_and_the_old_leaf_is_deleted():
    pod_gang = disaggregated()
    objects = created(pod_gang)
    flat = gang(
        *({"name": g.name, "minReplicas": g.min_replicas} for g in pod_gang.spec.podgroups), **packed(required="zone")
    )
    changes = planned(flat, objects=objects).difference.changes
    leaves = [c for c in changes if c.kind == "PodGroup"]
    created_names = {c.name for c in leaves if c.verb is Verb.CREATE}
    deleted_names = {c.name for c in leaves if c.verb is Verb.DELETE}
    assert created_names == set(planned(flat).groups.values()) - {leaf_of(objects, "dis-0-router").metadata.name}
    assert len(deleted_names) == 4 and not created_names & deleted_names
    for name in deleted_names:  # their finalizers wait for the pods, but the operator does not wait
        objects["PodGroup", name].metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert Verb.DELETE not in {
        c.verb for c in planned(flat, objects=objects).difference.changes if c.kind == "PodGroup"
    }


def test_surplus_objects_do_not_matter_for_a_gang_in_place():
    pod_gang = gang(group("a", 1), group("b", 1))
    objects = created(gang(group("a", 1), group("b", 1), group("c", 1)))
    remaining_objects = created(pod_gang) | {key: item for key, item in objects.items() if key[0] == "PodGroup"}
    plan = planned(pod_gang, objects=remaining_objects)
    assert [c.verb for c in plan.difference.changes] == [Verb.DELETE] and plan.in_place


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("CompositePodGroup", "schedulingPolicy", {"gang": {"minGroupCount": 1}}),
        ("CompositePodGroup", "schedulingPolicy", {"basic": {}}),
        ("CompositePodGroup", "schedulingConstraints", {"topology": [{"key": "other"}]}),
        ("CompositePodGroup", "disruptionMode", {"single": {}}),
        ("CompositePodGroup", "priorityClassName", "other"),
        ("Workload", "controllerRef", {"apiGroup": "x", "kind": "PodGang", "name": "dis-0"}),
    ],
)
def test_an_object_with_different_content_is_replaced(kind: str, field: str, value: Any):
    pod_gang = disaggregated(priorityClassName="high")
    objects = created(pod_gang)
    key = next(key for key in objects if key[0] == kind)
    objects[key].spec[field] = value
    plan = planned(pod_gang, objects=objects)
    assert [(c.verb, c.kind, c.name) for c in plan.difference.changes] == [(Verb.REPLACE, *key)]
    assert not plan.in_place


def test_labels_are_restored():
    pod_gang = disaggregated()
    objects = created(pod_gang)
    objects["Workload", "dis-0"].metadata.labels = {"other": "x"}
    [change] = planned(pod_gang, objects=objects).difference.changes
    assert change.verb is Verb.PATCH and change.body["metadata"]["labels"][labels.PODGANG] == "dis-0"
    assert "spec" not in change.body


# -- existing names (WL37-L03, WL37-L04) ----------------------------------------------------------------


def test_a_name_of_another_owner_is_an_error():
    pod_gang = disaggregated()
    for key in created(pod_gang):
        objects = created(pod_gang)
        objects[key].metadata.owner_references = None
        plan = planned(pod_gang, objects=objects)
        assert plan.refusal == f"{key[0]} ns/{key[1]} exists and is not controlled by PodGang ns/dis-0"
        assert not plan.in_place and not plan.difference.changes


def test_the_plan_waits_for_objects_of_an_earlier_gang_of_the_same_name():
    earlier, pod_gang = created(disaggregated(uid="0")), disaggregated(uid="1")
    plan = planned(pod_gang, objects=earlier)
    assert not plan.refusal and not plan.in_place
    assert plan.difference.waits_for == ("Workload dis-0",)
    assert {c.verb for c in plan.difference.changes} == {Verb.CREATE}
    assert len(plan.difference.changes) == 8  # all groups, because none of their names is in use


def test_a_pod_group_being_deleted_is_used_until_it_is_gone():
    pod_gang = disaggregated()
    objects = created(pod_gang)
    leaf = leaf_of(objects, PREFILL)
    leaf.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert planned(pod_gang, objects=objects).in_place
    del objects["PodGroup", leaf.metadata.name]
    assert verbs(pod_gang, objects) == [(Verb.CREATE, "PodGroup")]


@pytest.mark.parametrize("kind", ["Workload", "CompositePodGroup"])
def test_the_plan_waits_for_other_objects_being_deleted(kind: str):
    pod_gang = disaggregated()
    objects = created(pod_gang)
    key = next(key for key in objects if key[0] == kind)
    objects[key].metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    plan = planned(pod_gang, objects=objects)
    assert not plan.in_place and not plan.difference.changes


# -- minimums (WL-HD2, WL37-L06) ---------------------------------------------------------------------------------------


def test_a_released_minimum_keeps_its_last_value():
    pod_gang = disaggregated()
    objects, groups = created(pod_gang), planned(pod_gang).groups
    for podgroup in pod_gang.spec.podgroups:
        podgroup.min_replicas = 0
    plan = planned(pod_gang, objects=objects)
    assert plan.minimums[PREFILL] == 2 and verbs(pod_gang, objects) == []
    for lost in ("Workload", "PodGroup"):  # either object suffices
        remaining_objects = {key: item for key, item in objects.items() if key[0] != lost}
        assert planned(pod_gang, objects=remaining_objects).minimums[PREFILL] == 2
    # Without either object, the minimum of the clique applies.
    assert planned(pod_gang, **{PREFILL: 4}).minimums[PREFILL] == 4
    assert planned(pod_gang).minimums[PREFILL] == 1
    assert planned(pod_gang).groups == groups and not planned(pod_gang).refusal


def test_a_released_minimum_is_not_lowered_by_pods_that_ran_elsewhere():
    pod_gang = gang(group("a", 3), placed=True)
    old = [copy.copy(p) for p in bound(pod_gang, {"a": ""})]
    objects = created(pod_gang)
    [patch] = planned(pod_gang, old, objects).difference.changes
    assert patch.body == {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    leaf_of(objects, "a").spec["schedulingPolicy"] = {"gang": {"minCount": 1}}
    pod_gang.spec.podgroups[0].min_replicas = 0
    assert planned(pod_gang, old, objects).minimums == {"a": 3}


def test_a_minimum_cannot_be_changed_on_1_36():
    mode = Mode(form=Form.FLAT)
    pod_gang = gang(group("a", 2))
    objects = created(pod_gang, mode=mode)
    pod_gang.spec.podgroups[0].min_replicas = 3
    assert planned(pod_gang, objects=objects, mode=mode).difference.changes == ()
