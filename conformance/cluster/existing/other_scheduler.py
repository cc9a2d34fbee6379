"""Detection of another scheduler that serves the judged scheduler name, before anything is started.

If two schedulers have the same name, one of them binds pods one by one while the other waits for a gang, and neither
can be judged. A pod is created that fits on one fake node only; no scheduler may act on it.
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
CHECK_INTERVAL = 0.1
"""Seconds between two checks."""
REPORT_LIMIT = 1.0
"""Seconds that a scheduler has to report its action in an event."""

Object = Mapping[str, Any]


async def require_none(client: Client, scheduler: str, within: float, run: str = "") -> None:
    """Raise UsageError if a scheduler binds or processes a pod with a scheduler name within `within` seconds. On an
    idle cluster, a scheduler needs milliseconds."""
    name = f"preflight-{secrets.token_hex(3)}"
    (node,) = nodes.manifests("single", 1, name, {MARK: name})
    try:
        await nodes.provide(client, [marked(node, run)])
        await client.create(PODS, marked(_pod(name, scheduler), run))
        act = await _first_act(client, name, within)
        source = await _reported_by(client, name) if act else ""
    finally:
        await client.delete(PODS, NAMESPACE, name, grace_seconds=0)
        await nodes.delete_nodes(client, [node["metadata"]["name"]])
    if act:
        raise UsageError(
            f"another scheduler serves the scheduler name {scheduler!r}: it {act} the pod {NAMESPACE}/{name}{source}",
            hint="stop it, or give one of the two another scheduler name (schedulerName of the descriptor)",
        )


def verdict(pod: Object) -> str:
    """Return what a scheduler has done with a pod, as a verb; empty if it has done nothing."""
    if pod["spec"].get("nodeName"):
        return "bound"
    conditions = (pod.get("status") or {}).get("conditions") or []
    return "looked at" if any(condition["type"] == "PodScheduled" for condition in conditions) else ""


def reporter(events: list[dict[str, Any]]) -> str:
    """Return the reporter of a pod's events: the component, and the program as it is named in managedFields."""
    for event in events:
        component = event.get("reportingComponent") or (event.get("source") or {}).get("component", "")
        programs = [entry.get("manager", "") for entry in event["metadata"].get("managedFields") or ()]
        instance = event.get("reportingInstance") or (event.get("source") or {}).get("host", "")
        origin = [f"as {component}" if component else "", f"at {instance}" if instance else ""]
        description = " ".join(filter(None, [next(filter(None, programs), ""), *origin]))
        if description:
            return description
    return ""


async def _first_act(client: Client, name: str, within: float) -> str:
    deadline = time.monotonic() + within
    while True:
        if act := verdict(orjson.loads(await client.get(PODS, NAMESPACE, name))):
            return act
        if time.monotonic() > deadline:
            return ""
        await asyncio.sleep(CHECK_INTERVAL)


async def _reported_by(client: Client, name: str) -> str:
    """Return the reporter of an event about a pod, in parentheses; empty if there is no event in time."""
    deadline = time.monotonic() + REPORT_LIMIT
    params = {"fieldSelector": f"involvedObject.name={name},involvedObject.kind=Pod"}
    while True:
        response = await client.request("GET", CORE_EVENTS.path(NAMESPACE), params=params)
        if source := reporter(orjson.loads(response)["items"]):
            return f" (an event says: {source})"
        if time.monotonic() > deadline:
            return ""
        await asyncio.sleep(CHECK_INTERVAL)


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
