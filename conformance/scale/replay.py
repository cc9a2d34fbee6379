"""Replays the writes of an implementation with one client that only sends them: the write floor.

A write waits only for its dependencies: the previous write to the same object, the creation of objects whose UID it
contains (owners) and, for a pod, the creation of its ServiceAccount. Of the writes that need not wait, the one that was
recorded first is sent first. In any other order the scheduler and KWOK would get their work later, and the result would
not be a lower bound.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from conformance.cluster.audit_bodies import Write
from conformance.errors import HarnessError
from kube.client import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Client
from kube.errors import ApiError

UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}


def dependencies(writes: Sequence[Write]) -> list[set[int]]:
    """Return for each write the earlier writes for which it has to wait."""
    last_writes: dict[tuple[str, str, str, str], int] = {}
    creators: dict[bytes, int] = {}
    earlier_by_write: list[set[int]] = []
    for index, write in enumerate(writes):
        earlier_writes = {last_writes[write.target]} if write.target in last_writes else set()
        earlier_writes |= {creators[uid] for uid in UID.findall(write.body) if uid in creators}
        if write.resource == "pods" and write.verb == "create":
            account = ("", "serviceaccounts", write.target[2], _account(write.body))
            earlier_writes |= {last_writes[account]} if account in last_writes else set()
        earlier_by_write.append(earlier_writes)
        last_writes[write.target] = index
        if write.uid:
            creators[write.uid.encode()] = index
    return earlier_by_write


def count_writes(writes: Sequence[Write]) -> Counter[tuple[str, str]]:
    """Count writes by verb and resource."""
    return Counter((write.verb, write.resource) for write in writes)


def content_type(write: Write) -> str:
    """Return the content type of a write, which the audit log does not contain."""
    if write.verb != "patch":
        return JSON
    body = orjson.loads(write.body)
    if isinstance(body, list):
        return JSON_PATCH
    if "fieldManager=" in write.uri and {"apiVersion", "kind"} <= body.keys():
        return APPLY_PATCH
    return MERGE_PATCH if "." in write.group and not write.group.endswith(".k8s.io") else STRATEGIC_PATCH


def prepare_body(write: Write, uids: Mapping[bytes, bytes], version: str) -> bytes | None:
    """Return the body to send: recorded UIDs are replaced by the UIDs of the current objects, created objects get their
    recorded names, and no write requires a resource version that this cluster has never had. `version` is the object's
    last known resource version."""
    if not write.body or write.verb in ("delete", "deletecollection"):
        return None  # the options of a deletion are only preconditions
    body = orjson.loads(UID.sub(lambda match: uids.get(match.group(), match.group()), write.body))
    if isinstance(body, list):
        return orjson.dumps([step for step in body if step.get("op") != "test"])
    metadata: dict[str, Any] = body.get("metadata") or {}
    metadata.pop("resourceVersion", None)
    metadata.pop("uid", None)
    if write.verb == "create":
        metadata.pop("generateName", None)
        if "/" not in write.resource:
            metadata["name"] = write.target[3]
    if write.verb == "update" and version:
        metadata["resourceVersion"] = version
    if metadata:
        body["metadata"] = metadata
    return orjson.dumps(body)


class Replay:
    """One replay of writes. `uids` maps UIDs in the recording to the UIDs of objects that already exist."""

    def __init__(self, client: Client, writes: Sequence[Write], uids: Mapping[str, str], in_flight: int) -> None:
        self._client, self._writes = client, writes
        self._uids = {old.encode(): new.encode() for old, new in uids.items()}
        self._versions: dict[tuple[str, str, str, str], str] = {}
        self._in_flight = in_flight

    async def send_all(self) -> None:
        """Send all writes, each time the earliest write that need not wait. Raises HarnessError at the first write that
        is rejected."""
        waits = dependencies(self._writes)
        followers: list[list[int]] = [[] for _ in waits]
        for index, earlier_writes in enumerate(waits):
            for earlier in earlier_writes:
                followers[earlier].append(index)
        ready_writes: asyncio.PriorityQueue[int] = asyncio.PriorityQueue()
        for index, earlier_writes in enumerate(waits):
            if not earlier_writes:
                ready_writes.put_nowait(index)

        async def send_ready_writes() -> None:
            while True:
                index = await ready_writes.get()
                await self._send(self._writes[index])
                for follower in followers[index]:
                    waits[follower].discard(index)
                    if not waits[follower]:
                        ready_writes.put_nowait(follower)
                ready_writes.task_done()

        try:
            async with asyncio.TaskGroup() as group:
                senders = [group.create_task(send_ready_writes()) for _ in range(self._in_flight)]
                await ready_writes.join()
                for task in senders:
                    task.cancel()
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def _send(self, write: Write) -> None:
        body = prepare_body(write, self._uids, self._versions.get(write.target, ""))
        try:
            response = await self._client.request(
                METHODS[write.verb], write.uri, body=body, content_type=content_type(write)
            )
        except ApiError as error:
            raise HarnessError(f"the write floor could not repeat {write.verb} {write.resource}: {error}") from error
        metadata = orjson.loads(response).get("metadata") or {}
        self._versions[write.target] = metadata.get("resourceVersion", "")
        if write.uid:
            self._uids[write.uid.encode()] = metadata["uid"].encode()


def _account(body: bytes) -> str:
    name: str = (orjson.loads(body).get("spec") or {}).get("serviceAccountName", "")
    return name
