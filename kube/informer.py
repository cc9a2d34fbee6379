"""An informer cache: the current, indexed state of one collection, with handlers that are called once for each
change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Generic, TypeVar

import msgspec

from kube.client import Client
from kube.objects import Key, Object
from kube.reflector import INACTIVITY_SECONDS, Reflector
from kube.resource import Resource

T = TypeVar("T", bound=Object)

Handler = Callable[[str, T | None, T], None]
"""Called with ADDED, MODIFIED or DELETED, the previous object (None for ADDED) and the current object (for DELETED, its
last known state). Called in the event loop; must not block."""

IndexFunction = Callable[[T], Iterable[str]]


def version(item: Object) -> int:
    """Return the resource version as a number. Kubernetes 1.35 and later document that the versions of one resource can
    be compared as numbers."""
    return int(item.metadata.resource_version)


def typed_decoder(model: type[T]) -> Callable[[msgspec.Raw | bytes], T]:
    """Return a decoder for `Informer` that keeps only the fields of a msgspec struct."""
    return msgspec.json.Decoder(model).decode


def _mark_deleted(item: Object) -> None:
    if item.metadata.deletion_timestamp is None:
        item.metadata.deletion_timestamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Informer(Generic[T]):
    """A local copy of one collection. Reads are cheap, and may lag behind the API server by some milliseconds."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        decode: Callable[[msgspec.Raw | bytes], T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        inactivity: float = INACTIVITY_SECONDS,
    ) -> None:
        self.resource = resource
        self.decode = decode
        self._items: dict[Key, T] = {}
        self._terminating_uids: set[str] = set()
        self._handlers: list[Handler[T]] = []
        self._index_functions: dict[str, IndexFunction[T]] = {}
        self._indices: dict[str, dict[str, dict[Key, T]]] = {}
        self._indexed_values: dict[str, dict[Key, tuple[str, ...]]] = {}
        self._synced = asyncio.Event()
        self._reflector = Reflector(
            client,
            resource,
            decode,
            self,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            inactivity=inactivity,
        )

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        await self._reflector.run()

    async def wait_until_synced(self) -> None:
        """Wait until the first list has been stored and its handlers have run."""
        await self._synced.wait()

    async def catch_up(self) -> None:
        """List the collection and store every item that is newer than the cache, without waiting for the watch. Raises
        ApiError if the request is refused, and aiohttp.ClientError or TimeoutError if it gets no response."""
        items, _ = await self._reflector.read()
        for item in items:
            self.observe(item)

    def add_handler(self, handler: Handler[T]) -> None:
        """Add a handler. Call this before `run`."""
        self._handlers.append(handler)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Index every object under each of the strings that `function` returns for it. Call this before `run`."""
        self._index_functions[name] = function
        self._indices[name] = {}
        self._indexed_values[name] = {}

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object with this name, or None."""
        return self._items.get((namespace, name))

    def indexed(self, index: str, value: str) -> list[T]:
        """Return the objects under `value` in `index`, in no particular order."""
        return list(self._indices[index].get(value, {}).values())

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)

    def on_list(self, items: list[T]) -> None:
        """Store a complete list and call the handlers for the differences."""
        listed_keys = {item.metadata.key for item in items}
        for key, old in list(self._items.items()):
            # An object that one of our own writes returned may be newer than the list.
            if key not in listed_keys and version(old) <= self._reflector.version:
                self._set("DELETED", key, old, old)
        for item in items:
            self.on_event("MODIFIED", item)
        self._synced.set()

    def observe(self, item: T) -> None:
        """Store the object that one of our own writes returned, so that the cache shows the write at once and nothing
        is done twice. Ignore an object that is not newer than the last version from the watch, because the object may
        have been deleted since."""
        if version(item) > self._reflector.version:
            self.on_event("MODIFIED", item)

    def observe_deletion(self, item: T) -> None:
        """Record that the API server has accepted our deletion of the object with this UID. From now on the object
        counts as terminating, even while the watch still delivers older states."""
        stored = self._items.get(item.metadata.key)
        if stored is not None and stored.metadata.uid == item.metadata.uid:
            self._terminating_uids.add(item.metadata.uid)
            _mark_deleted(stored)
            self._index(stored)

    def on_event(self, kind: str, item: T) -> None:
        """Store one watch event. If the object was recreated under the same name, report a deletion and an addition.
        Ignore a state that is older than the stored one (C-25)."""
        key = item.metadata.key
        stored = self._items.get(key)
        if kind == "DELETED":
            # If the deleted object was never seen, its older namesake must have been deleted before it.
            if stored is not None and version(item) >= version(stored):
                self._set("DELETED", key, stored, item if item.metadata.uid == stored.metadata.uid else stored)
            return
        if stored is not None and version(item) <= version(stored):
            return
        if stored is not None and stored.metadata.uid != item.metadata.uid:
            self._set("DELETED", key, stored, stored)
            stored = None
        self._set("ADDED" if stored is None else "MODIFIED", key, stored, item)

    def _set(self, event_type: str, key: Key, old: T | None, item: T) -> None:
        if item.metadata.uid in self._terminating_uids:
            _mark_deleted(item)
            if event_type == "DELETED":
                self._terminating_uids.discard(item.metadata.uid)
        self._index(item, deleted=event_type == "DELETED")
        if event_type == "DELETED":
            self._items.pop(key, None)
        else:
            self._items[key] = item
        for handler in self._handlers:
            handler(event_type, old, item)

    def _index(self, item: T, *, deleted: bool = False) -> None:
        """Index an object under its current values. The former values are remembered and not computed from the former
        object, because it may have been mutated since."""
        key = item.metadata.key
        for name, function in self._index_functions.items():
            index, indexed_values = self._indices[name], self._indexed_values[name]
            values = () if deleted else tuple(function(item))
            for value in indexed_values.pop(key, ()):
                bucket = index.get(value)
                if bucket is not None and value not in values:
                    bucket.pop(key, None)
                    if not bucket:
                        del index[value]
            for value in values:
                index.setdefault(value, {})[key] = item
            if values:
                indexed_values[key] = values
