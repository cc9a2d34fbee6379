"""Tests of admission on a cluster with policies, in its first namespace and after a restart of its components."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import policies, snapshots
from conformance.cluster.controlplane import Cluster, ClusterSettings
from conformance.cluster.kubelet_sim.process import COMPONENT
from conformance.cluster.policies import Policies
from conformance.cluster.state import StateRoot
from conformance.errors import HarnessError
from conformance.grove.restricted import restricted
from conformance.implementation import deployment
from conformance.suite.scenes.api import Api
from conformance.suite.session import policy_objects
from kube.errors import ApiError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
HOUSE_RULES = "{apiVersion: v1, kind: ConfigMap, metadata: {name: house-rules}}"
CONTAINER = {"name": "main", "image": "registry.example/main:1"}
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}


@pytest.fixture(scope="module")
def selected_policies(tmp_path_factory: pytest.TempPathFactory) -> Policies:
    folder = tmp_path_factory.mktemp("policies")
    (folder / "house.yaml").write_text(HOUSE_RULES)
    return policies.load(policies.select(["restricted,quota,limits,sidecar", str(folder)]))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, selected_policies: Policies) -> Iterator[Cluster]:
    settings = ClusterSettings(audit=False, policies=selected_policies)
    running_cluster = Cluster.up(
        "policies", settings=settings, state=StateRoot(tmp_path_factory.mktemp("state") / "root")
    )
    try:
        deployment.install_policies(running_cluster, selected_policies, lambda *_: None)
        yield running_cluster
    finally:
        running_cluster.down()


@pytest.fixture
def create_pod(api: Api, selected_policies: Policies) -> Callable[..., Any]:
    """A function that creates a pod with a spec, in a new namespace with the objects of all policies."""
    metadata = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "team-"}})["metadata"]
    name = metadata["name"]
    policy_objects.wait(api, name, [*selected_policies.objects_without_namespace, ACCOUNT])

    def create_in_namespace(spec: dict[str, Any]) -> Any:
        metadata = {"name": "pod", "namespace": name}
        return api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    return create_in_namespace


def test_pods_that_are_not_restricted_are_refused(create_pod: Callable[..., Any]) -> None:
    with pytest.raises(ApiError, match=r'violates PodSecurity "restricted:latest": allowPrivilegeEscalation'):
        create_pod({"containers": [CONTAINER]})


def test_admitted_pods_have_requests_limits_a_label_and_a_sidecar(create_pod: Callable[..., Any]) -> None:
    pod = create_pod(restricted({"containers": [CONTAINER]}))
    assert pod["metadata"]["labels"] == {"mesh.example/injected": "true"}
    names = [container["name"] for container in pod["spec"]["containers"]]
    resources = [container["resources"] for container in pod["spec"]["containers"]]
    assert names == ["main", "mesh-proxy"]
    assert resources == [{"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "64", "memory": "512Gi"}}] * 2


def test_requests_above_the_quota_are_refused(create_pod: Callable[..., Any]) -> None:
    resources = {"limits": {"nvidia.com/gpu": "2001"}}
    with pytest.raises(ApiError, match=r"exceeded quota: quota, requested: requests.nvidia.com/gpu=2001"):
        create_pod(restricted({"containers": [{**CONTAINER, "resources": resources}]}))


def test_policies_survive_restarts_and_snapshots(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    cluster.kill(COMPONENT)
    cluster.start()
    snapshots.take(cluster, "now")
    snapshots.restore(cluster, "now")
    test_admitted_pods_have_requests_limits_a_label_and_a_sidecar(request.getfixturevalue("create_pod"))


def test_an_object_that_the_api_server_refuses_is_reported_with_its_file(cluster: Cluster, tmp_path: Path) -> None:
    policy_file = tmp_path / "mine.yaml"
    policy_file.write_text(
        "{apiVersion: v1, kind: LimitRange, metadata: {name: mine}, spec: {limits: [{type: Nothing}]}}"
    )
    with pytest.raises(HarnessError, match=r"mine\.yaml: the API server rejected LimitRange mine: ") as caught:
        deployment.install_policies(cluster, policies.load([str(policy_file)]), lambda *_: None)
    assert len(str(caught.value).splitlines()) == 1
