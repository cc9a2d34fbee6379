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
from conformance.cluster.existing.marks import with_run_label
from conformance.errors import UsageError
from conformance.grove.restricted import restricted
from kube.client import Client
from kube.resource import PODS, Resource

NAMESPACE = "default"
PROBE_LABEL = "conformance.grove.io/preflight"
CORE_EVENTS = Resource("", "v1", "events", "Event")
CHECK_INTERVAL = 0.1
"""Seconds between two checks."""
REPORT_SECONDS = 1.0
"""Seconds that a scheduler has to report its action in an event."""

Object = Mapping[str, Any]


async def require_none(client: Client, scheduler: str, timeout: float, run: str = "") -> None:
    """Raise UsageError if a scheduler binds or processes a pod with a scheduler name within `timeout` seconds. On an
    idle cluster, a scheduler needs milliseconds."""
    name = f"preflight-{secrets.token_hex(3)}"
    (node,) = nodes.manifests("single", 1, name, {PROBE_LABEL: name})
    try:
        await nodes.create_schedulable_nodes(client, [with_run_label(node, run)])
        await client.create(PODS, with_run_label(_pod(name, scheduler), run))
        action = await _first_action(client, name, timeout)
        source = await _event_source(client, name) if action else ""
    finally:
        await client.delete(PODS, NAMESPACE, name, grace_seconds=0)
        await nodes.delete_nodes(client, [node["metadata"]["name"]])
    if action:
        raise UsageError(
            f"another scheduler serves the scheduler name {scheduler!r}: "
            f"it {action} the pod {NAMESPACE}/{name}{source}",
            hint="stop it, or give one of the two another scheduler name (schedulerName of the descriptor)",
        )


def scheduler_action(pod: Object) -> str:
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


async def _first_action(client: Client, name: str, timeout: float) -> str:
    deadline = time.monotonic() + timeout
    while True:
        if action := scheduler_action(orjson.loads(await client.get(PODS, NAMESPACE, name))):
            return action
        if time.monotonic() > deadline:
            return ""
        await asyncio.sleep(CHECK_INTERVAL)


async def _event_source(client: Client, name: str) -> str:
    """Return the reporter of an event about a pod, in parentheses; empty if there is no event in time."""
    deadline = time.monotonic() + REPORT_SECONDS
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
        "nodeSelector": {PROBE_LABEL: name},
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
