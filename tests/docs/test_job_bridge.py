"""Tests that the bridge of docs/ai-conformance.md creates gangs for Jobs if it is set up as the page says."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster.fleets import requested_nodes
from conformance.cluster.nodes import KEYS, create_nodes
from conformance.data import PROJECT
from kube.client import Client
from kube.errors import ApiError
from kube.resource import PODS, Resource
from tests.docs.test_user_pages import PROGRAM, commands, run

pytestmark = [pytest.mark.cluster, pytest.mark.thorough]

PAGE = PROJECT / "docs" / "ai-conformance.md"
JOBS = Resource("batch", "v1", "jobs", "Job")
PODGANGS = Resource("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang")
GANG_LABEL = {"example.com/gang": "grove"}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    """The kubeconfig of a two-node cluster with the reference, the admission policy and the bridge."""
    start, apply, export, bridge = commands(PAGE, "A gang scheduler of Grove")
    run(start, tmp_path)
    try:
        run(apply, tmp_path)
        path = run(export.removeprefix("export KUBECONFIG=$(").removesuffix(")"), tmp_path).strip()
        program = [sys.executable, *shlex.split(bridge.removesuffix(" &"))[1:]]
        environment = os.environ | {"KUBECONFIG": path}
        with subprocess.Popen(
            program, cwd=PROJECT, env=environment, stderr=subprocess.PIPE, text=True
        ) as bridge_process:
            assert bridge_process.stderr is not None
            try:
                assert bridge_process.stderr.readline() == "ready\n"
                yield path
            finally:
                bridge_process.terminate()
    finally:
        run(f"{PROGRAM} cluster down gangs", tmp_path)


def job(name: str, pods: int, cpu: str, *, labels: dict[str, str] | None = None, **spec: int) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": cpu}}}
    # By default, pods of the page's cluster exit 5 s after they become Ready.
    annotations = {"conformance.grove.io/behavior": "exit", "conformance.grove.io/exit-after": "1s"}
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "metadata": {"namespace": "default", "name": name, "labels": GANG_LABEL if labels is None else labels},
        "spec": {"parallelism": pods, "completions": pods, **spec, "template": template},
    }


async def wait_until(condition: Callable[[], Awaitable[bool]]) -> None:
    async def is_met() -> bool:
        return await condition()

    is_false = retry_if_result(lambda result: not result)
    await AsyncRetrying(retry=is_false, wait=wait_fixed(0.1), stop=stop_after_delay(60))(is_met)


async def test_jobs_are_placed_completely_or_not_at_all(kubeconfig: str) -> None:
    async with Client.from_kubeconfig(kubeconfig, user_agent="tests") as client:

        async def pods(name: str) -> list[dict[str, Any]]:
            return await client.list(PODS, "default", selector=f"job-name={name}")

        async def count_bound_pods(name: str) -> int:
            return sum("nodeName" in pod["spec"] for pod in await pods(name))

        async def is_complete(name: str) -> bool:
            jobs = await client.list(JOBS, "default")
            conditions = [c for j in jobs if j["metadata"]["name"] == name for c in j["status"].get("conditions", ())]
            return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)

        async def are_unschedulable(name: str, count: int) -> bool:
            conditions = [c for pod in await pods(name) for c in pod["status"].get("conditions", ())]
            return sum(c["type"] == "PodScheduled" and c["reason"] == "Unschedulable" for c in conditions) == count

        # Each of the two nodes has 8 CPUs, so there is room for two of three pods that request 6 CPUs.
        await client.create(JOBS, job("large", 3, "6"))
        await wait_until(lambda: are_unschedulable("large", 3))

        # Meanwhile, a gang that fits is placed. Its third pod is created when only one completion is left, and is
        # placed alone.
        await client.create(JOBS, job("small", 2, "1", completions=3))
        await wait_until(lambda: is_complete("small"))
        assert {pod["spec"]["schedulerName"] for pod in await pods("small")} == {"grove-gang-scheduler"}
        assert await count_bound_pods("small") == 3 and await count_bound_pods("large") == 0

        # Without the label, the same Job is not a gang and its pods are bound one by one. There is room for
        # two of them.
        await client.create(JOBS, job("plain", 3, "6", labels={}))
        await wait_until(lambda: is_complete("plain"))
        assert await count_bound_pods("plain") == 3 and await count_bound_pods("large") == 0

        # With a third node, the gang fits. Its PodGang is deleted with the Job.
        third_node = [node for node in requested_nodes("tiny:3", "", KEYS) if node["metadata"]["name"] == "tiny-2"]
        await create_nodes(client, third_node)
        await wait_until(lambda: is_complete("large"))
        assert await count_bound_pods("large") == 3
        await client.delete(JOBS, "default", "large")

        async def is_deleted() -> bool:
            return await client.get_or_none(PODGANGS, "default", "large") is None

        await wait_until(is_deleted)

        # A Job with generateName is rejected because its pods would reach the scheduler without a gang.
        job_without_name = job("any", 1, "1")
        job_without_name["metadata"] = {"namespace": "default", "generateName": "any-", "labels": GANG_LABEL}
        with pytest.raises(ApiError, match="job-bridge"):
            await client.create(JOBS, job_without_name)
