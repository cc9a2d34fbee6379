"""Tests of the statuses that are computed from a set's objects."""

from __future__ import annotations

import msgspec
import pytest

from reference_impl.api.models import Condition, PodCliqueScalingGroup, PodCliqueSetStatus
from reference_impl.api.pods import ContainerState, ContainerStatus, PodCondition, Terminated
from reference_impl.plan import children, conditions, hashes, names, statuses
from tests.reference.examples import clique, disaggregated, members, pod, standalone

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


@pytest.fixture
def pcs():
    result = disaggregated()
    result.status = PodCliqueSetStatus(current_generation_hash=hashes.generation_hashes(result).written)
    return result


@pytest.fixture
def router(pcs):
    return clique(standalone(pcs, 0, pcs.spec.template.cliques[0]))


def reasons(status):
    return {c.type: (c.status, c.reason) for c in status.conditions}


def test_terminating_pods_are_not_counted(router, pcs):
    running_pod, terminating_pod = (
        pod(router, 0, node="n", ready=True),
        pod(router, 1, node="n", ready=True, terminating=True),
    )
    status = statuses.clique_status(router, [running_pod, terminating_pod], pcs, NOW)
    assert (status.replicas, status.ready_replicas, status.scheduled_replicas, status.updated_replicas) == (1, 1, 1, 1)


def test_a_binding_alone_makes_a_pod_scheduled(router, pcs):
    status = statuses.clique_status(router, [pod(router, 0, node="n"), pod(router, 1, gated=True)], pcs, NOW)
    assert (status.scheduled_replicas, status.schedule_gated_replicas, status.ready_replicas) == (1, 1, 0)
    assert reasons(status) == {
        "PodCliqueScheduled": ("True", "SufficientScheduledPods"),
        "MinAvailableBreached": ("False", "SufficientReadyPods"),
    }


def test_too_few_bound_pods_breach_min_available(router, pcs):
    status = statuses.clique_status(router, [pod(router, 0)], pcs, NOW)
    assert reasons(status)["MinAvailableBreached"] == ("True", "ScheduledReplicasBelowMinAvailable")


def test_a_crashed_pod_breaches_until_it_is_ready_again(router, pcs):
    crashed = pod(router, 0, node="n")
    crashed.status.container_statuses = [ContainerStatus("main", last_state=ContainerState(Terminated(1)))]
    assert reasons(statuses.clique_status(router, [crashed], pcs, NOW))["MinAvailableBreached"] == (
        "True",
        "InsufficientReadyPods",
    )
    recovered = pod(router, 0, node="n", ready=True)
    recovered.status.container_statuses = crashed.status.container_statuses
    assert reasons(statuses.clique_status(router, [recovered], pcs, NOW))["MinAvailableBreached"][0] == "False"


def test_a_started_pod_that_is_not_ready_does_not_count(router, pcs):
    started = pod(router, 0, node="n")
    started.status.container_statuses = [ContainerStatus("main", started=True, ready=False)]
    assert reasons(statuses.clique_status(router, [started], pcs, NOW))["MinAvailableBreached"][0] == "True"


def test_a_condition_changes_its_time_only_with_its_status():
    first = conditions.with_condition(None, Condition(type="T", status="True", reason="A", last_transition_time=NOW))
    same = conditions.with_condition(first, Condition(type="T", status="True", reason="B", last_transition_time=LATER))
    other = conditions.with_condition(
        first, Condition(type="T", status="False", reason="B", last_transition_time=LATER)
    )
    assert (same[0].reason, same[0].last_transition_time) == ("B", NOW)
    assert other[0].last_transition_time == LATER


def test_an_unchanged_status_is_equal_so_that_nothing_is_written(router, pcs):
    members = [pod(router, i, node="n", ready=True) for i in range(2)]
    router.status = statuses.clique_status(router, members, pcs, NOW)
    assert statuses.clique_status(router, members, pcs, LATER) == router.status


def group_with_members(pcs, ready):
    manifest = children.scaling_group(pcs, 0, children.group_configs(pcs)[0])
    manifest["metadata"] |= {"uid": "u-group", "generation": 1}
    group = msgspec.convert(manifest, PodCliqueScalingGroup)
    cliques = {}
    for m in members(pcs, group):
        member = clique(m, uid=f"u-{m['metadata']['name']}")
        pods = [pod(member, i, node="n", ready=ready(member)) for i in range(member.spec.replicas)]
        member.status = statuses.clique_status(member, pods, pcs, NOW)
        cliques[member.metadata.name] = member
    return group, cliques


def test_a_group_replica_is_available_when_all_its_cliques_are(pcs):
    group, cliques = group_with_members(pcs, lambda member: member.metadata.name != "llm-0-workers-1-decode")
    status = statuses.group_status(group, pcs, cliques.get, NOW)
    assert (status.scheduled_replicas, status.available_replicas, status.updated_replicas) == (3, 2, 2)


def test_a_group_whose_members_have_no_conditions_is_breached(pcs):
    """Unlike upstream, where a member without the condition counts as not in breach (OBJ-773)."""
    group, cliques = group_with_members(pcs, lambda _: True)
    for member in cliques.values():
        member.status = None
    assert reasons(statuses.group_status(group, pcs, cliques.get, NOW))["MinAvailableBreached"][0] == "True"


def test_a_set_replica_is_available_when_its_cliques_and_groups_are(pcs, router):
    group, cliques = group_with_members(pcs, lambda _: True)
    group.status = statuses.group_status(group, pcs, cliques.get, NOW)
    router.status = statuses.clique_status(router, [pod(router, 0, node="n", ready=True)], pcs, NOW)
    cliques[router.metadata.name] = router
    groups = {names.scaling_group("llm", 0, "workers"): group}
    full = statuses.set_status(pcs, pcs.status.current_generation_hash, cliques.get, groups.get, True)
    assert (full.available_replicas, full.updated_replicas, full.observed_generation) == (1, 1, 1)
    router.status = statuses.clique_status(router, [pod(router, 0, node="n")], pcs, NOW)
    assert statuses.set_status(pcs, "h", cliques.get, groups.get, False).available_replicas == 0


def test_a_pod_on_an_unresponsive_node_is_lost_but_not_a_pod_with_a_readiness_gate(router, pcs):
    """Its containers were last reported as ready, but the pod is not Ready (CHG-DF21)."""
    lost = pod(router, 0, node="n")
    lost.status.container_statuses = [ContainerStatus("main", ready=True, started=True)]
    lost.status.conditions = [PodCondition("Ready", "False")]
    assert reasons(statuses.clique_status(router, [lost], pcs, NOW))["MinAvailableBreached"] == (
        "True",
        "InsufficientReadyPods",
    )
    lost.status.conditions = [PodCondition("Ready", "False", "ReadinessGatesNotReady")]
    assert reasons(statuses.clique_status(router, [lost], pcs, NOW))["MinAvailableBreached"][0] == "False"
