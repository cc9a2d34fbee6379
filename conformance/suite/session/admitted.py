"""Find out before a run whether a cluster admits the pods of its scenes in a new namespace.

A dry run would show less: admission may treat it differently, and objects that controllers create in each new
namespace, such as a quota, appear a moment later.
"""

from __future__ import annotations

import asyncio
import secrets
import time

import orjson

from conformance.cluster import nodes, pace
from conformance.cluster.existing.marks import with_run_label
from conformance.errors import UsageError
from conformance.grove import workloads
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, PODS

WORKLOAD = "frontend"
"""The workload whose pod is created as a trial, because it resembles the pods of most scenes."""
ACCOUNT_TIMEOUT_SECONDS = 30.0
"""Seconds within which a new namespace must have its service account. It usually takes less than one."""
POLL_SECONDS = 0.1
HINT = "let new namespaces admit the pods of scenes (docs/running.md), or give another cluster"


async def require(client: Client, run: str = "") -> None:
    """Raise UsageError, with the API server's message, if the cluster does not admit a pod. All created objects are
    deleted again."""
    name = f"preflight-{secrets.token_hex(3)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    try:
        await client.create(NAMESPACES, with_run_label(namespace, run))
        try:
            await _wait_for_account(client, name)
            await client.create(PODS, _pod(name), namespace=name)
        finally:
            await client.delete(NAMESPACES, None, name)
    except ApiError as error:
        if error.status >= 500:
            raise
        message = " ".join(error.message.split())
        raise UsageError(f"refuses the pods of scenes in a new namespace: {message}", hint=HINT) from error


def _pod(namespace: str) -> dict[str, object]:
    """Return a pod that every scheduler ignores, because it has a scheduling gate."""
    workload = workloads.load(WORKLOAD)
    nodes.restrict_to_pool(namespace, workload)
    spec = workload["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    gate = {"name": "conformance.grove.io/preflight"}
    metadata = {"name": "scene", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "schedulingGates": [gate]}}


async def _wait_for_account(client: Client, namespace: str) -> None:
    """Wait until the namespace has its service account, without which the API server rejects pods."""
    start = time.monotonic()
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    while (response := await client.exchange("GET", path)).status != 200:
        if time.monotonic() - start > pace.patience(ACCOUNT_TIMEOUT_SECONDS):
            message = orjson.loads(response.content).get("message", "")
            raise UsageError(
                f"a new namespace has no service account after {ACCOUNT_TIMEOUT_SECONDS:g} s: {message}", hint=HINT
            )
        await asyncio.sleep(POLL_SECONDS)
