"""Tests of the checks of an existing cluster before a run on it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conformance.cluster import kubeconfigs, pace, suspension
from conformance.cluster.controlplane import Cluster
from conformance.errors import UsageError
from conformance.implementation import loading
from conformance.suite.scenes.api import Api, Loop
from conformance.suite.session import existing, foreign
from conformance.suite.session.occupation import OccupationTerms, occupied
from tests.cluster.waiting import wait_for


@pytest.fixture
def cluster(bare_cluster: Cluster) -> Cluster:
    return bare_cluster


@pytest.mark.cluster
def test_a_cluster_without_kwok_is_refused_before_the_first_test(
    bare_cluster: Cluster, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    existing.require_usable(bare_cluster.kubeconfig)
    kwok = bare_cluster.monitor.process("kwok-controller")
    assert kwok is not None
    kwok.suspend()
    wait_for(lambda: suspension.find_problem(kwok.pid) == suspension.STOPPED)
    try:
        with pytest.raises(UsageError, match=r"the cluster is not well: kwok-controller is stopped"):
            existing.require_usable(bare_cluster.kubeconfig)
        # Treat it as a foreign cluster, of which only the API is accessible.
        monkeypatch.setattr(existing, "own_cluster", lambda kubeconfig: None)
        with pytest.raises(UsageError, match=r"is neither ours nor given away"):
            existing.require_usable(bare_cluster.kubeconfig)
        api.patch("namespaces", None, "kube-system", {"metadata": {"labels": {existing.DISPOSABLE: "true"}}})
        existing.require_usable(bare_cluster.kubeconfig)
        start = time.monotonic()
        terms = OccupationTerms("r1", ("--context", "theirs"))
        with (
            pytest.raises(
                UsageError, match=r"^--context theirs: a fake node is not Ready after [0-9.]+ s: KWOK does not run"
            ),
            occupied(bare_cluster.kubeconfig, terms),
        ):
            pytest.fail("nothing plays the nodes")
        assert time.monotonic() - start < 15 * pace.factor()
    finally:
        kwok.resume()
    assert [name for name in api.names("nodes") if "preflight" in name] == []


@pytest.fixture
def reader(bare_cluster: Cluster, api: Api, tmp_path: Path) -> Path:
    """The kubeconfig of a user who may only read."""
    path = tmp_path / "reader"
    path.write_bytes(kubeconfigs.role_kubeconfig(bare_cluster, "operator").read_bytes())
    path.chmod(0o600)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "operator"}],
    }
    api.create(binding)
    return path


@pytest.mark.cluster
def test_rights_that_are_missing_are_named_before_the_first_test(reader: Path, api: Api) -> None:
    foreign.require_rights(api, "here")
    loop = Loop()
    limited = Api(loop, reader, "test", {})
    try:
        with pytest.raises(UsageError, match=r"^here: its user may not create namespaces, .* create podgangs — give"):
            foreign.require_rights(limited, "here")
    finally:
        limited.close()
        loop.close()


@pytest.mark.cluster
def test_the_owner_of_a_cluster_is_informed_about_created_objects(
    bare_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = loading.load("reference")
    assert existing.effects(bare_cluster.kubeconfig, [reference]) == [], "nothing about a cluster of the suite"
    monkeypatch.setattr(existing, "own_cluster", lambda kubeconfig: None)
    version, namespaces, crds, hooks = existing.effects(bare_cluster.kubeconfig, [reference])
    assert f"the cluster at {bare_cluster.server} has Kubernetes 1." in version
    assert "removes them after it" in namespaces and "removes them at the end" in hooks
    assert "which stay; of these it changes" in crds and "podcliquesets.grove.io" in crds
