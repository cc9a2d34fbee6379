"""What is asked of an existing cluster before a run on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.errors import UsageError
from conformance.suite.scenes.api import Api, Loop
from conformance.suite.session import existing


class Nodes:
    """An API server whose nodes become Ready, or do not."""

    def __init__(self, ready: bool) -> None:
        self.status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
        self.nodes: dict[str, Any] = {}

    def create_all(self, resource: object, wanted: list[Any]) -> None:
        self.nodes |= {node["metadata"]["name"]: {**node, "status": self.status} for node in wanted}

    def get(self, plural: str, namespace: None, name: str) -> Any:
        return self.nodes[name]

    def delete(self, plural: str, namespace: None, names: list[str]) -> None:
        for name in names:
            del self.nodes[name]


def test_a_node_is_made_ready_and_goes_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(existing, "ours", lambda kubeconfig: None)
    well, unwell = Nodes(True), Nodes(False)
    existing._preflight(tmp_path, well, 30)
    with pytest.raises(
        UsageError, match=r"a fake node is not Ready after 0.2 s: KWOK does not run, or .* — start KWOK"
    ):
        existing._preflight(tmp_path, unwell, 0.2)
    assert well.nodes == unwell.nodes == {}


@pytest.fixture
def api(bare_cluster: Cluster) -> Iterator[Api]:
    loop = Loop()
    made = Api(loop, bare_cluster.kubeconfig, "test")
    yield made
    made.close()
    loop.close()


@pytest.mark.cluster
def test_a_cluster_without_kwok_is_refused_before_the_first_test(
    bare_cluster: Cluster, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    existing.guard(bare_cluster.kubeconfig, 4)
    kwok = bare_cluster.monitor.process("kwok-controller")
    assert kwok is not None
    kwok.suspend()
    try:
        with pytest.raises(UsageError, match=r"the cluster is not well: kwok-controller is stopped"):
            existing.guard(bare_cluster.kubeconfig)
        # As somebody else's cluster, of which only the API can be asked.
        monkeypatch.setattr(existing, "ours", lambda kubeconfig: None)
        with pytest.raises(UsageError, match=r"is neither ours nor given away"):
            existing.guard(bare_cluster.kubeconfig)
        api.patch("namespaces", None, "kube-system", {"metadata": {"labels": {existing.DISPOSABLE: "true"}}})
        begin = time.monotonic()
        with pytest.raises(UsageError, match=r"a fake node is not Ready after 5 s: KWOK does not run"):
            existing.guard(bare_cluster.kubeconfig)
        assert time.monotonic() - begin < 10
    finally:
        kwok.resume()
    assert [name for name in api.names("nodes") if "preflight" in name] == []
