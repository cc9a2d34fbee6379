"""Tests that a scheduler which is killed at any write of an allocation loses no device: its successor places the same
gangs, and a gang that does not fit holds no device; and that a scheduler decides again when a claim gets its name.

The scheduler runs in this process, against an API server that stores pods and claims in memory."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec
import orjson
import pytest

from kube.errors import ApiError
from kube.resource import PODS, Resource
from reference_impl.api import models
from reference_impl.plan import labels
from reference_impl.scheduler.devices.objects import CLAIMS
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.scheduler import GangScheduler
from tests.kube.leaping import leap
from tests.reference.devices.examples import CLASSES, device_slice
from tests.reference.filters.scenes import node

GANGS = {"first": 3, "large": 6, "second": 2}
"""The pods of each gang. Six devices exist, so that `large` does not fit beside `first`."""
SLICES = [device_slice(name, *(f"{name}{i}" for i in range(2))) for name in "abc"]


class KilledError(BaseException):
    """The scheduler was killed."""


class Api:
    """Pods and claims in memory. The write number `last` is the last one that is stored: its response is lost, and the
    scheduler is killed."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], dict[str, Any]] = {}
        self.writes, self.last, self.version = 0, -1, 100

    def put(self, plural: str, item: dict[str, Any]) -> bytes:
        """Store an object as the next version and return it."""
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.stored[plural, item["metadata"]["name"]] = item
        return orjson.dumps(item)

    def _count(self) -> None:
        self.writes += 1
        if self.writes == self.last:
            raise KilledError

    async def patch(self, resource: Resource, namespace: str | None, name: str, body: Any, **options: Any) -> bytes:
        if resource != CLAIMS:  # the statuses of gangs and the conditions of pods
            return orjson.dumps({"metadata": {"name": name, "namespace": namespace, "resourceVersion": "0"}})
        item = copy.deepcopy(self.stored["resourceclaims", name])
        if body["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified", {}, None)
        if options.get("subresource") == "status":
            item["status"] = {
                key: value for key, value in {**item.get("status", {}), **body["status"]}.items() if value
            }
        else:
            item["metadata"] |= body["metadata"]
        answer = self.put("resourceclaims", item)
        self._count()
        return answer

    async def create(self, resource: Resource, body: Any, **options: Any) -> bytes:
        if resource == PODS:
            item = copy.deepcopy(self.stored["pods", body["metadata"]["name"]])
            item["spec"]["nodeName"] = body["target"]["name"]
            self.put("pods", item)
            self._count()
        return b"{}"

    async def get_or_none(self, resource: Resource, namespace: str | None, name: str) -> bytes | None:
        item = self.stored.get((resource.plural, name))
        return orjson.dumps(item) if item else None


def a_cluster() -> Api:
    api = Api()
    for gang, count in GANGS.items():
        for name in (f"{gang}{i}" for i in range(count)):
            meta = {"name": name, "namespace": "ns", "uid": f"u-{name}", "labels": {labels.PODGANG: gang}}
            spec = {
                "containers": [{"name": "main"}],
                "schedulerName": "gangs",
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
            }
            status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
            api.put("pods", {"metadata": meta, "spec": spec, "status": status})
            owner = {"kind": "Pod", "name": name, "uid": f"u-{name}", "controller": True}
            claim_meta = {"name": name, "namespace": "ns", "uid": f"c-{name}", "ownerReferences": [owner]}
            devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}
            api.put("resourceclaims", {"metadata": claim_meta, "spec": {"devices": devices}})
    return api


def a_scheduler(api: Api, nodes: str = "abc") -> GangScheduler:
    """Return a scheduler that has just read everything."""
    scheduler: Any = GangScheduler(api, name="gangs")  # type: ignore[arg-type]
    store = scheduler._claim_store
    for name in nodes:
        watch(scheduler._nodes, node(name))
    for published in SLICES:
        watch(store._slices, published)
    for item in CLASSES:
        watch(store._classes, msgspec.convert(item, store._classes.decode.__self__.type))
    for gang, count in GANGS.items():
        references = [{"namespace": "ns", "name": f"{gang}{i}"} for i in range(count)]
        group = {"name": gang, "minReplicas": count, "podReferences": references}
        status = {"conditions": [{"type": "Initialized", "status": "True"}]}
        content = {"metadata": {"name": gang, "namespace": "ns"}, "spec": {"podgroups": [group]}, "status": status}
        watch(scheduler._gangs, msgspec.convert(content, models.PodGang))
    for (plural, _), item in api.stored.items():
        if plural == "pods":
            watch(scheduler._pods, msgspec.convert(item, Pod, strict=False))
        else:
            watch(store._claims, store._claims.decode(orjson.dumps(item)))
    return scheduler


def watch(informer: Any, item: Any) -> None:
    item.metadata.resource_version = item.metadata.resource_version or "1"
    informer.on_event("ADDED", item)


