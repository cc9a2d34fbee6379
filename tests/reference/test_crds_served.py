"""Tests of the CRDs on a real API server: it accepts them without a warning, and the files are up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from kube.client import Answer, Client
from reference_impl.api import crds

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        control_plane = Cluster.up("crds", settings=ClusterSettings(audit=False, scheduler=False), owner=True)
        yield control_plane
        control_plane.down()


async def test_the_api_server_accepts_the_crds_without_warnings(cluster: Cluster, tmp_path: Path) -> None:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test-crds") as client:
        fresh = crds.write(crds.definitions(await crds.openapi(client)), tmp_path)
        assert {path.name: path.read_text() for path in fresh} == {
            path.name: path.read_text() for path in crds.FOLDER.glob("*.yaml")
        }, "run: make crds"
        for path in fresh:
            answer: Answer = await client.exchange("POST", PATH, body=yaml.safe_load(path.read_text()))
            assert (answer.status, answer.warnings) == (201, ()), f"{path.name}: {answer.content[:300]!r}"
