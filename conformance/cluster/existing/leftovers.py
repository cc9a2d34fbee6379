"""What a run makes on an existing cluster beside the content of its namespaces, found by a label: to remove it at the
end of the run, or later if the run was killed.

CRDs and the objects of `install.objects` stay after every run, so they have no such label.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from conformance.cluster import pace
from conformance.cluster.existing import helm_releases, kwok_stages
from conformance.cluster.existing.marks import HELM, KEPT, RUN
from conformance.errors import HarnessError
from kube import discovery
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, NODES, PODS, Resource

WITHIN = 60.0
"""Seconds within which what is removed must be gone, on a machine that is not overloaded."""
LOOK_EVERY = 0.2
"""Seconds between two looks."""
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
UNREADABLE = (403, 404, 405)

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Left:
    """An object that a run has left."""

    resource: Resource
    namespace: str | None
    name: str
    run: str
    kept: bool = False
    release: str = ""
    """The Helm release that it stands for, as NAMESPACE/NAME."""

    @property
    def hook(self) -> bool:
        """Return whether it may reject requests, so that it has to go first."""
        return self.resource.group == "admissionregistration.k8s.io"


def described(found: Iterable[Left]) -> str:
    """Return what was left in a few words: `3 namespaces, 12 stages, of the run r1`."""
    found = list(found)
    counts = Counter(each.resource.plural for each in found)
    runs = ", ".join(sorted({each.run for each in found}))
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) + f", of the run {runs}"


async def find(client: Client, run: str = "") -> list[Left]:
    """Return what a run has left, or what all have: objects of any kind. Raises ApiError."""
    resources = (await discovery.served(client, ("list", "delete"))).values()
    found = await asyncio.gather(*(_of_kind(client, resource, run) for resource in resources))
    return [left for lefts in found for left in lefts]


async def remove(client: Client, found: Sequence[Left], kubeconfig: Path) -> None:
    """Remove what was found, and return when it is gone: webhooks first, which could reject the rest; KWOK gets its own
    stages back before pods and nodes go. Raises HarnessError if something stays."""
    hooks = [each for each in found if each.hook]
    stages = [each for each in found if kwok_stages.concerns(each.resource, each.name)]
    spaces = [each for each in found if each.resource == NAMESPACES]
    fleet = [each for each in found if each.resource == NODES]
    others = [each for each in found if each not in {*hooks, *stages, *spaces, *fleet}]
    await _delete(client, hooks)
    for each in found:
        if each.release:
            helm_releases.uninstall(kubeconfig, each.release)
    if stages:
        await kwok_stages.restore(client)
    await _delete(client, others)
    await _delete(client, spaces)  # their pods end on the nodes
    await _delete(client, fleet)


async def _of_kind(client: Client, resource: Resource, run: str) -> list[Left]:
    params = {"labelSelector": f"{RUN}={run}" if run else RUN}
    try:
        answer = await client.request("GET", resource.path(), params=params, headers={"Accept": METADATA})
    except ApiError as error:
        if error.status in UNREADABLE:
            return []
        raise
    return [_left(resource, each["metadata"]) for each in orjson.loads(answer)["items"] or ()]


def _left(resource: Resource, metadata: Object) -> Left:
    notes = metadata.get("annotations") or {}
    return Left(
        resource,
        metadata.get("namespace"),
        metadata["name"],
        metadata["labels"][RUN],
        KEPT in notes,
        notes.get(HELM, ""),
    )


async def _delete(client: Client, found: Sequence[Left]) -> None:
    await asyncio.gather(*(client.delete(each.resource, each.namespace, each.name) for each in found))
    begin, waiting = time.monotonic(), list(found)
    while True:
        there = await asyncio.gather(*(_there(client, each) for each in waiting))
        waiting = [each for each, still in zip(waiting, there, strict=True) if still]
        if not waiting:
            return
        if (passed := time.monotonic() - begin) > pace.patience(WITHIN):
            first = f"{waiting[0].resource} {waiting[0].name}"
            raise HarnessError(
                f"{len(waiting)} objects are still there after {passed:.0f} s, the first: {first}",
                hint="see its finalizers",
            )
        for space in (each.name for each in waiting if each.resource == NAMESPACES):
            await _end_pods(client, space)
            await _take_finalizers(client, space)
        await asyncio.sleep(LOOK_EVERY)


async def _there(client: Client, left: Left) -> bool:
    return await client.get_or_none(left.resource, left.namespace, left.name) is not None


async def _end_pods(client: Client, namespace: str) -> None:
    """Delete the pods whose nodes are gone: nobody plays them, and Kubernetes itself takes a minute to notice."""
    nodes = {node["metadata"]["name"] for node in await client.list(NODES)}
    for pod in await client.list(PODS, namespace):
        if pod["spec"].get("nodeName", "") not in nodes:
            await client.delete(PODS, namespace, pod["metadata"]["name"], grace_seconds=0)


async def _take_finalizers(client: Client, namespace: str) -> None:
    """Remove the finalizers of all objects in a namespace that is being deleted: the controllers that would do so have
    ended."""
    for resource in (await discovery.served(client, ("list", "patch"))).values():
        if not resource.namespaced:
            continue
        try:
            answer = await client.request("GET", resource.path(namespace), headers={"Accept": METADATA})
        except ApiError as error:
            if error.status in UNREADABLE:
                continue
            raise
        items = [each["metadata"] for each in orjson.loads(answer)["items"] or ()]
        held = [each["name"] for each in items if each.get("finalizers")]
        await asyncio.gather(*(_freed(client, resource, namespace, name) for name in held))


async def _freed(client: Client, resource: Resource, namespace: str, name: str) -> None:
    with suppress(ApiError):  # it is gone, or a webhook is still called that has just been removed: tried again
        await client.patch(resource, namespace, name, {"metadata": {"finalizers": None}})
