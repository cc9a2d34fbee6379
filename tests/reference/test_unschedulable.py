"""Tests of the reason why a pod waits with its gang. Each reason is written once to the pod's condition and to an
event."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from kube.errors import ApiError
from kube.informer import Informer, typed_decoder
from kube.resource import EVENTS, PODS, Resource
from reference_impl.runtime.events import EventRecorder
from reference_impl.scheduler.gang import Gang, Group
from reference_impl.scheduler.model import Condition, Pod
from reference_impl.scheduler.scheduler import GangScheduler
from reference_impl.scheduler.unschedulable import Unschedulable, reasons, status_patch
from tests.kube.leaping import leap
from tests.reference.examples import NAMESPACE, gpu_pod, node

GATED = Condition("PodScheduled", "False", "SchedulingGated", "blocked due to non-empty scheduling gates")


def test_each_waiting_pod_of_a_gang_that_does_not_fit_gets_its_reason() -> None:
    gang = Gang("ns/g", [Group("p", 2, [gpu_pod("a", 1), gpu_pod("b", 1)])])
    by_pod = {
        pod.metadata.name: reason for pod, reason in reasons(gang, "nodes have capacity for 1 of 2 pods of p", {})
    }
    assert by_pod == dict.fromkeys("ab", "pod gang ns/g waits: nodes have capacity for 1 of 2 pods of p")


def test_extra_pods_and_pods_of_incomplete_gangs_also_get_a_reason() -> None:
    bound = [(gpu_pod("a", 1), "n")]
    [(_, extra)] = reasons(Gang("ns/g", [Group("p", 1, [gpu_pod("b", 1)], bound)]), None, {})
    [(_, message)] = reasons(Gang("ns/g", [Group("p", 2, [gpu_pod("a", 1)])]), None, {})
    assert "no node has capacity for more pods of p" in extra
    assert "missing or have scheduling gates" in message
    assert not list(reasons(Gang("ns/g", [Group("p", 1, [], bound)]), None, {}))


def test_the_transition_time_changes_only_with_the_status() -> None:
    pod = gpu_pod("a", 1)
    [new_condition] = (status_patch(pod, "why") or {})["status"]["conditions"]
    assert new_condition.pop("lastTransitionTime")
    assert new_condition == {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "why"}
    pod.status.conditions = [GATED]
    assert (status_patch(pod, "why") or {})["status"]["conditions"] == [new_condition]
    pod.status.conditions = [Condition("PodScheduled", "False", "Unschedulable", "why")]
    assert status_patch(pod, "why") is None


def test_a_pod_bound_in_the_meantime_is_not_reported_as_unschedulable() -> None:
    pod = gpu_pod("a", 1)
    pod.metadata.resource_version = "7"
    # Without the resourceVersion, the patch could arrive after the pod's binding and set PodScheduled to False.
    assert (status_patch(pod, "why") or {})["metadata"] == {"uid": "u-a", "resourceVersion": "7"}


class Cluster:
    """A client that applies and counts writes to pods. The first writes fail with `failures`."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.patches: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.refused_events: list[Exception] = []
        self.on_answer: Any = None

    async def patch(self, resource: Resource, namespace: str, name: str, body: Any, **options: Any) -> bytes:
        if self.failures:
            raise self.failures.pop(0)
        self.patches.append(body)
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"u-{name}",
            "resourceVersion": str(len(self.patches) + 1),
        }
        return orjson.dumps({"metadata": metadata, "spec": {}, "status": body["status"]})

    async def create(self, resource: Resource, body: Any, **options: Any) -> bytes:
        assert resource == EVENTS
        if self.refused_events:
            raise self.refused_events.pop(0)
        self.events.append(body)
        return b"{}"


def run_cycles(client: Cluster, *cycles: dict[str, str], apart: float = 10) -> None:
    """Run scheduling cycles. Each argument maps a cycle's waiting pods to their reasons."""

    async def scenario() -> None:
        informer = Informer(client, PODS, typed_decoder(Pod))  # type: ignore[arg-type]
        for name in "ab":
            pod = gpu_pod(name, 1)
            pod.metadata.resource_version = "1"
            informer.observe(pod)
        waiting = Unschedulable(client, informer, EventRecorder(client, "gangs"))  # type: ignore[arg-type]
        running = asyncio.create_task(waiting.run())
        for cycle in cycles:
            pods = {pod.metadata.name: pod for pod in informer}
            waiting.replace([(pods[name], reason) for name, reason in cycle.items()])
            await asyncio.sleep(apart)
        running.cancel()
        await asyncio.wait([running])

    leap(scenario())


