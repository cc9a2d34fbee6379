"""The objects that a run creates on an existing cluster outside its namespaces. They are identified by a label, and
removed at the end of the run, or later if the run was killed.

CRDs and the objects of `install.objects` remain after every run, so they do not have this label.
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
from conformance.cluster.existing.marks import HELM_ANNOTATION, KEPT_ANNOTATION, RUN_LABEL
from conformance.errors import HarnessError
from kube import discovery
from kube.client import METADATA_LIST, Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, NODES, PODS, Resource

TIMEOUT_SECONDS = 60.0
"""Seconds within which removed objects must be gone, on a machine that is not overloaded."""
CHECK_INTERVAL = 0.2
"""Seconds between two checks."""
UNREADABLE_STATUSES = (403, 404, 405)

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Leftover:
    """An object that a run has left."""

    resource: Resource
    namespace: str | None
    name: str
    run: str
    retained: bool = False
    release: str = ""
    """The Helm release that the object stands for, as NAMESPACE/NAME."""

    @property
    def is_hook(self) -> bool:
        """Return whether the object may cause requests to be rejected, so that it has to be removed first."""
        return self.resource.group == "admissionregistration.k8s.io"


def describe(leftovers: Iterable[Leftover]) -> str:
    """Describe leftovers in a few words: `3 namespaces, 12 stages, of the run r1`."""
    leftovers = list(leftovers)
    counts = Counter(leftover.resource.plural for leftover in leftovers)
    runs = ", ".join(sorted({leftover.run for leftover in leftovers}))
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) + f", of the run {runs}"


async def find(client: Client, run: str = "") -> list[Leftover]:
    """Return the leftovers of a run, or of all runs. They can be objects of any kind. Raises ApiError."""
    resources = (await discovery.served_resources(client, ("list", "delete"))).values()
    leftovers_by_resource = await asyncio.gather(*(_leftovers_of(client, resource, run) for resource in resources))
    return [leftover for leftovers in leftovers_by_resource for leftover in leftovers]


async def remove(client: Client, leftovers: Sequence[Leftover], kubeconfig: Path) -> None:
    """Remove leftovers, and return when they are gone. Webhooks are removed first, because they could reject the rest,
    and KWOK's own stages are restored before pods and nodes are removed. Raises HarnessError if something remains."""
    hooks = [leftover for leftover in leftovers if leftover.is_hook]
    stages = [leftover for leftover in leftovers if kwok_stages.is_restored(leftover.resource, leftover.name)]
    namespaces = [leftover for leftover in leftovers if leftover.resource == NAMESPACES]
    nodes = [leftover for leftover in leftovers if leftover.resource == NODES]
    other_objects = [leftover for leftover in leftovers if leftover not in {*hooks, *stages, *namespaces, *nodes}]
    await _delete(client, hooks)
    for leftover in leftovers:
        if leftover.release:
            helm_releases.uninstall(kubeconfig, leftover.release)
    if stages:
        await kwok_stages.restore(client)
    await _delete(client, other_objects)
    await _delete(client, namespaces)  # the pods in the namespaces need their nodes to terminate
    await _delete(client, nodes)


async def _leftovers_of(client: Client, resource: Resource, run: str) -> list[Leftover]:
    params = {"labelSelector": f"{RUN_LABEL}={run}" if run else RUN_LABEL}
    try:
        response = await client.request("GET", resource.path(), params=params, headers={"Accept": METADATA_LIST})
    except ApiError as error:
        if error.status in UNREADABLE_STATUSES:
            return []
        raise
    return [_leftover(resource, item["metadata"]) for item in orjson.loads(response)["items"] or ()]


def _leftover(resource: Resource, metadata: Object) -> Leftover:
    annotations = metadata.get("annotations") or {}
    return Leftover(
        resource,
        metadata.get("namespace"),
        metadata["name"],
        metadata["labels"][RUN_LABEL],
        KEPT_ANNOTATION in annotations,
        annotations.get(HELM_ANNOTATION, ""),
    )


async def _delete(client: Client, leftovers: Sequence[Leftover]) -> None:
    await asyncio.gather(
        *(client.delete(leftover.resource, leftover.namespace, leftover.name) for leftover in leftovers)
    )
    start, remaining = time.monotonic(), list(leftovers)
    while True:
        existence = await asyncio.gather(*(_exists(client, leftover) for leftover in remaining))
        remaining = [leftover for leftover, exists in zip(remaining, existence, strict=True) if exists]
        if not remaining:
            return
        if (waited := time.monotonic() - start) > pace.patience(TIMEOUT_SECONDS):
            first_object = f"{remaining[0].resource} {remaining[0].name}"
            raise HarnessError(
                f"{len(remaining)} objects are still there after {waited:.0f} s, the first: {first_object}",
                hint="see its finalizers",
            )
        for namespace in (leftover.name for leftover in remaining if leftover.resource == NAMESPACES):
            await _delete_orphaned_pods(client, namespace)
            await _remove_all_finalizers(client, namespace)
        await asyncio.sleep(CHECK_INTERVAL)


async def _exists(client: Client, leftover: Leftover) -> bool:
    return await client.get_or_none(leftover.resource, leftover.namespace, leftover.name) is not None


async def _delete_orphaned_pods(client: Client, namespace: str) -> None:
    """Delete the pods whose nodes are gone: no kubelet is simulated for them, and Kubernetes itself notices this only
    after a minute."""
    nodes = {node["metadata"]["name"] for node in await client.list(NODES)}
    for pod in await client.list(PODS, namespace):
        if pod["spec"].get("nodeName", "") not in nodes:
            await client.delete(PODS, namespace, pod["metadata"]["name"], grace_seconds=0)


async def _remove_all_finalizers(client: Client, namespace: str) -> None:
    """Remove the finalizers of all objects in a namespace that is being deleted, because the controllers that normally
    do this have ended."""
    for resource in (await discovery.served_resources(client, ("list", "patch"))).values():
        if not resource.namespaced:
            continue
        try:
            response = await client.request("GET", resource.path(namespace), headers={"Accept": METADATA_LIST})
        except ApiError as error:
            if error.status in UNREADABLE_STATUSES:
                continue
            raise
        items = [item["metadata"] for item in orjson.loads(response)["items"] or ()]
        blocked = [item["name"] for item in items if item.get("finalizers")]
        await asyncio.gather(*(_remove_finalizers(client, resource, namespace, name) for name in blocked))


async def _remove_finalizers(client: Client, resource: Resource, namespace: str, name: str) -> None:
    with suppress(ApiError):  # the object is gone, or a deleted webhook is still called: retried later
        await client.patch(resource, namespace, name, {"metadata": {"finalizers": None}})
