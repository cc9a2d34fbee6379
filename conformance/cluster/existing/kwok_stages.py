"""Replaces the Stages of an existing cluster's KWOK with the Stages of the suite, and restores them.

KWOK has to read Stages from the API (`--enable-crds=Stage`, as in its chart). Its own Stages cannot remain in addition
to the suite's, because KWOK selects one at random if several match a pod. They are stored in a ConfigMap before the
first one is deleted, so none is lost even if a run is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from conformance.cluster import nodes, stages
from conformance.cluster.existing.marks import KEPT_ANNOTATION, RUN_LABEL, with_run_label
from conformance.errors import UsageError
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES, PODS, Resource

STAGES = Resource("kwok.x-k8s.io", "v1alpha1", "stages", "Stage", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE, BACKUP = "kube-system", "grove-conformance-stages"
"""The ConfigMap with the Stages that existed before."""
_KEY = "stages.json"
_SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
_ENABLE_HINT = "start KWOK with --enable-crds=Stage, as its chart does"

Object = Mapping[str, Any]


def is_restored(resource: Resource, name: str) -> bool:
    """Return whether `restore` removes this object."""
    return resource == STAGES or (resource == CONFIG_MAPS and name == BACKUP)


async def require_unused(client: Client) -> None:
    """Raise UsageError if KWOK does not read Stages from the API, or if it simulates pods of other users, which would
    behave differently."""
    try:
        await client.list(STAGES)
    except ApiError as error:
        if error.not_found:
            raise UsageError("its KWOK reads no Stages from the API", hint=_ENABLE_HINT) from None
        raise
    if pods := await _simulated_pods(client):
        first_pod = f"{pods[0]['metadata']['namespace']}/{pods[0]['metadata']['name']}"
        raise UsageError(
            f"its KWOK plays {len(pods)} pods of others, which would behave otherwise; the first: {first_pod}",
            hint="delete them, or leave --install-stages out",
        )


async def install(client: Client, run: str) -> int:
    """Replace the Stages with the Stages of the suite, labelled with a run, and return the number of replaced Stages.
    Raises UsageError if KWOK is too old for the suite's Stages; in this case KWOK's own Stages have been restored."""
    backup = await client.get_or_none(CONFIG_MAPS, NAMESPACE, BACKUP)
    existing = await client.list(STAGES)
    if backup is None:
        await client.create(CONFIG_MAPS, with_run_label(_backup(existing), run))
    await asyncio.gather(*(client.delete(STAGES, None, stage["metadata"]["name"]) for stage in existing))
    try:
        for stage in stages.load("fast"):
            params = {"fieldValidation": "Strict"}  # otherwise unknown fields would be dropped silently
            await client.request("POST", STAGES.path(), params=params, body=with_run_label(stage, run))
    except ApiError as error:
        await restore(client)
        if error.status in (400, 422):
            problem = f"its KWOK does not take our Stages: {' '.join(error.message.split())}"
            raise UsageError(problem, hint="use KWOK v0.8 or newer") from None
        raise
    return len(existing if backup is None else _stages_in(backup))


async def keep(client: Client) -> None:
    """Keep the suite's Stages: neither the end of this run nor the end of a later run removes them."""
    patch = {"metadata": {"annotations": {KEPT_ANNOTATION: "true"}}}
    for stage in await client.list(STAGES, selector=RUN_LABEL):
        await client.patch(STAGES, None, stage["metadata"]["name"], patch)
    await client.patch(CONFIG_MAPS, NAMESPACE, BACKUP, patch)


async def restore(client: Client) -> None:
    """Remove the suite's Stages and restore the Stages that existed before. Idempotent."""
    suite_stages = await client.list(STAGES, selector=RUN_LABEL)
    await asyncio.gather(*(client.delete(STAGES, None, stage["metadata"]["name"]) for stage in suite_stages))
    backup = await client.get_or_none(CONFIG_MAPS, NAMESPACE, BACKUP)
    if backup is None:
        return
    for stage in _stages_in(backup):
        try:
            await client.create(STAGES, stage)
        except ApiError as error:
            if not error.already_exists:
                raise
    await client.delete(CONFIG_MAPS, NAMESPACE, BACKUP)


def _backup(existing: Sequence[Object]) -> Object:
    manifests = [
        {**stage, "metadata": {key: value for key, value in stage["metadata"].items() if key not in _SERVER_FIELDS}}
        for stage in existing
        if RUN_LABEL not in (stage["metadata"].get("labels") or {})
    ]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": BACKUP, "namespace": NAMESPACE},
        "data": {_KEY: orjson.dumps(manifests).decode()},
    }


def _stages_in(backup: bytes) -> list[Object]:
    stages: list[Object] = orjson.loads(orjson.loads(backup)["data"][_KEY])
    return stages


async def _simulated_pods(client: Client) -> list[Object]:
    """Return the pods on fake nodes that do not belong to the suite, except for pods of DaemonSets, which run on every
    node."""
    fake_nodes = {node["metadata"]["name"] for node in await client.list(NODES) if _is_foreign_fake(node)}
    return [
        pod
        for pod in (await client.list(PODS) if fake_nodes else [])
        if pod["spec"].get("nodeName") in fake_nodes
        and not any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
    ]


def _is_foreign_fake(node: Object) -> bool:
    """Return whether the node is simulated by KWOK and was not created by the suite."""
    metadata = node["metadata"]
    version = ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", "")
    is_simulated = nodes.SIMULATED_ANNOTATION.keys() & (metadata.get("annotations") or {}).keys() or version.startswith(
        "kwok-"
    )
    return bool(is_simulated) and nodes.POOL not in (metadata.get("labels") or {})
