"""Tests that clusters serve the Workload API, and that a component without it is reported in one line.

1.36 is the default version. Tests of 1.37 are marked as thorough, because a fresh machine would have to build 1.37.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.cluster.features import FeatureRequest
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.errors import UsageError
from conformance.suite.session import existing
from kube.client import Client

pytestmark = [pytest.mark.cluster]
WORKLOAD_API = FeatureRequest(("workload-api",))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateRoot]:
    yield StateRoot(tmp_path / "root")


def start_cluster(
    state: StateRoot, version: str, *gates: str, apis: tuple[str, ...] = (), preflight: bool = True
) -> Cluster:
    requested_features = FeatureRequest(("workload-api",), gates, apis)
    settings = ClusterSettings(audit=False, kubernetes=version, features=requested_features, preflight=preflight)
    return Cluster.up("gated", settings=settings, state=state)


def served_resources(cluster: Cluster, path: str) -> list[str]:
    async def ask() -> bytes:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="tests") as client:
            return await client.request("GET", path)

    return [entry["name"] for entry in json.loads(asyncio.run(ask()))["resources"]]


def test_the_default_version_schedules_flat_groups(state: StateRoot) -> None:
    cluster = start_cluster(state, "")
    try:
        assert cluster.record.features == ["--features", "workload-api"]
        assert "podgroups" in served_resources(cluster, "/apis/scheduling.k8s.io/v1alpha2")
        existing.require_features(cluster.kubeconfig, WORKLOAD_API)
    finally:
        cluster.down()


@pytest.mark.thorough
def test_a_scheduler_without_the_gate_is_reported_and_nothing_is_left(state: StateRoot) -> None:
    disabled_gates = "kube-scheduler:GangScheduling=false,kube-scheduler:WorkloadAwarePreemption=false"
    with pytest.raises(UsageError, match="kube-scheduler: the feature gate GenericWorkload or GangScheduling is off"):
        start_cluster(state, "", disabled_gates)
    assert not state.names()


@pytest.mark.thorough
def test_the_next_version_schedules_trees_and_keeps_its_version(state: StateRoot) -> None:
    cluster = start_cluster(state, "1.37")
    try:
        assert cluster.record.versions["kubernetes"] == existing.version(cluster.kubeconfig) == "1.37.2"
        assert "compositepodgroups" in served_resources(cluster, "/apis/scheduling.k8s.io/v1alpha3")
        cluster.restart()
        assert existing.version(cluster.kubeconfig) == "1.37.2"
        existing.require_features(cluster.kubeconfig, WORKLOAD_API)
    finally:
        cluster.down()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gates", "apis", "message"),
    [
        (("kube-scheduler:CompositePodGroup=false",), (), "kube-scheduler: the feature gate CompositePodGroup is off"),
        (("kube-controller-manager:GenericWorkload=false",), (), "kube-controller-manager: the feature gate GenericW"),
        (
            ("CompositePodGroup=false", "kube-scheduler:TopologyAwareWorkloadScheduling=false"),
            (),
            "kube-scheduler: the feature gate TopologyAwareWorkloadScheduling is off",
        ),
        (
            ("kube-apiserver:CompositePodGroup=false", "kube-apiserver:TopologyAwareWorkloadScheduling=false"),
            (),
            "kube-apiserver: the feature gate CompositePodGroup is off: compositepodgroups.scheduling.k8s.io are not",
        ),
        ((), ("scheduling.k8s.io/v1alpha3=false",), "kube-apiserver: scheduling.k8s.io/v1alpha3 is not served"),
        (
            ("kube-scheduler:GenericWorkload=false",),
            (),
            "--feature-gates: the feature gate CompositePodGroup of kube-s",
        ),
        (("kube-scheduler:GangScheduling=true",), (), "kube-scheduler does not know the feature gate GangScheduling"),
    ],
)
def test_a_component_of_the_next_version_without_a_feature_is_reported(
    state: StateRoot, gates: tuple[str, ...], apis: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        start_cluster(state, "1.37", *gates, apis=apis)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not state.names()


@pytest.mark.thorough
def test_an_api_that_is_served_later_is_sufficient(state: StateRoot) -> None:
    """WL37-E22: kube-scheduler binds no pod until the API is served, and then needs no restart."""
    versions = ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3")
    cluster = start_cluster(state, "1.37", apis=tuple(f"{api}=false" for api in versions), preflight=False)
    try:
        with pytest.raises(UsageError, match=r"kube-apiserver: scheduling\.k8s\.io/v1beta1 is not served: "):
            existing.require_features(cluster.kubeconfig, WORKLOAD_API)
        file = cluster.workspace / "kwok.yaml"
        text = file.read_text()
        for api in versions:
            assert f"{api}=false" in text
            text = text.replace(f"{api}=false", f"{api}=true")
        file.write_text(text)
        scheduler_pid = cluster.monitor.pids()["kube-scheduler"]
        cluster.kill("kube-apiserver")
        cluster.start()
        existing.require_features(cluster.kubeconfig, WORKLOAD_API)
        assert cluster.monitor.pids()["kube-scheduler"] == scheduler_pid
    finally:
        cluster.down()
