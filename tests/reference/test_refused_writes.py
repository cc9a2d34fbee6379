"""Tests of rejected and lost writes. A write that the API server rejects is retried with back-off, regardless of the
message. A write whose response is lost is not repeated before the client knows whether it happened."""

from __future__ import annotations

import asyncio
import random
import string
from typing import Any

import aiohttp
import msgspec
import orjson
import pytest

from kube.errors import ApiError
from kube.resource import Resource
from kube.workqueue import work
from reference_impl.api.models import LastError, PodCliqueSetStatus, to_json
from reference_impl.control.last_errors import differs_only_in_errors
from reference_impl.control.operator import Operator
from reference_impl.plan import children, gangs
from reference_impl.plan.lines import NAMES
from tests.kube.leaping import leap
from tests.reference.examples import disaggregated, placement, standalone

REFUSALS = {
    "quota": (403, "Forbidden", 'pods "{}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2'),
    "pod spec": (422, "Invalid", 'Pod "{}" is invalid: spec.containers[0].lifecycle.preStop: Invalid value: 9'),
}


class RefusedClient:
    """A client whose requests to create pods are all rejected. It counts the requests."""

    def __init__(self, refusal: str = "quota") -> None:
        self._refusal = REFUSALS[refusal]
        self.objects: dict[str, dict[str, Any]] = {}
        self.on_answer: Any = None
        self.created: list[float] = []
        self.patches: list[Any] = []
        self._version = 100

    async def create(self, resource: Resource, manifest: dict[str, Any]) -> bytes:
        self.created.append(asyncio.get_running_loop().time())
        code, reason, message = self._refusal
        name = manifest["metadata"]["generateName"] + "".join(random.choices(string.ascii_lowercase, k=5))
        raise ApiError(code, reason, message.format(name), {"name": name}, None)

    async def patch(self, resource: Resource, namespace: str, name: str, body: Any, **options: Any) -> bytes:
        self.patches.append(body)
        self._version += 1
        current = self.objects[name]
        current["metadata"]["resourceVersion"] = str(self._version)
        current.setdefault("status", {}).update(body["status"])
        return orjson.dumps(current)


class LossyClient(RefusedClient):
    """A client that creates pods but loses every second response. No watch shows the existing pods."""

    def __init__(self, lost: Exception) -> None:
        super().__init__()
        self._lost = lost
        self.pods: list[dict[str, Any]] = []

    async def create(self, resource: Resource, manifest: dict[str, Any]) -> bytes:
        self.created.append(asyncio.get_running_loop().time())
        self._version += 1
        name, version = f"{manifest['metadata']['generateName']}{self._version}", str(self._version)
        metadata = {**manifest["metadata"], "name": name, "uid": f"u-{name}", "resourceVersion": version}
        self.pods.append({**manifest, "metadata": metadata})
        if self._version % 2:
            raise self._lost
        return orjson.dumps(self.pods[-1])

    async def list(self, resource: Resource, namespace: str, *, selector: str) -> list[dict[str, Any]]:
        name, value = selector.split("=")
        return [pod for pod in self.pods if pod["metadata"]["labels"][name] == value]


async def _reconcile_clique(client: RefusedClient, seconds: float) -> None:
    """Run the operator's reconciler for a clique of eight pods for `seconds`."""
    operator = Operator(client, scheduler_name="gangs", line=NAMES)  # type: ignore[arg-type]
    cache = operator.cache
    pcs = disaggregated()
    pcs.spec.template.cliques[0].spec.replicas = 8
    [template] = children.standalone_templates(pcs)
    clique = standalone(pcs, 0, template)
    [gang, *_] = gangs.planned_gangs(pcs, 0, placement(pcs), NAMES)
    documents = {
        cache.sets: to_json(pcs),
        cache.cliques: clique,
        cache.gangs: gangs.manifest(pcs, gang, "gangs", ""),
    }
    for informer, document in documents.items():
        metadata = document["metadata"]
        metadata |= {"namespace": "ns", "uid": f"u-{metadata['name']}", "resourceVersion": "1", "generation": 1}
        client.objects[metadata["name"]] = document
        informer.observe(informer.decode(orjson.dumps(document)))
    [(queue, reconcile)] = [(worker[1], worker[2]) for worker in operator._work if worker[0] == "podclique"]
    working = asyncio.create_task(work(queue, reconcile, 24))
    await asyncio.sleep(seconds)
    working.cancel()
    await asyncio.wait([working])


@pytest.mark.parametrize("refusal", REFUSALS)
def test_rejected_pods_are_retried_with_back_off(refusal: str) -> None:
    client = RefusedClient(refusal)

    leap(_reconcile_clique(client, 10))
    assert 0 < len(client.created) <= 8 + 10, f"{len(client.created)} pods were tried in 10 s"
    assert len(client.patches) == 1, client.patches
    [error] = client.patches[0]["status"]["lastErrors"]
    assert "llm-0-router-*" in error["description"]


@pytest.mark.parametrize(
    "lost", [aiohttp.ServerDisconnectedError(), TimeoutError(), ApiError(500, "", "etcdserver: timed out", {}, None)]
)
def test_a_pod_is_not_created_again_if_the_response_is_lost(lost: Exception) -> None:
    client = LossyClient(lost)
    leap(_reconcile_clique(client, 60))
    assert sorted(pod["metadata"]["labels"]["grove.io/podclique-pod-index"] for pod in client.pods) == list("01234567")


def test_an_event_triggers_a_reconciler_unless_only_last_errors_changed() -> None:
    pcs = msgspec.structs.replace(disaggregated(), status=PodCliqueSetStatus(replicas=1))
    meta = msgspec.structs.replace(pcs.metadata, resource_version="2")
    error_status = PodCliqueSetStatus(replicas=1, last_errors=[LastError("ERR_X", "no", "2026-01-01T00:00:00Z")])
    with_error = msgspec.structs.replace(pcs, metadata=meta, status=error_status)
    assert differs_only_in_errors(pcs, with_error) and differs_only_in_errors(with_error, pcs)
    assert not differs_only_in_errors(pcs, pcs) and not differs_only_in_errors(None, with_error)
    counted = msgspec.structs.replace(error_status, replicas=2)
    assert not differs_only_in_errors(pcs, msgspec.structs.replace(with_error, status=counted))
    changed = msgspec.structs.replace(meta, generation=2)
    assert not differs_only_in_errors(pcs, msgspec.structs.replace(with_error, metadata=changed))
