"""Tests of gangs: their shape, when they are complete, and when gates are removed."""

from __future__ import annotations

import msgspec
import pytest

from reference_impl.api.models import Condition, NamespacedName, PodGang, PodGangStatus
from reference_impl.plan import gangs, gates, labels, names
from reference_impl.plan.lines import NAMES
from tests.reference.examples import clique, disaggregated, placement, pod, standalone


def shape(pcs, live=None):
    return {gang.name: gang.minimums for gang in gangs.planned_gangs(pcs, 0, placement(pcs, 0, live), NAMES)}


def test_replicas_below_min_available_are_in_the_base_gang():
    assert shape(disaggregated(group_replicas=3, min_available=2)) == {
        "llm-0": {
            "llm-0-router": 1,
            "llm-0-workers-0-prefill": 2,
            "llm-0-workers-0-decode": 1,
            "llm-0-workers-1-prefill": 2,
            "llm-0-workers-1-decode": 1,
        },
        "llm-0-workers-0": {"llm-0-workers-2-prefill": 2, "llm-0-workers-2-decode": 1},
    }


def test_the_live_scaling_group_determines_the_number_of_replicas():
    assert set(shape(disaggregated(group_replicas=1), live=3)) == {
        "llm-0",
        "llm-0-workers-0",
        "llm-0-workers-1",
    }


def test_gangs_identified_by_indices_have_only_the_documented_labels():
    """Exactly the labels of OBJ-201, OBJ-202 and OBJ-214."""
    pcs = disaggregated(group_replicas=2)
    planned = gangs.planned_gangs(pcs, 3, placement(pcs, 3, None), NAMES)
    manifests = [gangs.manifest(pcs, gang, "gang") for gang in planned]
    keys = {labels.MANAGED_BY, labels.PART_OF, labels.COMPONENT, labels.SCHEDULER_NAME}
    assert [set(manifest["metadata"]["labels"]) for manifest in manifests] == [keys, keys]


@pytest.mark.parametrize(
    ("pcs", "gang", "index"),
    [
        ("llm", "llm-3", "3"),
        ("llm", "llm-3-workers-0", "3"),
        ("llm-3", "llm-3-1", "1"),
        ("llm", "other-3", ""),
        ("llm", "llm-x", ""),
        ("llm", "llm", ""),
    ],
)
def test_the_name_of_a_gang_contains_its_replica_index(pcs, gang, index):
    assert names.replica_index_in_name(pcs, gang) == index


@pytest.fixture
def router():
    pcs = disaggregated()
    return clique(standalone(pcs, 0, pcs.spec.template.cliques[0]))


def gang_of(router, *, initialized=True, references=()):
    planned = gangs.PlannedGang("llm-0", {router.metadata.name: 1})
    manifest = gangs.manifest(disaggregated(), planned, "gang")
    manifest["metadata"] |= {"uid": "u-gang", "resourceVersion": "1"}
    gang = msgspec.convert(manifest, PodGang)
    gang.spec.podgroups[0].pod_references = [NamespacedName(namespace="ns", name=name) for name in references]
    if initialized:
        gang.status = PodGangStatus(phase="Pending", conditions=[Condition(type="Initialized", status="True")])
    return gang


def test_references_name_the_living_pods_of_the_gang_sorted_by_name(router):
    members = [
        pod(router, 1),
        pod(router, 0),
        pod(router, 2, terminating=True),
        pod(router, 3, gang="another"),
    ]
    groups = gangs.groups_with_references(gang_of(router), None, members)
    assert [ref.name for ref in groups[0].pod_references] == ["llm-0-router-00000", "llm-0-router-00001"]


def test_a_gang_is_complete_when_all_replicas_exist_and_not_only_the_minimum(router):
    gang = gang_of(router)
    one_pod, two_pods = (
        gangs.groups_with_references(gang, None, [pod(router, 0)]),
        gangs.groups_with_references(gang, None, [pod(router, 0), pod(router, 1)]),
    )
    assert not gangs.is_complete(gang, one_pod, lambda _: router, {})
    assert gangs.is_complete(gang, two_pods, lambda _: router, {})
    assert not gangs.is_complete(gang, two_pods, lambda _: None, {})


def test_a_gang_is_complete_with_its_share_of_a_clique(router):
    router.metadata.labels.pop(labels.PODGANG)
    gang, one_pod = (
        gang_of(router),
        gangs.groups_with_references(gang_of(router), None, [pod(router, 0, gang="llm-0")]),
    )
    assert gangs.is_complete(gang, one_pod, lambda _: router, {"llm-0-router": 1})
    assert not gangs.is_complete(gang, one_pod, lambda _: router, {"llm-0-router": 2})


def test_a_gang_without_groups_is_never_complete(router):
    gang = gang_of(router)
    assert not gangs.is_complete(gang, [], lambda _: router, {})


def test_a_gate_is_removed_when_the_initialized_gang_names_the_pod(router):
    first, second = pod(router, 0, gated=True), pod(router, 1, gated=True)
    named = gang_of(router, references=[first.metadata.name])
    assert gates.pods_to_ungate([first, second], router.metadata.name, named, [], lambda _: 0) == [first]
    uninitialized_gang = gang_of(router, initialized=False, references=[first.metadata.name])
    assert gates.pods_to_ungate([first], router.metadata.name, uninitialized_gang, [], lambda _: 0) == []
    assert gates.pods_to_ungate([first], router.metadata.name, None, [], lambda _: 0) == []


def test_a_pod_waits_until_all_minimums_of_the_awaited_gang_are_bound(router):
    waiting = pod(router, 0, gated=True)
    pod_gang = gang_of(router, references=[waiting.metadata.name])
    base = gang_of(router)
    base.spec.podgroups.append(msgspec.structs.replace(base.spec.podgroups[0], name="other", min_replicas=2))
    name = router.metadata.name
    assert gates.pods_to_ungate([waiting], name, pod_gang, [None], lambda _: 9) == []
    assert gates.pods_to_ungate([waiting], name, pod_gang, [base], lambda _: 1) == []
    assert gates.pods_to_ungate([waiting], name, pod_gang, [base], lambda _: 2) == [waiting]
    base.status.last_scheduled = "2026-01-01T00:00:00Z"
    assert gates.pods_to_ungate([waiting], name, pod_gang, [base], lambda _: 0) == [waiting]


def test_a_gang_keeps_grove_labels_and_mirrors_labels_of_the_set():
    merged = labels.mirrored_metadata(
        {"app": "grove"}, {"grove.io/x": "1", "stale": "1"}, {"team": "a", "grove.io/y": "1"}
    )
    assert merged == {"grove.io/x": "1", "team": "a", "app": "grove"}
