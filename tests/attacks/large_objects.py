"""Modes of hostile.py that make objects too deep or too large for those who read them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

from conformance.grove.kinds import PODCLIQUESETS
from kube.client import MERGE_PATCH, Client
from kube.errors import ApiError
from tests.attacks.helpers import for_each_object, ledger_contains, mode, patch, wait_until

LEVELS = 1_200
FIELDS = '{"f:a":' * LEVELS + "{}" + "}" * LEVELS
ENTRY = '"manager":"x","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1"'
DEEP = f'{{"metadata":{{"managedFields":[{{{ENTRY},"fieldsV1":{FIELDS}}}]}}}}'.encode()
"""A patch with managed fields that no Python decoder can read."""
PODS, GANGS, NODES = "/api/v1/pods", "/apis/scheduler.grove.io/v1alpha1/podgangs", "/api/v1/nodes"
LARGE_WRITES = 20_000
CLIENTS = 4


def path_of(collection: str, item: Any) -> str:
    """Return the path of an object of a collection of all namespaces."""
    prefix, _, plural = collection.rpartition("/")
    namespace = item["metadata"].get("namespace")
    return "/".join([prefix, *(["namespaces", namespace] if namespace else []), plural, item["metadata"]["name"]])


def nest(kubeconfig: Path, collection: str) -> None:
    """Nest the managed fields of each new object of a collection, until the suite ends this program."""
    nested: set[str] = set()

    def deepen(item: Any) -> None:
        if item["metadata"]["uid"] not in nested:
            nested.add(item["metadata"]["uid"])
            patch(kubeconfig, path_of(collection, item), DEEP)

    for_each_object(kubeconfig, collection, deepen)


@mode
def nest_managed_fields(kubeconfig: Path, folder: Path) -> None:
    """Nest the managed fields of each pod."""
    nest(kubeconfig, PODS)


@mode
def nest_managed_fields_of_gangs(kubeconfig: Path, folder: Path) -> None:
    """Nest the managed fields of each PodGang."""
    nest(kubeconfig, GANGS)


@mode
def nest_managed_fields_of_nodes(kubeconfig: Path, folder: Path) -> None:
    """Nest the managed fields of each node."""
    nest(kubeconfig, NODES)


@mode
def enlarge_pods(kubeconfig: Path, folder: Path) -> None:
    """Enlarge pods."""
    enlarge(kubeconfig, folder, PODS)


@mode
def enlarge_nodes(kubeconfig: Path, folder: Path) -> None:
    """Enlarge nodes."""
    enlarge(kubeconfig, folder, NODES)


@mode
def enlarge_sets(kubeconfig: Path, folder: Path) -> None:
    """Enlarge PodCliqueSets."""
    enlarge(kubeconfig, folder, PODCLIQUESETS.path())


def enlarge(kubeconfig: Path, folder: Path, collection: str) -> None:
    """Write an annotation of 60 KiB to objects of a collection, 20,000 times or until the suite ends this program."""
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    asyncio.run(_enlarge(kubeconfig, collection))


async def _enlarge(kubeconfig: Path, collection: str) -> None:
    written = 0

    async def write(client: Client, path: str) -> None:
        nonlocal written
        written += 1
        change = {"metadata": {"annotations": {"hostile": f"{written:060}" * 1_024}}}
        with contextlib.suppress(ApiError, OSError):
            await client.request("PATCH", path, body=change, content_type=MERGE_PATCH)

    async with Client.from_kubeconfig(kubeconfig, user_agent="hostile/1.0") as client:
        while written < LARGE_WRITES:
            items = json.loads(await client.request("GET", f"{collection}?limit={CLIENTS}"))["items"]
            await asyncio.gather(*(write(client, path_of(collection, item)) for item in items), asyncio.sleep(0.001))
