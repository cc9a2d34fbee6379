"""Tests that an incomplete Workload API is reported in one line: the component, the effect, and the missing flags."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from conformance.cluster import features, preflight
from conformance.cluster.features import FeatureRequest, Features
from conformance.cluster.preflight import ExpectedFeatures
from conformance.errors import UsageError
from kube.client import Client
from tests.cluster.simulated_cluster import ALL_GATES, BOTH_VERSIONS, COMPOSITE, GENERIC, TOPOLOGY, SimulatedCluster

TREE = ExpectedFeatures("v1beta1", topology=True, tree=True)
FLAT_FEATURES = ExpectedFeatures("v1beta1")
FLAT_AND_TOPOLOGY = ExpectedFeatures("v1beta1", topology=True)
NO_GATES: frozenset[str] = frozenset()
GENERIC_ONLY = frozenset({GENERIC})
V1BETA1, V1ALPHA3 = frozenset({"v1beta1"}), frozenset({"v1alpha3"})


def check(cluster: SimulatedCluster, expected: ExpectedFeatures = TREE, **options: Any) -> None:
    client = cast(Client, cluster)
    asyncio.run(preflight.check(client, expected, scheduler="default-scheduler", timeout=0.1, **options))


@pytest.mark.parametrize(
    ("expected", "gates", "served_versions"),
    [
        (TREE, ALL_GATES, BOTH_VERSIONS),
        (FLAT_AND_TOPOLOGY, ALL_GATES - {COMPOSITE}, V1BETA1),
        (FLAT_FEATURES, GENERIC_ONLY, V1BETA1),
    ],
)
def test_a_cluster_with_all_features_passes_and_keeps_no_objects(
    expected: ExpectedFeatures, gates: frozenset[str], served_versions: frozenset[str]
) -> None:
    cluster = SimulatedCluster(gates, served_versions, gates, GENERIC_ONLY)
    check(cluster, expected)
    assert not cluster.objects and cluster.reads


GATE_OFF = "the feature gate {} is off"


@pytest.mark.parametrize(
    ("row", "expected", "cluster", "parts"),
    [
        (
            "WL37-E10",
            TREE,
            SimulatedCluster(NO_GATES, BOTH_VERSIONS, NO_GATES),
            ("kube-apiserver: " + GATE_OFF.format(GENERIC), "drops sch"),
        ),
        (
            "WL37-E11",
            FLAT_FEATURES,
            SimulatedCluster(GENERIC_ONLY, NO_GATES, GENERIC_ONLY),
            ("--runtime-config=scheduling.k8s.io/v1beta1=true",),
        ),
        (
            "WL37-E12",
            FLAT_FEATURES,
            SimulatedCluster(GENERIC_ONLY, V1ALPHA3, GENERIC_ONLY),
            ("kube-apiserver: scheduling.k8s.io/v1beta1 is not",),
        ),
        (
            "WL37-E13",
            FLAT_FEATURES,
            SimulatedCluster(NO_GATES, NO_GATES, GENERIC_ONLY),
            ("kube-apiserver: " + GATE_OFF.format(GENERIC),),
        ),
        (
            "WL37-E14",
            TREE,
            SimulatedCluster(ALL_GATES, V1BETA1, ALL_GATES),
            ("--runtime-config=scheduling.k8s.io/v1alpha3=true",),
        ),
        (
            "WL37-E15",
            TREE,
            SimulatedCluster(ALL_GATES, V1ALPHA3, ALL_GATES),
            ("--runtime-config=scheduling.k8s.io/v1beta1=true",),
        ),
        (
            "WL37-E16",
            TREE,
            SimulatedCluster(scheduler=ALL_GATES - {COMPOSITE}),
            ("kube-scheduler: " + GATE_OFF.format(COMPOSITE),),
        ),
        (
            "WL37-E17",
            TREE,
            SimulatedCluster(scheduler=NO_GATES),
            ("kube-scheduler: " + GATE_OFF.format(GENERIC), "one by one"),
        ),
        (
            "WL37-E17",
            FLAT_FEATURES,
            SimulatedCluster(GENERIC_ONLY, V1BETA1, NO_GATES),
            ("--feature-gates=GenericWorkload=true",),
        ),
        (
            "WL37-E18",
            TREE,
            SimulatedCluster(ALL_GATES - {COMPOSITE}, BOTH_VERSIONS, ALL_GATES),
            ("kube-apiserver: " + GATE_OFF.format(COMPOSITE),),
        ),
        (
            "WL37-E19",
            FLAT_AND_TOPOLOGY,
            SimulatedCluster(scheduler=GENERIC_ONLY),
            ("kube-scheduler: " + GATE_OFF.format(TOPOLOGY),),
        ),
        (
            "WL37-E20",
            FLAT_AND_TOPOLOGY,
            SimulatedCluster(GENERIC_ONLY, V1BETA1, GENERIC_ONLY),
            ("drops schedulingConstraints of groups",),
        ),
        (
            "WL37-E21",
            TREE,
            SimulatedCluster(controller_manager=NO_GATES),
            ("kube-controller-manager: " + GATE_OFF.format(GENERIC),),
        ),
    ],
)
def test_a_missing_feature_is_reported_in_one_line(
    row: str, expected: ExpectedFeatures, cluster: SimulatedCluster, parts: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError) as caught:
        check(cluster, expected)
    message = str(caught.value)
    assert all(part in message for part in parts) and "start it with --" in message and "\n" not in message, row
    assert not cluster.objects, "the namespace could not go"


def test_a_scheduler_that_ignores_a_plain_pod_is_reported_with_its_last_error() -> None:
    def last_error(component: str) -> str:
        return f"{component} failed to list *v1alpha3.CompositePodGroup"

    with pytest.raises(
        UsageError, match=r"kube-scheduler: says nothing of a plain pod within 0.1 s: .* failed to list"
    ):
        check(SimulatedCluster(GENERIC_ONLY, V1BETA1, ALL_GATES), FLAT_FEATURES, last_error=last_error)


def test_a_scheduler_may_notice_its_api_late() -> None:
    check(SimulatedCluster(reads_until_noticed=2))
    with pytest.raises(UsageError, match="says nothing of a plain pod"):
        check(SimulatedCluster(reads_until_noticed=10**9))


def test_without_kube_scheduler_the_other_components_are_checked() -> None:
    flat_features = ExpectedFeatures("v1beta1", scheduler=False)
    check(SimulatedCluster(scheduler=NO_GATES), flat_features)
    with pytest.raises(UsageError, match="kube-controller-manager"):
        check(SimulatedCluster(controller_manager=NO_GATES), flat_features)


def test_a_cluster_without_features_of_the_workload_api_is_not_checked() -> None:
    cluster = SimulatedCluster(NO_GATES, NO_GATES, NO_GATES, NO_GATES)
    check(cluster, ExpectedFeatures.of(Features({"kube-apiserver": {"APIServerTracing": True}}), "1.37"))
    assert not cluster.reads


def test_the_features_of_one_component_are_expected_of_all() -> None:
    def expected(minor: str, **requested: tuple[str, ...]) -> ExpectedFeatures:
        return ExpectedFeatures.of(features.resolve(FeatureRequest(**requested), minor), minor)

    assert expected("1.37", presets=("workload-api",)) == TREE
    assert expected("1.36", presets=("workload-api",)) == ExpectedFeatures("v1alpha2", topology=True, preemption=True)
    assert expected("1.37", gates=("kube-scheduler:CompositePodGroup=true,kube-scheduler:GenericWorkload=true",)).tree
    assert expected("1.37", runtime_config=("scheduling.k8s.io/v1beta1=true",)) == FLAT_FEATURES
    assert not expected("1.37").version
