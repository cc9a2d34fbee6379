"""Watches a cluster from a thread of its own and writes everything it sees into one log.

Start it once the Grove CRDs are established: a resource that isn't served yet is asked for again with growing pauses.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from conformance.errors import HarnessError
from conformance.grove import labels
from conformance.grove.kinds import ATTENDANTS, GROVE, LEASE
from conformance.history.log import Log
from conformance.history.record import ADDED, DELETED, MODIFIED
from kube import config
from kube.client import Client
from kube.objects import Envelope, Key, envelope
from kube.reflector import Reflector
from kube.resource import EVENTS, LEASES, NODES, PODS, SERVICES, Resource


class Watched(NamedTuple):
    """A resource, with selectors where not all of its objects are of interest."""

    resource: Resource
    labels: str | None = None
    fields: str | None = None


WATCHED: tuple[Watched, ...] = (
    *(Watched(resource) for resource in (*GROVE, PODS, SERVICES, NODES, EVENTS)),
    *(Watched(resource, labels.PART_OF) for resource in ATTENDANTS),
    Watched(LEASES, fields=f"metadata.name={LEASE}"),
)
"""What is recorded."""

RECORDED = tuple(
    watched.resource.plural
    for watched in WATCHED
    if watched.resource.namespaced and watched.resource not in (EVENTS, LEASES)
)
"""The namespaced resources that sets become (of some only an operator's objects are recorded)."""


class Recorder(Log):
    """A log that fills itself from all namespaces of a cluster, between `start` and `stop`."""

    def __init__(
        self,
        kubeconfig: Path | str,
        user_agent: str = "grove-conformance-recorder",
        watched: Sequence[Watched] = WATCHED,
    ) -> None:
        super().__init__()
        self._kubeconfig, self._user_agent, self._watched = kubeconfig, user_agent, watched
        self._feeds = [_Feed(self, each.resource) for each in watched]
        self._thread = threading.Thread(target=self._run, name="history-recorder", daemon=True)
        self._connection: config.Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, timeout: float = 60.0) -> None:
        """Returns when every watched resource has been listed. Raises HarnessError after `timeout` seconds, naming
        the resources that could not be."""
        try:
            # In this thread: it imports much, and two threads that import at a time compile over each other (3.11).
            self._connection = config.load(self._kubeconfig)
        except Exception as error:  # the loader has exceptions of its own, which only kube.config knows
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
                    mend="are the Grove CRDs established, and does the API server answer?",
                )

    def stop(self) -> None:
        """Ends the watches; what was recorded stays readable."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        connection = self._connection
        assert connection is not None

        async def record() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            async with (
                Client(connection, user_agent=self._user_agent) as client,
                asyncio.TaskGroup() as group,
            ):
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

        error: BaseException = HarnessError("the recorder has been stopped")
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


class _Feed:
    """Turns what one reflector says into records, each change once."""

    def __init__(self, log: Log, resource: Resource) -> None:
        self.resource = resource
        self.synced = threading.Event()
        self.reflector: Reflector[Envelope] | None = None
        self._log = log
        self._known: dict[Key, Envelope] = {}

    def replaced(self, items: list[Envelope]) -> None:
        present = {item.metadata.key for item in items}
        for key, old in list(self._known.items()):
            if key not in present:
                # When exactly it went is not known; it was gone at the version of the list.
                self._take(DELETED, old, version=str(self.reflector.version) if self.reflector else None, listed=True)
        for item in items:
            known = self._known.get(item.metadata.key)
            if known is not None and known.metadata.uid != item.metadata.uid:
                self._take(DELETED, known, listed=True)
                known = None
            if known is None or known.metadata.resource_version != item.metadata.resource_version:
                self._take(ADDED if known is None else MODIFIED, item, listed=True)
        self.synced.set()

    def changed(self, kind: str, item: Envelope) -> None:
        self._take(kind, item)

    def _take(self, kind: str, item: Envelope, *, version: str | None = None, listed: bool = False) -> None:
        metadata = item.metadata
        if kind == DELETED:
            self._known.pop(metadata.key, None)
        else:
            self._known[metadata.key] = item
        self._log.append(
            kind,
            self.resource.plural,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            version=version or metadata.resource_version,
            raw=item.raw,
            listed=listed,
        )
