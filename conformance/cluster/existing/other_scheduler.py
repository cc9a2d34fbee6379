"""Find out whether somebody schedules pods under the scheduler name that is judged, before anything is started.

Two schedulers of one name bind pods one by one that wait for a gang, and neither can be judged. A pod is made that fits
on one fake node only: nobody may say anything of it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Any

import orjson

from conformance.cluster import nodes
from conformance.cluster.existing.marks import marked
from conformance.errors import UsageError
from conformance.grove.restricted import restricted
from kube.client import Client
from kube.resource import PODS, Resource

NAMESPACE = "default"
MARK = "conformance.grove.io/preflight"
CORE_EVENTS = Resource("", "v1", "events", "Event")
LOOK_EVERY = 0.1
"""Seconds between two looks."""
REPORTS_WITHIN = 1.0
"""Seconds that a scheduler has to report what it has done."""

Object = Mapping[str, Any]


async def require_none(client: Client, scheduler: str, within: float, run: str = "") -> None:
    """Raise UsageError if somebody binds, or looks at, a pod with a scheduler name within so many seconds. A scheduler
    on an idle cluster needs milliseconds."""
    name = f"preflight-{secrets.token_hex(3)}"
    (node,) = nodes.manifests("single", 1, name, {MARK: name})
    try:
        await nodes.provide(client, [marked(node, run)])
        await client.create(PODS, marked(_pod(name, scheduler), run))
        seen = await _seen(client, name, within)
        who = await _who(client, name) if seen else ""
    finally:
        await client.delete(PODS, NAMESPACE, name, grace_seconds=0)
        await nodes.delete_nodes(client, [node["metadata"]["name"]])
    if seen:
        raise UsageError(
            f"another scheduler serves the scheduler name {scheduler!r}: it {seen} the pod {NAMESPACE}/{name}{who}",
            hint="stop it, or give one of the two another scheduler name (schedulerName of the descriptor)",
        )


def verdict(pod: Object) -> str:
    """Return what a scheduler has done with a pod, as a verb; empty if none has."""
    if pod["spec"].get("nodeName"):
        return "bound"
    conditions = (pod.get("status") or {}).get("conditions") or []
    return "looked at" if any(each["type"] == "PodScheduled" for each in conditions) else ""


def reporter(events: list[dict[str, Any]]) -> str:
    """Return who reported on a pod, from its events: the component, and the program as its writes name it."""
    for event in events:
        component = event.get("reportingComponent") or (event.get("source") or {}).get("component", "")
        programs = [entry.get("manager", "") for entry in event["metadata"].get("managedFields") or ()]
        instance = event.get("reportingInstance") or (event.get("source") or {}).get("host", "")
        said = [f"as {component}" if component else "", f"at {instance}" if instance else ""]
        words = " ".join(filter(None, [next(filter(None, programs), ""), *said]))
        if words:
            return words
    return ""


async def _seen(client: Client, name: str, within: float) -> str:
    deadline = time.monotonic() + within
    while True:
        if found := verdict(orjson.loads(await client.get(PODS, NAMESPACE, name))):
            return found
        if time.monotonic() > deadline:
            return ""
        await asyncio.sleep(LOOK_EVERY)


async def _who(client: Client, name: str) -> str:
    """Return who says in an event that it has scheduled a pod, in parentheses; empty if nobody says so in time."""
    deadline = time.monotonic() + REPORTS_WITHIN
    params = {"fieldSelector": f"involvedObject.name={name},involvedObject.kind=Pod"}
    while True:
        answer = await client.request("GET", CORE_EVENTS.path(NAMESPACE), params=params)
        if found := reporter(orjson.loads(answer)["items"]):
            return f" (an event says: {found})"
        if time.monotonic() > deadline:
            return ""
        await asyncio.sleep(LOOK_EVERY)


def _pod(name: str, scheduler: str) -> dict[str, Any]:
    spec = {
        "schedulerName": scheduler,
        "nodeSelector": {MARK: name},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "registry.example/preflight:1"}],
        "automountServiceAccountToken": False,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": restricted(spec),
    }
