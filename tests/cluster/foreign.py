"""A cluster that was not created by the suite: KWOK with its own stages, and no component of the suite.

`python -m tests.cluster.foreign FOLDER` keeps such a cluster running until it is interrupted, for manual trials.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cluster import controlplane, settings
from conformance.cluster.controlplane import Cluster
from conformance.cluster.existing.kwok_stages import STAGES
from conformance.cluster.kubelet_sim.process import COMPONENT
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.suite.session.existing import DISPOSABLE
from kube.client import Client
from kube.resource import NAMESPACES

CHART_OPTIONS = {"manage-all-nodes": "false", "manage-nodes-with-annotation-selector": "kwok.x-k8s.io/node=fake"}
"""The options with which KWOK's own Helm chart selects the nodes to manage."""


@contextmanager
def foreign_cluster(folder: Path, *, by_api: bool, scheduler_name: str = "default-scheduler") -> Iterator[Cluster]:
    """Yield a foreign cluster with its state in `folder`, and take the cluster down at the end of the block.

    With `by_api`, KWOK reads its stages from the API, as KWOK's Helm chart configures it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings.stages, "load", lambda name, unnamed: [])
        if by_api:
            patch.setattr(controlplane, "kwokctl_configuration", _chart_configuration)
        cluster_settings = ClusterSettings(audit=False, scheduler_name=scheduler_name)
        state = StateRoot(folder)  # not the state root of this checkout
        cluster = Cluster.up("foreign", settings=cluster_settings, state=state)
    try:
        cluster.kill(COMPONENT)
        asyncio.run(_prepare(cluster, by_api))
        yield cluster
    finally:
        cluster.down()


def _chart_configuration(*arguments: Any) -> list[dict[str, Any]]:
    documents = settings.kwokctl_configuration(*arguments)
    options = documents[0]["options"] | {"enableCRDs": ["Stage"]}
    patches = []
    for patch in documents[0]["componentsPatches"]:
        flags = [flag for flag in patch["extraArgs"] if not flag["key"].startswith("manage-")]
        flags_of_chart = [{"key": key, "value": value} for key, value in CHART_OPTIONS.items()]
        patches.append(
            {**patch, "extraArgs": [*flags, *flags_of_chart]} if patch["name"] == "kwok-controller" else patch
        )
    return [{**documents[0], "options": options, "componentsPatches": patches}, *documents[1:]]


async def _prepare(cluster: Cluster, by_api: bool) -> None:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
        labels = {"metadata": {"labels": {DISPOSABLE: "true"}}}
        await client.patch(NAMESPACES, None, "kube-system", labels)
        for stage in yaml.safe_load_all(Path(__file__).with_suffix(".yaml").read_text()) if by_api else ():
            await client.create(STAGES, stage)


if __name__ == "__main__":
    with foreign_cluster(Path(sys.argv[1]), by_api="--no-crds" not in sys.argv) as cluster:
        print(cluster.kubeconfig, flush=True)  # noqa: T201 - for people
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
