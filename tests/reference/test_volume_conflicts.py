"""Tests of concurrent decisions about a volume by another scheduler or a provisioner. The gang is planned again, and
its pod is bound to a node that can use the volume."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

from kube.errors import ApiError
from kube.resource import PODS, Resource
from reference_impl.api import models
from reference_impl.plan import labels
from reference_impl.scheduler.scheduler import GangScheduler
from reference_impl.scheduler.state_informers import CLAIMS, VOLUMES, WATCHED
from tests.kube.leaping import leap
from tests.reference.filters.scenes import node
from tests.reference.filters.test_volume_filters import LATER, claim, using, volume

NODES, SELECTED = ("a", "b", "c"), "volume.kubernetes.io/selected-node"
VOLUME_NODES = {"v": "a", "w": "c"}
"""The existing volumes, and the node that can use each of them."""


class Api:
    """An API server for storage objects. `rivals` are object states that another client writes just before our next
    write."""

    def __init__(self, *rivals: dict[str, Any]) -> None:
        self.rivals, self.stored = list(rivals), dict[tuple[str, str], dict[str, Any]]()
        self.bound: dict[str, str] = {}
        self.refused = 0
        self.on_answer: Any = None

    def write(self, resource: Resource, item: dict[str, Any]) -> dict[str, Any]:
        """Store an object as the next version, and return it."""
        version = str(len(self.stored) + int(item["metadata"].get("resourceVersion", "0")) + 1)
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": version}}
        self.stored[(resource.plural, item["metadata"]["name"])] = item
        return item

    async def patch(self, resource: Resource, namespace: str | None, name: str, body: Any, **options: Any) -> bytes:
        if resource not in (CLAIMS, VOLUMES):
            return orjson.dumps({"metadata": {"name": name, "namespace": namespace, "resourceVersion": "0"}})
        while self.rivals:
            self.write(resource, self.rivals.pop(0))
        item = self.stored[(resource.plural, name)]
        if body["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            self.refused += 1
            raise ApiError(409, "Conflict", "the object has been modified", {}, None)
        metadata = item["metadata"] | {"annotations": body["metadata"]["annotations"]}
        changed = {**item, "metadata": metadata, "spec": item["spec"] | body.get("spec", {})}
        return orjson.dumps(self.write(resource, changed))

    async def create(self, resource: Resource, body: Any, **options: Any) -> bytes:
        if resource == PODS:
            self.bound[body["metadata"]["name"]] = body["target"]["name"]
        return b"{}"


class SchedulerWithGang:
    """A scheduler with a gang of one pod, which uses claim `c`."""

    def __init__(self, api: Api, storage: str, volumes: dict[str, str]) -> None:
        self.api, self.scheduler = api, GangScheduler(api, name="gangs")  # type: ignore[arg-type]
        for name in NODES:
            self.watch(self.scheduler._nodes, node(name))
        pod = using("c", labels={labels.PODGANG: "g"}, schedulerName="gangs")
        self.watch(self.scheduler._pods, pod)
        group = {"name": "p", "minReplicas": 1, "podReferences": [{"namespace": "ns", "name": "p"}]}
        status = {"conditions": [{"type": "Initialized", "status": "True"}]}
        gang = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"podgroups": [group]}, "status": status}
        self.watch(self.scheduler._gangs, msgspec.convert(gang, models.PodGang))
        for item in LATER["storage_classes"]:
            self.deliver("storage_classes", item)
        self.deliver("claims", api.write(CLAIMS, claim(storage_class=storage, uid="u-c")))
        for name, host in volumes.items():
            self.deliver("volumes", api.write(VOLUMES, volume(name, host=host)))

    @staticmethod
    def watch(informer: Any, item: Any) -> None:
        item.metadata.resource_version = item.metadata.resource_version or "1"
        informer.on_event("ADDED", item)

    def deliver(self, field: str, item: dict[str, Any]) -> None:
        """Deliver a storage object through the watch."""
        informer = self.scheduler._state_informers.informers[field]
        self.watch(informer, msgspec.convert(item, WATCHED[field][1], strict=False))

    async def cycle(self) -> bool:
        """Run a scheduling cycle, and return whether it requests another cycle."""
        self.scheduler._changed.clear()
        await self.scheduler._cycle()
        return self.scheduler._changed.is_set()

    def bind(self, name: str, host: str) -> None:
        """Bind the claim to a volume, as the PersistentVolume controller does."""
        metadata = self.api.stored[("persistentvolumeclaims", "c")]["metadata"]
        bound = claim(volume=name)
        bound["metadata"] = {
            **metadata,
            "annotations": metadata.get("annotations", {}) | bound["metadata"]["annotations"],
        }
        self.deliver("claims", self.api.write(CLAIMS, bound))
        self.deliver("volumes", self.api.write(VOLUMES, volume(name, host=host, phase="Bound")))


def test_another_scheduler_takes_the_volume() -> None:
    """The other scheduler uses the first volume for a different claim, so the gang gets the second volume."""
    rival = volume("v", host="a", claimRef={"namespace": "ns", "name": "other", "uid": "u-other"})

    async def scenario() -> SchedulerWithGang:
        scene = SchedulerWithGang(Api(rival), "later", VOLUME_NODES)
        assert await scene.cycle() and await scene.cycle(), "as long as the watch is late, it is tried again"
        assert scene.api.refused == 2 and not scene.api.bound
        scene.deliver("volumes", scene.api.stored[("persistentvolumes", "v")])
        await scene.cycle()
        assert scene.api.stored[("persistentvolumes", "w")]["spec"]["claimRef"]["uid"] == "u-c" and not scene.api.bound
        scene.bind("w", "c")
        await scene.cycle()
        return scene

    assert leap(scenario()).api.bound == {"p": "c"}


def test_another_scheduler_takes_a_volume_for_the_claim() -> None:
    """The claim is bound to a volume on another node while the scheduler reserves one."""

    async def scenario() -> SchedulerWithGang:
        api = Api(volume("v", host="a", claimRef={"namespace": "ns", "name": "other", "uid": "u-other"}))
        scene = SchedulerWithGang(api, "later", VOLUME_NODES)
        assert await scene.cycle() and not api.bound
        scene.bind("w", "c")
        await scene.cycle()
        return scene

    assert leap(scenario()).api.bound == {"p": "c"}


@pytest.mark.parametrize("selected", ["b", "c"])
def test_another_scheduler_selects_the_node(selected: str) -> None:
    """The volume is provisioned for the node that was selected first."""
    rival = claim(storage_class="made", uid="u-c", annotations={SELECTED: selected})

    async def scenario() -> SchedulerWithGang:
        scene = SchedulerWithGang(Api(rival), "made", {})
        assert await scene.cycle() and not scene.api.bound
        scene.deliver("claims", scene.api.stored[("persistentvolumeclaims", "c")])
        await scene.cycle()
        annotations = scene.api.stored[("persistentvolumeclaims", "c")]["metadata"]["annotations"]
        assert annotations[SELECTED] == selected and scene.api.refused == 1 and not scene.api.bound
        scene.bind("made", selected)
        await scene.cycle()
        return scene

    assert leap(scenario()).api.bound == {"p": selected}


def test_the_provisioner_withdraws_the_selected_node() -> None:
    """The provisioner cannot create a volume on this node and requests another node."""
    refused = claim(storage_class="made", uid="u-c")

    async def scenario() -> SchedulerWithGang:
        scene = SchedulerWithGang(Api(), "made", {})
        await scene.cycle()
        first = scene.api.stored[("persistentvolumeclaims", "c")]
        assert first["metadata"]["annotations"][SELECTED] in NODES and not scene.api.bound
        refused["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"]
        scene.scheduler._changed.clear()
        scene.deliver("claims", scene.api.write(CLAIMS, refused))
        assert scene.scheduler._changed.is_set(), "the gang is planned anew"
        await scene.cycle()
        selected_node = scene.api.stored[("persistentvolumeclaims", "c")]["metadata"]["annotations"][SELECTED]
        scene.bind("made", selected_node)
        await scene.cycle()
        assert scene.api.bound == {"p": selected_node}
        return scene

    leap(scenario())
