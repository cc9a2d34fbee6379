"""Watch a cluster from a separate thread and write every change to one log.

Start the recorder once the Grove CRDs are established: requests for a resource that is not served yet are retried with
increasing delays.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec

from conformance import credentials
from conformance.errors import HarnessError
from conformance.grove import labels
from conformance.grove.fields import decimal
from conformance.grove.kinds import (
    AUTOSCALERS,
    GROVE,
    LEASE,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SECONDARY_RESOURCES,
    SECRETS,
)
from conformance.history import redaction
from conformance.history.arrivals import Arrivals
from conformance.history.log import Completeness, Log
from conformance.history.record import ADDED, DELETED, MODIFIED, Record
from kube import config
from kube.client import METADATA_LIST, Client
from kube.errors import ApiError
from kube.objects import Envelope, Key, ObjectMeta, envelope
from kube.reflector import Reflector
from kube.resource import EVENTS, LEASES, NODES, PODS, SERVICES, Resource


class Watched(NamedTuple):
    """A resource to watch, with selectors if only some of its objects are relevant."""

    resource: Resource
    labels: str | None = None
    fields: str | None = None
    evidence: bool = False
    """Whether the resource is recorded only as evidence: its changes do not count as activity."""
    keep: Callable[[bytes], bytes] | None = None
    """Reduces an object to the part that is recorded; None to record all of it. The data of Secrets are never
    recorded."""


WATCHED: tuple[Watched, ...] = (
    *(Watched(resource) for resource in (*GROVE, PODS, SERVICES, NODES, EVENTS, AUTOSCALERS, RESOURCE_CLAIMS)),
    *(
        Watched(resource, labels.PART_OF)
        for resource in SECONDARY_RESOURCES
        if resource not in (AUTOSCALERS, RESOURCE_CLAIMS)
    ),
    Watched(RESOURCE_SLICES),
    Watched(LEASES, fields=f"metadata.name={LEASE}"),
)
"""The recorded resources. Autoscalers are recorded whatever their labels are, because they are identified by their
targets, and so are claims, because the control plane creates those of pods. The other secondary resources are selected
by label, because the control plane creates some of them for every namespace or Pod."""

RECORDED = tuple(
    watched.resource.plural
    for watched in WATCHED
    if watched.resource.namespaced and watched.resource not in (EVENTS, LEASES)
)
"""The namespaced resources that belong to sets. For some of them, only the objects of operators are recorded."""


UNLIMITED = 1 << 63
SLOW_FACTOR = 4
"""The factor by which the timeout is extended if the API server has refused no list: a machine that is busy with a
thousand pods delivers events late."""
ARRIVAL_SECONDS = 0.2
"""Seconds within which the events of all revisions must arrive; otherwise lists are compared. The time is halved after
each failure, because an implementation may keep writing resources that are not watched."""
TICK_SECONDS = 1.0
"""Seconds between two requests for the server's revision."""
REQUEST_ERRORS = (ApiError, aiohttp.ClientError, TimeoutError, OSError)
"""The errors of a request while the API server is unavailable."""


class Stopped(HarnessError):
    """The recorder was stopped. Its records are complete."""

    def __init__(self) -> None:
        super().__init__("the recorder has been stopped")


