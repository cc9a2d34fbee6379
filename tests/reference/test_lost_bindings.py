"""Tests of a binding whose response is lost. The capacity stays reserved until the scheduler knows whether the pod is
bound."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from kube.errors import ApiError
from kube.resource import Resource
from reference_impl.scheduler.scheduler import GangScheduler
from tests.kube.leaping import leap
from tests.reference.examples import NAMESPACE, gpu_pod, node


class Api:
    """An API server that fails bindings with `failure`, and responds to each GET of a pod with the next of
    `answers`."""

    def __init__(self, failure: Exception, *answers: Any) -> None:
        self.failure, self.answers, self.reads = failure, list(answers), 0
        self.on_answer: Any = None

    async def create(self, resource: Resource, body: Any, **options: Any) -> bytes:
        raise self.failure

    async def get_or_none(self, resource: Resource, namespace: str, name: str) -> bytes | None:
        self.reads += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return None if answer is None else orjson.dumps(answer)


def stored(node_name: str = "") -> dict[str, Any]:
    metadata = {"name": "a", "namespace": NAMESPACE, "uid": "u-a", "resourceVersion": "2"}
    return {"metadata": metadata, "spec": {"nodeName": node_name}}


def scheduler_after_binding(api: Api) -> GangScheduler:
    """Return a scheduler that tried to bind pod `a` to node `n` three seconds ago."""

    async def scenario() -> GangScheduler:
        scheduler = GangScheduler(api, name="gangs")  # type: ignore[arg-type]
        pod, host = gpu_pod("a", 1), node("n", 8)
        pod.metadata.resource_version = host.metadata.resource_version = "1"
        scheduler._pods.observe(pod)
        scheduler._nodes.observe(host)
        scheduler._changed.clear()
        scheduler._assumed_nodes["u-a"] = "n"
        running = asyncio.create_task(scheduler._resolve_bindings())
        await scheduler._bind(pod, "n")
        await asyncio.sleep(3)
        running.cancel()
        await asyncio.wait([running])
        return scheduler

    return leap(scenario())


LOST_RESPONSES = [aiohttp.ServerDisconnectedError(), TimeoutError(), ApiError(504, "Timeout", "", {}, None)]


@pytest.mark.parametrize("failure", LOST_RESPONSES, ids=repr)
def test_the_capacity_stays_reserved_while_the_binding_is_unknown(failure: Exception) -> None:
    scheduler = scheduler_after_binding(Api(failure, *[ConnectionRefusedError()] * 9))
    assert scheduler._assumed_nodes == {"u-a": "n"}


@pytest.mark.parametrize("failure", LOST_RESPONSES, ids=repr)
def test_the_capacity_is_free_when_the_pod_is_not_bound(failure: Exception) -> None:
    api = Api(failure, ConnectionRefusedError(), stored())
    scheduler = scheduler_after_binding(api)
    assert (scheduler._assumed_nodes, scheduler._changed.is_set(), api.reads) == ({}, True, 2)


def test_a_bound_pod_is_recorded_as_bound() -> None:
    api = Api(TimeoutError(), stored("n"))
    scheduler = scheduler_after_binding(api)
    cached = scheduler._pods.get(NAMESPACE, "a")
    assert cached is not None and cached.spec.node_name == "n"
    assert (scheduler._assumed_nodes, api.reads) == ({}, 1)


def test_the_capacity_is_free_when_the_pod_is_gone() -> None:
    assert scheduler_after_binding(Api(TimeoutError(), None))._assumed_nodes == {}


def test_a_rejected_binding_frees_the_capacity_at_once() -> None:
    api = Api(ApiError(409, "Conflict", "", {}, None))
    assert (scheduler_after_binding(api)._assumed_nodes, api.reads) == ({}, 0)
