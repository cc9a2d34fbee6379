"""An in-memory API server for an operator in the same process.

The server supports create, patch, delete with finalizers and owners, list and watch. It starts pods as soon as their
gates are removed, and validates nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from bisect import bisect
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, TypeVar

import orjson

from kube.client import Client
from kube.errors import ApiError

T = TypeVar("T")
Object = dict[str, Any]
Address = tuple[str, str, str]
"""Plural, namespace and name."""
NEVER_READY = "never-ready"
"""The annotation of pods that never become Ready."""
LEAVING_SECONDS = 0.01


class SmallApi:
    """The objects of the API server, and the watches on them."""

    def __init__(self) -> None:
        self.objects: dict[Address, Object] = {}
        self.writes: list[tuple[str, Address]] = []
        self.history: list[tuple[str, str, Object]] = []
        """Plural, event type and object of each event, in order."""
        self.held_back = False
        """Whether pods are left unscheduled."""
        self.collects_after = 0.0
        """The time, in seconds, after which the garbage collector deletes the dependents of a deleted object."""
        self.collects = True
        """Whether the garbage collector runs."""
        self._uncollected: list[str] = []
        self._versions = itertools.count(1)
        self._version = 0
        self._events: dict[str, list[tuple[int, bytes, Object]]] = {}
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watches: dict[object, tuple[str, int]] = {}
        """The plural of each watch, and the last version that its reader has processed."""

    def all(self, plural: str) -> list[Object]:
        return [item for (kind, _, _), item in self.objects.items() if kind == plural]

    def get(self, plural: str, name: str, namespace: str = "ns") -> Object | None:
        return self.objects.get((plural, namespace, name))

    # -- writes

    async def create(self, plural: str, namespace: str, body: Object) -> Object:
        item = _copy(body)
        meta = item["metadata"]
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        address = plural, namespace, meta["name"]
        if address in self.objects:
            raise refused(409, "AlreadyExists")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        meta |= {"uid": uuid.uuid4().hex, "creationTimestamp": now, "generation": 1, "namespace": namespace}
        if plural == "pods":
            item["status"] = {"phase": "Pending"}
        else:
            item.pop("status", None)
        self.objects[address] = item
        await self._publish("ADDED", address)
        return item

    async def restored(self, plural: str, body: Object) -> None:
        """Create an object as restored from a backup. It has a new UID and no status and, unless it is a set, a
        creation time two seconds from now."""
        fields = {key: value for key, value in body.items() if key != "status"}
        created = await self.create(plural, body["metadata"]["namespace"], fields)
        later = datetime.now(UTC) + timedelta(seconds=0 if plural == "podcliquesets" else 2)
        created["metadata"]["creationTimestamp"] = later.strftime("%Y-%m-%dT%H:%M:%SZ")

    async def patch(self, address: Address, body: Any, content_type: str, status: bool) -> Object:
        old = self.objects.get(address)
        if old is None:
            raise refused(404, "NotFound")
        new = _copy(old)
        if isinstance(body, list):
            _json_patch(new, body)
        else:
            new_metadata = body.get("metadata", {})
            for field in ("uid", "resourceVersion"):
                if field in new_metadata and new_metadata[field] != old["metadata"][field]:
                    raise refused(409, "Conflict")
            if content_type.startswith("application/strategic"):
                _strategic(new, body)
            else:
                _merge(
                    new, {"status": body.get("status")} if status else {k: v for k, v in body.items() if k != "status"}
                )
        _prune(new)
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        self.objects[address] = new
        await self._publish("MODIFIED", address)
        if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
            await self._remove(address)
        return new

    async def delete(self, address: Address, uid: str | None = None) -> None:
        item = self.objects.get(address)
        if item is None:
            raise refused(404, "NotFound")
        if uid is not None and item["metadata"]["uid"] != uid:
            raise refused(409, "Conflict")
        if "deletionTimestamp" in item["metadata"]:
            return
        if item["metadata"].get("finalizers") or address[0] == "pods":
            item = self.objects[address] = _copy(item)
            item["metadata"]["deletionTimestamp"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            await self._publish("MODIFIED", address)
            if address[0] == "pods":
                self._start_task(self._leave(address))
        else:
            await self._remove(address)

    async def finish(self, write: Coroutine[Any, Any, T]) -> T:
        """Return the response to a write. A client that disconnects in the meantime undoes neither the write nor its
        consequences."""
        return await asyncio.shield(self._start_task(write))

    def _start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        self._tasks.add(task := asyncio.create_task(work))
        task.add_done_callback(self._tasks.discard)
        return task

    async def _leave(self, address: Address) -> None:
        """Remove a pod that is being deleted, as a kubelet does, even if the client that deleted it has exited."""
        await asyncio.sleep(LEAVING_SECONDS)
        await self._remove(address)

    async def _remove(self, address: Address) -> None:
        item = self.objects.get(address)
        if item is None:
            return
        await self._publish("DELETED", address)
        self.objects.pop(address, None)
        if not self.collects:
            self._uncollected.append(item["metadata"]["uid"])
        elif self.collects_after:
            self._start_task(self._collect(item["metadata"]["uid"], self.collects_after))
        else:
            await self._collect(item["metadata"]["uid"])

    async def collect_again(self) -> None:
        """Resume the garbage collector, and delete the objects that it has missed."""
        self.collects, missed_uids, self._uncollected = True, self._uncollected, []
        for uid in missed_uids:
            await self._collect(uid)

    async def _collect(self, uid: str, delay: float = 0.0) -> None:
        """Delete the dependents of the object with this UID, as the garbage collector does after the object has been
        removed."""
        await asyncio.sleep(delay)
        for other, item in list(self.objects.items()):
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences", ())):
                await self.delete(other)

    async def _publish(self, kind: str, address: Address) -> None:
        item, self._version = self.objects[address], next(self._versions)
        item["metadata"]["resourceVersion"] = str(self._version)
        line = orjson.dumps({"type": kind, "object": item}) + b"\n"
        stored = orjson.loads(line)["object"]
        self._events.setdefault(address[0], []).append((self._version, line, stored))
        self.writes.append((kind, address))
        self.history.append((address[0], kind, stored))
        async with self._news:
            self._news.notify_all()

    # -- reads

    def listed(self, plural: str, selector: str) -> Object:
        items = [item for item in self.all(plural) if _selected(item, selector)]
        return {"items": items, "metadata": {"resourceVersion": str(self._version)}}

    async def watch(self, plural: str, start: int, selector: str) -> AsyncIterator[bytes]:
        events, version, watch_id = self._events.setdefault(plural, []), start, object()
        next_index = bisect(events, start, key=itemgetter(0))
        selected = {item["metadata"]["name"]: _selected(item, selector) for _, _, item in events[:next_index]}
        try:
            while True:
                self._watches[watch_id] = plural, version
                while next_index < len(events):
                    version, line, item = events[next_index]
                    next_index += 1
                    name = item["metadata"]["name"]
                    was_selected, selected[name] = selected.get(name, False), _selected(item, selector)
                    if selected[name]:
                        yield line
                    elif was_selected:  # an object that no longer matches the selector looks deleted
                        yield orjson.dumps({"type": "DELETED", "object": item}) + b"\n"
                async with self._news:
                    if next_index == len(events):
                        self._watches[watch_id] = plural, version
                        await self._news.wait()
        finally:
            del self._watches[watch_id]

    def all_seen(self) -> bool:
        """Return whether the readers of all watches have processed every event."""
        newest = {plural: events[-1][0] for plural, events in self._events.items() if events}
        return all(newest.get(plural, 0) <= version for plural, version in self._watches.values())

    # -- scheduler and kubelets

    async def run_pods(self) -> None:
        """Bind pods without gates, and make them Ready shortly afterwards."""
        while True:
            for address, pod in list(self.objects.items()):
                if self._starts(address, pod):
                    if not pod["spec"].get("nodeName"):
                        await self.patch(address, {"spec": {"nodeName": "node"}}, "merge", False)
                    else:
                        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                        await self.patch(address, {"status": ready}, "merge", True)
            await asyncio.sleep(0.01)

    def _starts(self, address: Address, pod: Object) -> bool:
        """Return whether the object is a pod that can be bound, or that is bound and can become Ready."""
        if address[0] != "pods" or pod["spec"].get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
            return False
        if not pod["spec"].get("nodeName"):
            return not self.held_back
        return not pod["status"].get("conditions") and NEVER_READY not in (pod["metadata"].get("annotations") or {})

    def pods_started(self) -> bool:
        """Return whether no pod can still be bound or become Ready, and no pod is being deleted."""
        pods = [(address, item) for address, item in self.objects.items() if address[0] == "pods"]
        return not any(self._starts(*pod) or "deletionTimestamp" in pod[1]["metadata"] for pod in pods)


class SmallClient(Client):
    """A client of an in-memory API server."""

    def __init__(self, api: SmallApi) -> None:
        self._api = api
        self.before_write = self.on_answer = None

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        plural, namespace, name, subresource = _parts(path)
        params, body = options.get("params") or {}, options.get("body")
        await asyncio.sleep(0)
        if method == "GET" and not name:
            return orjson.dumps(self._api.listed(plural, params.get("labelSelector", "")))
        address = plural, namespace, name
        if method == "GET":
            current = self._api.objects.get(address)
            if current is None:
                raise refused(404, "NotFound")
            return orjson.dumps(current)
        body = orjson.loads(orjson.dumps(body))
        if method == "POST":
            return orjson.dumps(await self._api.finish(self._api.create(plural, namespace, body)))
        if method == "PATCH":
            kind = options.get("content_type", "")
            patch = self._api.patch(address, body, kind, subresource == "status")
            return orjson.dumps(await self._api.finish(patch))
        await self._api.finish(self._api.delete(address, (body.get("preconditions") or {}).get("uid")))
        return b"{}"

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[Any]:
        plural = _parts(path)[0]

        lines = self._api.watch(plural, int(params["resourceVersion"]), params.get("labelSelector", ""))
        yield SimpleNamespace(iter_any=lambda: lines)


def refused(status: int, reason: str) -> ApiError:
    return ApiError.of(
        status, orjson.dumps({"kind": "Status", "code": status, "reason": reason, "message": reason}), None
    )


def _parts(path: str) -> tuple[str, str, str, str]:
    """Return the plural, namespace, name and subresource of a request path."""
    words = path.strip("/").split("/")
    remaining_words = words[2:] if words[0] == "api" else words[3:]
    namespace = ""
    if remaining_words[0] == "namespaces" and len(remaining_words) > 2:
        namespace, remaining_words = remaining_words[1], remaining_words[2:]
    return (remaining_words[0], namespace, *[*remaining_words[1:], "", ""][:2])  # type: ignore[return-value]


def _selected(item: Object, selector: str) -> bool:
    tags = item["metadata"].get("labels") or {}
    return all(_meets(tags, part) for part in selector.split(",") if part)


def _meets(tags: Mapping[str, str], term: str) -> bool:
    """Return whether labels match the term `key=value`, `key!=value` or `key`."""
    key, unequal, other = term.partition("!=")
    if unequal:
        return tags.get(key) != other
    key, equal, value = term.partition("=")
    return tags.get(key) == value if equal else key in tags


def _merge(old: Object, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict):
            if not isinstance(old.get(key), dict):
                old[key] = {}
            _merge(old[key], value)
        elif value is None:
            old.pop(key, None)
        else:
            old[key] = value


def _strategic(old: Object, patch: Object) -> None:
    removed = {gate["name"] for gate in patch["spec"]["schedulingGates"] if gate.get("$patch") == "delete"}
    old["spec"]["schedulingGates"] = [gate for gate in old["spec"]["schedulingGates"] if gate["name"] not in removed]


def _json_patch(item: Object, operations: list[Object]) -> None:
    for operation in operations:
        *path_steps, last_step = [part.replace("~1", "/") for part in operation["path"].strip("/").split("/")]
        parent: Any = item
        for part in path_steps:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        key = int(last_step) if isinstance(parent, list) else last_step
        match operation["op"]:
            case "test":
                if parent[key] != operation["value"]:
                    raise refused(422, "Invalid")
            case "remove":
                del parent[key]
            case "add":
                parent[key] = operation["value"]


def _copy(item: Object) -> Object:
    """Return a copy of a JSON object, many times faster than `copy.deepcopy`."""
    copied: Object = orjson.loads(orjson.dumps(item))
    return copied


def _prune(value: Any) -> None:
    """Remove nulls, as the API server does with fields that are not nullable."""
    if isinstance(value, dict):
        for key in [key for key, inner in value.items() if inner is None]:
            del value[key]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _prune(inner)