class Recorder(Log):
    """A log that records all namespaces of a cluster between `start` and `stop`."""

    def __init__(
        self,
        kubeconfig: Path | str | config.Connection,
        user_agent: str = "grove-conformance-recorder",
        watched: Sequence[Watched] = WATCHED,
        unrecorded: Sequence[Watched] | None = None,
    ) -> None:
        """`unrecorded`: the other resources that are often written on a cluster with a single etcd; they are watched so
        that the recorder can tell by the revisions that it has received everything. None: the cluster may have several
        etcds, and lists are compared each time."""
        super().__init__()
        self._kubeconfig, self._user_agent, self._watched = kubeconfig, user_agent, watched
        self.evidence = frozenset(watch.resource.plural for watch in watched if watch.evidence)
        self._feeds = [_Feed(self, resource, self.record_arrival) for resource in watched]
        self._unrecorded = unrecorded
        self._arrivals, self._arrival_event, self._failed_waits = Arrivals(), asyncio.Event(), 0
        self._complete_revision: int | None = None
        """The last revision up to which everything is known to have arrived."""
        self._thread = threading.Thread(target=self._run, name="history-recorder", daemon=True)
        self._connection: config.Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None

    def start(self, timeout: float = 60.0) -> None:
        """Start recording, and return when every watched resource has been listed. Raises HarnessError after `timeout`
        seconds, with the resources that could not be listed."""
        try:
            # Done in this thread, because it imports many modules, and two threads that import at the same time disturb
            # each other (Python 3.11).
            self._connection = config.load(self._kubeconfig)
        except Exception as error:  # the loader's exceptions are known only to kube.config
            raise HarnessError(
                f"the recorder cannot read its kubeconfig: {error}", where=str(self._kubeconfig)
            ) from error
        self._thread.start()
        for feed in self._feeds:
            if not feed.synced.wait(max(0.0, timeout - self.now())) or self._failure is not None:
                missing = ", ".join(str(feed.resource) for feed in self._feeds if not feed.synced.is_set())
                failure = self._failure
                self.stop()
                raise HarnessError(
                    f"the recorder could not list {missing or 'anything'}" + (f": {failure}" if failure else ""),
                    where=str(self._kubeconfig),
                    hint="are the Grove CRDs established, and does the API server answer?",
                )

    @property
    def thread_id(self) -> int | None:
        """Return the operating system's id of the recording thread, to measure the cost of recording."""
        return self._thread.native_id

    def stop(self) -> None:
        """Stop the watches. The records stay readable."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def complete(self, namespace: str, timeout: float) -> Completeness:
        """Implement `Log.complete`: wait for the events of all revisions; if some do not arrive, list each resource and
        wait until its watch has passed that list. On a cluster with one etcd, all namespaces are listed at once, so
        that the next namespace needs no list."""
        loop, client = self._loop, self._client
        if loop is None or client is None or not self._thread.is_alive():
            return self._final_completeness()

        async def catch_up() -> Completeness:
            has_one_etcd = self._unrecorded is not None
            if has_one_etcd and (revision := await self._wait_for_arrivals(client)) is not None:
                self._complete_revision = revision
                return Completeness(revision)
            # There are many Events, and they are only informative.
            feeds = [feed for feed in self._feeds if feed.resource != EVENTS]
            lists = (feed.pass_list(client, None if has_one_etcd else namespace) for feed in feeds)
            passing = dict(zip(map(asyncio.create_task, lists), feeds, strict=True))
            completed, pending = await asyncio.wait(passing, timeout=timeout)
            if pending and not any(passing[task].is_refused for task in pending):
                late_tasks, pending = await asyncio.wait(pending, timeout=(SLOW_FACTOR - 1) * timeout)
                completed |= late_tasks
            for task in pending:
                task.cancel()
            revision = min((task.result() for task in completed), default=0)
            if not pending and revision < UNLIMITED:
                self._complete_revision = revision
            return Completeness(revision, ", ".join(sorted(passing[task].lagging for task in pending)))

        try:
            return asyncio.run_coroutine_threadsafe(catch_up(), loop).result()
        except (
            CancelledError,
            RuntimeError,
        ):  # the recorder is stopping or has died: its loop may be closed
            self._thread.join(timeout=10)
            if self._thread.is_alive():
                raise
            return self._final_completeness()

    def record_arrival(self, version: str) -> None:
        """Record that the event with this resourceVersion has arrived. Call this method only in the recording
        thread."""
        if (revision := decimal(version)) is not None:
            self._arrivals.add(revision)
            self._arrival_event.set()

    async def _wait_for_arrivals(self, client: Client) -> int | None:
        """Return the current revision once the events of all revisions up to it have arrived. Return None if some do
        not arrive, or if lists have never been compared."""
        start_revision = self._complete_revision
        if start_revision is None:
            return None
        try:
            revision = (await self._feeds[0].read(client, limit=1)).revision
            async with asyncio.timeout(ARRIVAL_SECONDS / 2**self._failed_waits):
                while not self._arrivals.is_complete(start_revision, revision):
                    self._arrival_event.clear()
                    await self._arrival_event.wait()
        except REQUEST_ERRORS:
            self._failed_waits = min(self._failed_waits + 1, 10)
            return None
        self._failed_waits = 0
        return revision

    def _final_completeness(self) -> Completeness:
        """Report that the log is complete, because the recorder was stopped. Raises the recorder's error if it died."""
        if self._failure is not None and not isinstance(self._failure, Stopped):
            raise self._failure
        return Completeness()

    async def _track_revision(self, client: Client) -> None:
        """Request the server's revision once a second, to distinguish late records from late changes."""
        while True:
            with contextlib.suppress(*REQUEST_ERRORS):
                self.record_revision((await self._feeds[0].read(client, limit=1)).revision)
            await asyncio.sleep(TICK_SECONDS)

    def _run(self) -> None:
        connection = self._connection
        assert connection is not None

        async def record() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            async with (
                Client(connection, user_agent=self._user_agent) as client,
                asyncio.TaskGroup() as group,
            ):
                self._client = client
                group.create_task(self._track_revision(client))
                for feed, watched in zip(self._feeds, self._watched, strict=True):
                    reflector = Reflector(
                        client,
                        watched.resource,
                        envelope,
                        feed,
                        label_selector=watched.labels,
                        field_selector=watched.fields,
                    )
                    feed.reflector = reflector
                    group.create_task(reflector.run())
                for watched in self._unrecorded or ():
                    counting: Reflector[Envelope] = Reflector(
                        client,
                        watched.resource,
                        envelope,
                        _RevisionHandler(self.record_arrival),
                        label_selector=watched.labels,
                        field_selector=watched.fields,
                    )
                    group.create_task(counting.run())

        error: BaseException = Stopped()
        try:
            asyncio.run(record())
        except asyncio.CancelledError:
            pass
        except BaseException as cause:
            error = HarnessError(f"the recorder died: {cause!r}", where=str(self._kubeconfig))
            error.__cause__ = cause
        self.fail(error)
        for feed in self._feeds:
            feed.synced.set()


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = "0"


