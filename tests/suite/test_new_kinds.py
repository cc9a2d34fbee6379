"""Tests that, before the first test, the garbage collector of an existing cluster knows newly installed kinds."""

from __future__ import annotations

import pytest
from real import wait_for

from conformance.cluster.controlplane import Cluster
from conformance.cluster.health import COMPONENTS
from conformance.cluster.ports import Port
from conformance.errors import HarnessError
from conformance.implementation import installation
from conformance.suite.scenes.api import Api
from conformance.suite.session import new_kinds
from kube.resource import CRDS, Resource

pytestmark = pytest.mark.cluster


@pytest.fixture
def cluster(bare_cluster: Cluster) -> Cluster:
    return bare_cluster


def manager(cluster: Cluster) -> int:
    return cluster.monitor.pids()[COMPONENTS[Port.CONTROLLER_MANAGER]]


def install(api: Api, plural: str) -> Resource:
    kind = Resource("test.grove.io", "v1", plural, plural.capitalize(), namespaced=False)
    api.work(lambda client: installation.install_crds(client, [new_kinds.crd_of(kind)]))
    return kind


def barriers(api: Api) -> list[str]:
    return [name for name in api.names(CRDS.plural) if name.startswith("barriers")]


def test_the_garbage_collector_of_our_cluster_is_restarted_only_for_new_kinds(bare_cluster: Cluster, api: Api) -> None:
    install(api, "firsts")
    first = manager(bare_cluster)
    assert new_kinds.learn(bare_cluster, api)
    second = manager(bare_cluster)
    assert second != first
    while new_kinds.learn(bare_cluster, api):  # if it was started within two seconds of the installation
        pass
    third = manager(bare_cluster)
    assert not new_kinds.learn(bare_cluster, api) and manager(bare_cluster) == third
    bare_cluster.kill(COMPONENTS[Port.CONTROLLER_MANAGER])
    assert new_kinds.learn(bare_cluster, api) and manager(bare_cluster) != third


@pytest.mark.thorough
def test_the_garbage_collector_of_another_cluster_is_waited_for(
    bare_cluster: Cluster, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = install(api, "seconds")
    before, names = manager(bare_cluster), set(api.names(CRDS.plural))
    assert new_kinds.learn(None, api)
    assert manager(bare_cluster) == before
    api.create_all(kind, [new_kinds.orphan_of(kind)])
    wait_for(lambda: not api.work(lambda client: client.list(kind)), 10)
    assert api.work(lambda client: client.list(kind)) == [], "what an absent object owns is collected at once"
    wait_for(lambda: set(api.names(CRDS.plural)) == names, 30)
    assert set(api.names(CRDS.plural)) == names, "nothing of the probe is left"
    monkeypatch.setattr(new_kinds, "DISCOVERY_SECONDS", -1.0)
    assert not new_kinds.learn(None, api), "kinds that were installed long ago are not waited for"


def test_a_cluster_without_garbage_collector_is_named(
    bare_cluster: Cluster, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(api, "thirds")
    monkeypatch.setattr(new_kinds, "DISCOVERY_SECONDS", 3.0)
    bare_cluster.kill(COMPONENTS[Port.CONTROLLER_MANAGER])
    try:
        with pytest.raises(HarnessError, match=r"what an absent object owns is not deleted within 3 s"):
            new_kinds.learn(None, api)
    finally:
        bare_cluster.start()
    wait_for(lambda: not barriers(api), 30)
    assert barriers(api) == []
