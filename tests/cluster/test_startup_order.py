"""Tests of waiting init containers on a real control plane, including a restart of the process that simulates them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import nodes
from conformance.cluster.audit import AuditLog
from conformance.cluster.controlplane import Cluster
from conformance.cluster.kubelet_sim.process import COMPONENT
from conformance.cluster.state import StateRoot
from kube.client import Client
from kube.resource import PODS

pytestmark = pytest.mark.cluster
HOLD_READY_ANNOTATION = "conformance.grove.io/hold-ready"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up("startup", state=StateRoot(tmp_path_factory.mktemp("state") / "root"))
    yield cluster
    cluster.down()


def pod(
    name: str, *args: str, clique: str = "", gang: str = "p-0", is_ready_held: bool = False, **spec: Any
) -> dict[str, Any]:
    init = [{"name": "own", "image": "i"}, {"name": "waits", "image": "i", "args": list(args)}] if args else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"grove.io/podgang": gang, "grove.io/podclique": clique},
            "annotations": {HOLD_READY_ANNOTATION: "yes"} if is_ready_held else {},
        },
        "spec": {"containers": [{"name": "main", "image": "i"}], "initContainers": init, **spec},
    }


async def wait_for_pods(
    client: Client, condition: Callable[[dict[str, dict[str, Any]]], object]
) -> dict[str, dict[str, Any]]:
    """Wait until `condition` holds for the pods by name, and return these pods."""

    async def read_pods() -> dict[str, dict[str, Any]]:
        return {pod_document["metadata"]["name"]: pod_document for pod_document in await client.list(PODS, "default")}

    def is_unmet(pods: dict[str, dict[str, Any]]) -> bool:
        try:
            return not condition(pods)
        except (KeyError, IndexError):
            return True

    wait = AsyncRetrying(retry=retry_if_result(is_unmet), wait=wait_fixed(0.05), stop=stop_after_delay(120))
    matching_pods: dict[str, dict[str, Any]] = await wait(read_pods)
    return matching_pods


def condition_status(pod_document: dict[str, Any], condition_type: str) -> str:
    return next((c["status"] for c in pod_document["status"].get("conditions", []) if c["type"] == condition_type), "")


def is_waiting(pod_document: dict[str, Any]) -> bool:
    status = pod_document["status"]
    return (
        condition_status(pod_document, "Initialized") == "False"
        and status["phase"] == "Pending"
        and "running" in status["initContainerStatuses"][-1]["state"]
        and status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
        and bool(status["podIP"])
    )


def is_held(pod_document: dict[str, Any]) -> bool:
    status = pod_document["status"]
    return (
        condition_status(pod_document, "Initialized") == "True"
        and condition_status(pod_document, "Ready") == "False"
        and status["phase"] == "Pending"
        and status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
        and bool(status["podIP"])
    )


def is_ready(pod_document: dict[str, Any]) -> bool:
    return condition_status(pod_document, "Ready") == "True" and pod_document["status"]["phase"] == "Running"


async def release(client: Client, name: str) -> None:
    await client.patch(PODS, "default", name, {"metadata": {"annotations": {HOLD_READY_ANNOTATION: None}}})


async def delete_pods(client: Client) -> None:
    for name in await wait_for_pods(client, lambda pods: True):
        await client.delete(PODS, "default", name)
    await wait_for_pods(client, lambda pods: not pods)


def test_pods_wait_for_their_parents_even_if_the_simulating_process_is_killed(cluster: Cluster) -> None:
    async def run_test() -> None:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="startup-test/1") as api:
            await nodes.create_nodes(api, nodes.manifests("tiny", 2))
            mark = AuditLog.of(cluster).mark()
            for number in range(2):
                await api.create(PODS, pod(f"a-{number}", clique="p-0-a", is_ready_held=True))
            await api.create(PODS, pod("ab", clique="p-0-ab"))
            await api.create(PODS, pod("other", clique="p-0-a", gang="p-1"))
            await api.create(PODS, pod("child", "--podcliques=p-0-a:2", "-p", "p-0-ab:1", clique="p-0-c"))
            await api.create(PODS, pod("taken-for-one", "-p", "/data"))
            await api.create(PODS, pod("crash", "--podcliques=x:0"))
            pods = await wait_for_pods(
                api,
                lambda pods: (
                    is_waiting(pods["child"])
                    and all(is_held(pods[name]) for name in ("a-0", "a-1"))
                    and all(is_ready(pods[name]) for name in ("ab", "other", "taken-for-one"))
                    and pods["crash"]["status"]["initContainerStatuses"][1]["restartCount"] == 1
                ),
            )
            waiting_child = pods["child"]
            crashed_container = pods["crash"]["status"]["initContainerStatuses"][1]
            assert crashed_container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
            assert crashed_container["lastState"]["terminated"]["exitCode"] == 1

            await release(api, "a-0")
            pods = await wait_for_pods(api, lambda pods: is_ready(pods["a-0"]))
            assert is_waiting(pods["child"])
            cluster.kill(COMPONENT)
            assert cluster.monitor.missing() == [COMPONENT] and COMPONENT in cluster.monitor.complaint()
            await release(api, "a-1")
            pods = await wait_for_pods(api, lambda pods: is_ready(pods["a-1"]))
            assert is_waiting(pods["child"])
            cluster.start()
            started_child = (await wait_for_pods(api, lambda pods: is_ready(pods["child"])))["child"]
            terminated_state = started_child["status"]["initContainerStatuses"][1]["state"]["terminated"]
            running_state = waiting_child["status"]["initContainerStatuses"][1]["state"]["running"]
            assert terminated_state["exitCode"] == 0 and terminated_state["startedAt"] == running_state["startedAt"]
            assert started_child["status"]["podIP"] == waiting_child["status"]["podIP"]
            assert started_child["status"]["startTime"] == waiting_child["status"]["startTime"]
            assert not is_ready((await wait_for_pods(api, lambda pods: True))["crash"])

            # The deletion of a parent has no effect on a started child; a new child waits.
            await api.delete(PODS, "default", "a-0")
            pods = await wait_for_pods(api, lambda pods: "a-0" not in pods)
            assert is_ready(pods["child"])
            await api.create(PODS, pod("child-2", "--podcliques=p-0-a:2", clique="p-0-c"))
            await wait_for_pods(api, lambda pods: is_waiting(pods["child-2"]))
            await delete_pods(api)
        counts = AuditLog.of(cluster).count(mark)
        writes = sum(n for key, n in counts.items() if key.program == COMPONENT and key.code < 400)
        assert writes == 3, "one each for child, taken-for-one and crash"

    asyncio.run(run_test())