class _Item(msgspec.Struct):
    metadata: ObjectMeta


class _Metadata(msgspec.Struct):
    metadata: _ListMeta
    items: list[_Item] | None  # null if there are none

    @property
    def revision(self) -> int:
        return int(self.metadata.resource_version)


_listed = msgspec.json.Decoder(_Metadata)


class _Feed:
    """Turns the events of one reflector into records: one record for each change."""

    def __init__(
        self, log: Log, watched: Watched, record_arrival: Callable[[str], None] = lambda version: None
    ) -> None:
        """`record_arrival` is called with the resourceVersion of each watch event."""
        self.resource = watched.resource
        self._keep = redaction.record if self.resource == SECRETS else watched.keep
        self._selectors = {"labelSelector": watched.labels, "fieldSelector": watched.fields}
        self.synced = threading.Event()
        self.reflector: Reflector[Envelope] | None = None
        self._log, self._arrive = log, record_arrival
        self._stored: dict[Key, tuple[str, str]] = {}
        """UID and version of each object that exists."""
        self._change_event = asyncio.Event()
        self._refusal = ""
        """The API server's reason why the resource cannot be listed; empty if it can."""

    @property
    def is_refused(self) -> bool:
        """Return whether the API server has rejected the last list request for the resource."""
        return bool(self._refusal)

    @property
    def lagging(self) -> str:
        """Return the name of the resource for a message about lagging streams, with the API server's reason if there is
        one."""
        return f"{self.resource} ({self._refusal})" if self._refusal else str(self.resource)

    async def read(self, client: Client, namespace: str | None = None, limit: int = 0) -> _Metadata:
        """Read the metadata of the resource's list, without contents."""
        options = {**self._selectors, "limit": str(limit) if limit else None}
        params = {key: value for key, value in options.items() if value}
        path = self.resource.path(namespace)
        return _listed.decode(await client.request("GET", path, params=params, headers={"Accept": METADATA_LIST}))

    async def pass_list(self, client: Client, namespace: str | None) -> int:
        """Wait until the log has everything that a list of a namespace, or of all namespaces, shows now, and return the
        list's revision."""
        while True:
            try:
                current_list = await self.read(client, namespace)
                break
            except REQUEST_ERRORS as error:
                if isinstance(error, ApiError) and error.status == 404:
                    return UNLIMITED  # A resource that is not served has no objects whose events could be late.
                self._refusal = credentials.redact(str(error)) if isinstance(error, ApiError) else ""
                await asyncio.sleep(TICK_SECONDS)
        self._refusal = ""
        versions = {item.metadata.key: item.metadata.resource_version for item in current_list.items or ()}
        while self.reflector is not None and self.reflector.version < current_list.revision:
            stored = self._stored.items()
            spaces = None if namespace is None else ("", namespace)
            if versions == {key: version for key, (_, version) in stored if spaces is None or key[0] in spaces}:
                break
            self._change_event.clear()
            await self._change_event.wait()
        return current_list.revision

    def on_list(self, items: list[Envelope]) -> None:
        """Handle a complete list from the reflector: record its objects, and the deletion of all objects that are not
        in it."""
        present = {item.metadata.key: item.metadata.uid for item in items}
        deleted = [key for key, (uid, _) in self._stored.items() if present.get(key) != uid]
        last_records = self._log.last_of(self.resource.plural, deleted)
        for key in deleted:
            if key not in present:
                # The exact time of the deletion is not known; at the version of the list, the object was gone.
                _, version = self._stored[key]
                self._record_deletion(
                    key, str(self.reflector.version) if self.reflector else version, last_records.get(key)
                )
        for item in items:
            key = item.metadata.key
            stored = self._stored.get(key)
            if stored is not None and stored[0] != item.metadata.uid:
                self._record_deletion(key, stored[1], last_records.get(key))
                stored = None
            if stored is None or stored[1] != item.metadata.resource_version:
                self._append(ADDED if stored is None else MODIFIED, item, listed=True)
        self.synced.set()
        self._change_event.set()

    def on_event(self, kind: str, item: Envelope) -> None:
        """Handle a watch event from the reflector."""
        self._append(kind, item)
        self._arrive(item.metadata.resource_version)
        self._change_event.set()

    def _record_deletion(self, key: Key, version: str, last: Record | None) -> None:
        """Record the deletion of an object that is no longer in a list, with its last state. Objects whose records are
        not kept are skipped."""
        self._stored.pop(key)
        if last is not None:
            namespace, name = key
            self._log.append(
                DELETED,
                self.resource.plural,
                namespace=namespace,
                name=name,
                uid=last.uid,
                version=version,
                raw=last.raw,
                listed=True,
            )

    def _append(self, kind: str, item: Envelope, *, listed: bool = False) -> None:
        metadata = item.metadata
        if kind == DELETED:
            self._stored.pop(metadata.key, None)
        else:
            self._stored[metadata.key] = (metadata.uid, metadata.resource_version)
        self._log.append(
            kind,
            self.resource.plural,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            version=metadata.resource_version,
            raw=self._keep(item.raw) if self._keep else item.raw,
            listed=listed,
        )


class _RevisionHandler:
    """The handler of a resource that is not recorded. It only tracks the revisions of the resource's events."""

    def __init__(self, record_arrival: Callable[[str], None]) -> None:
        self._arrive = record_arrival

    def on_list(self, items: list[Envelope]) -> None:
        """Ignore a list."""

    def on_event(self, kind: str, item: Envelope) -> None:
        """Record the revision of a watch event."""
        self._arrive(item.metadata.resource_version)