async def killed(api: Api, last: int) -> bool:
    """Run a cycle of a scheduler that is killed at its write number `last`. Return whether it was."""
    api.writes, api.last = 0, last
    try:
        await a_scheduler(api)._cycle()
    except KilledError:
        return True
    finally:
        api.last = -1
    return False


def judge(api: Api, *gangs: str) -> None:
    """The given gangs run, each pod with a device of its own, and no other pod holds a device."""
    pods = {name: item for (plural, name), item in api.stored.items() if plural == "pods"}
    nodes = {name: item["spec"].get("nodeName") for name, item in pods.items()}
    members = {f"{gang}{i}" for gang in gangs for i in range(GANGS[gang])}
    assert {name for name, place in nodes.items() if place} == members
    devices = []
    for (plural, name), item in api.stored.items():
        if plural == "resourceclaims" and (allocation := item.get("status", {}).get("allocation")):
            (result,) = allocation["devices"]["results"]
            assert item["status"]["reservedFor"] == [{"resource": "pods", "name": name, "uid": f"u-{name}"}]
            assert result["pool"] == nodes[name]
            devices.append(result["device"])
    assert len(devices) == len(set(devices)) == len(members)


async def scenario(last: int) -> bool:
    api = a_cluster()
    was_killed = await killed(api, last)
    scheduler = a_scheduler(api)
    for _ in range(3):
        await scheduler._cycle()
    judge(api, "first", "second")
    return was_killed


def test_the_number_of_writes_is_known() -> None:
    """Two writes for each claim, and a binding for each of five pods."""
    assert [leap(scenario(last)) for last in (15, 16)] == [True, False]


@pytest.mark.parametrize("last", range(1, 16))
def test_a_successor_places_the_same_gangs(last: int) -> None:
    assert leap(scenario(last))


@pytest.mark.parametrize("last", range(1, 16, 3))
def test_a_successor_may_be_killed_as_well(last: int) -> None:
    async def twice() -> None:
        api = a_cluster()
        await killed(api, last)
        for second in range(1, 20, 2):
            await killed(api, second)
        scheduler = a_scheduler(api)
        for _ in range(3):
            await scheduler._cycle()
        judge(api, "first", "second")

    leap(twice())


@pytest.mark.parametrize("last", range(1, 11))
def test_devices_of_a_lost_node_are_replaced(last: int) -> None:
    """The scheduler is killed before it binds a pod, and one of three nodes is lost. The claims with devices of this
    node get others, and four devices suffice for the first gang only."""

    async def after_a_loss() -> None:
        api = a_cluster()
        assert await killed(api, last)
        scheduler = a_scheduler(api, "bc")
        for _ in range(3):
            await scheduler._cycle()
        judge(api, "first")

    leap(after_a_loss())


@pytest.mark.parametrize("member", ["first0", "first2"])
def test_a_gang_is_not_bound_if_a_claim_cannot_be_written(member: str) -> None:
    """Another client writes the claim first, and the caches show that later."""

    async def outdated() -> None:
        api = a_cluster()
        scheduler: Any = a_scheduler(api)
        rewritten = api.put("resourceclaims", copy.deepcopy(api.stored["resourceclaims", member]))
        await scheduler._cycle()
        assert not any(api.stored["pods", f"first{i}"]["spec"].get("nodeName") for i in range(3))
        scheduler._claim_store._claims.on_event("MODIFIED", scheduler._claim_store._claims.decode(rewritten))
        for _ in range(3):
            await scheduler._cycle()
        judge(api, "first", "second")

    leap(outdated())


def test_a_pod_whose_claim_gets_its_name_late_is_placed() -> None:
    """The control plane creates a claim before it writes its name into the status of the pod."""

    async def named_late() -> None:
        api = a_cluster()
        named_pod = copy.deepcopy(api.stored["pods", "second0"])
        api.stored["pods", "second0"]["status"] = {}
        scheduler: Any = a_scheduler(api)
        await scheduler._cycle()
        judge(api, "first")
        scheduler._changed.clear()
        api.put("pods", named_pod)
        scheduler._pods.on_event("MODIFIED", msgspec.convert(named_pod, Pod, strict=False))
        assert scheduler._changed.is_set()
        await scheduler._cycle()
        judge(api, "first", "second")

    leap(named_late())


def test_nothing_is_deallocated_that_a_bound_pod_uses() -> None:
    """The caches of the successor do not show the bindings yet."""

    async def outdated_caches() -> None:
        api = a_cluster()
        scheduler = a_scheduler(api)
        await scheduler._cycle()
        successor: Any = a_scheduler(api)
        for pod in list(successor._pods):
            pod.spec.node_name = ""
        await successor._claim_store.deallocate_unused(lambda: {pod.metadata.uid for pod in successor._pods})
        judge(api, "first", "second")

    leap(asyncio.wait_for(outdated_caches(), 60))