def test_each_reason_is_written_once_even_if_it_is_found_repeatedly() -> None:
    client = Cluster()
    run_cycles(client, *[{"a": "no space", "b": "no space"}] * 5, {"a": "no node"})
    messages = [body["status"]["conditions"][0]["message"] for body in client.patches]
    assert sorted(messages) == ["no node", "no space", "no space"]
    assert sorted((event["regarding"]["name"], event["note"]) for event in client.events) == [
        ("a", "no node"),
        ("a", "no space"),
        ("b", "no space"),
    ]
    assert {(event["regarding"]["kind"], event["type"], event["reason"]) for event in client.events} == {
        ("Pod", "Warning", "FailedScheduling")
    }


def test_a_constantly_changing_reason_is_not_written_each_time() -> None:
    client = Cluster()
    run_cycles(client, *[{"a": f"capacity for {n} of 64 pods"} for n in range(30)], {"a": "no node"}, apart=2)
    assert len(client.patches) == len(client.events) == 1
    client = Cluster()
    run_cycles(client, *[{"a": "no space"}] * 8, *[{"a": "no node"}] * 8, apart=2)
    assert [event["note"] for event in client.events] == ["no space", "no node"]


def test_a_pod_that_waits_briefly_gets_no_reason() -> None:
    async def scenario() -> Cluster:
        client = Cluster()
        informer = Informer(client, PODS, typed_decoder(Pod))  # type: ignore[arg-type]
        pod = gpu_pod("a", 1)
        pod.metadata.resource_version = "1"
        informer.observe(pod)
        waiting = Unschedulable(client, informer, EventRecorder(client, "gangs"))  # type: ignore[arg-type]
        running = asyncio.create_task(waiting.run())
        waiting.replace([(pod, "no space")])
        await asyncio.sleep(4)
        waiting.replace([])
        await asyncio.sleep(10)
        running.cancel()
        await asyncio.wait([running])
        return client

    assert not leap(scenario()).patches


@pytest.mark.parametrize(
    "failure",
    [
        aiohttp.ServerDisconnectedError(),
        ApiError(503, "", "", {}, None),
        ApiError(409, "Conflict", "somebody else has written the pod", {}, None),
    ],
    ids=repr,
)
def test_a_temporary_failure_is_retried(failure: Exception) -> None:
    client = Cluster(failure)
    run_cycles(client, {"a": "no space"})
    assert len(client.patches) == len(client.events) == 1


def test_an_event_whose_request_failed_is_posted_once_later() -> None:
    client = Cluster()
    client.refused_events = [aiohttp.ServerDisconnectedError()]
    run_cycles(client, *[{"a": "no space"}] * 3)
    assert len(client.patches) == len(client.events) == 1


def test_a_rejected_event_is_not_posted_again() -> None:
    client = Cluster()
    client.refused_events = [ApiError(403, "Forbidden", "", {}, None)]
    run_cycles(client, *[{"a": "no space"}] * 3)
    assert len(client.patches) == 1 and not client.events


def test_a_permanent_rejection_is_not_retried() -> None:
    client = Cluster(*[ApiError(403, "Forbidden", "", {}, None)] * 9)
    run_cycles(client, {"a": "no space"}, {"a": "no space"})
    assert len(client.failures) == 7 and not client.patches


@pytest.mark.parametrize("failure", [aiohttp.ServerDisconnectedError(), ConnectionRefusedError(), TimeoutError()])
def test_the_scheduler_survives_a_broken_connection(failure: Exception) -> None:
    reference = {"namespace": NAMESPACE, "name": "a"}
    gang = {
        "metadata": {"name": "g", "namespace": NAMESPACE, "uid": "u-g", "resourceVersion": "1"},
        "spec": {"podgroups": [{"name": "p", "podReferences": [reference], "minReplicas": 1}]},
        "status": {"conditions": [{"type": "Initialized", "status": "True"}]},
    }

    class Broken(Cluster):
        async def create(self, resource: Resource, body: Any, **options: Any) -> bytes:
            raise failure

    async def scenario() -> None:
        scheduler = GangScheduler(Broken(failure), name="gangs")  # type: ignore[arg-type]
        scheduler._gangs.observe(scheduler._gangs.decode(orjson.dumps(gang)))
        host = node("n", 0)
        pod = gpu_pod("a", 1, schedulerName="gangs")
        host.metadata.resource_version = pod.metadata.resource_version = "1"
        scheduler._nodes.observe(host)
        pod.metadata.labels = {"grove.io/podgang": "g"}
        scheduler._pods.observe(pod)
        await scheduler._cycle()
        await scheduler._write_status((NAMESPACE, "g"))
        assert scheduler._stale_gangs == {(NAMESPACE, "g")}

    leap(scenario())
