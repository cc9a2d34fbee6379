"""A work queue for reconcilers: each key is processed by one worker at a time, even if it is added repeatedly in the
meantime."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from time import perf_counter
from typing import Generic, Literal, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

Outcome = Literal["success", "requeue_after", "error"]

PROGRAMMING_ERRORS = (LookupError, TypeError, AttributeError, AssertionError)
"""Exceptions that mean errors in the code. Their messages are of little use without a traceback. For example, the
message of a KeyError is only the key."""


class Meter(Protocol):
    """Receives the measurements of a queue. All methods are on the hot path."""

    def on_add(self) -> None:
        """A key was added."""

    def on_take(self, seconds: float) -> None:
        """A worker took a key that had waited for `seconds`."""

    def on_retry(self) -> None:
        """A key is retried because its reconcile failed."""

    def on_done(self, seconds: float, outcome: Outcome) -> None:
        """A reconcile ended after `seconds`."""


class Closed(Exception):
    """The queue is closed."""


class WorkQueue(Generic[K]):
    """Keys to be reconciled, without duplicates. A key that is added while it is being processed is handed out again
    afterwards.

    `settle` is a delay in seconds before a newly added key is handed out, so that a burst of events costs one
    reconcile.
    """

    def __init__(
        self,
        *,
        settle: float = 0.0,
        first_retry: float = 0.01,
        retry_cap: float = 30.0,
        meter: Meter | None = None,
    ) -> None:
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._working: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._settle, self._first_retry, self._retry_cap = settle, first_retry, retry_cap
        self.meter = meter
        self._added_at: dict[K, float] = {}
        self._closed = False

    def close(self) -> None:
        """Stop handing out keys. From now on, `take` raises Closed, even in workers that are waiting."""
        self._closed = True
        while self._waiters:
            self._wake_one()

    def add(self, key: K) -> None:
        """Add a key, to be handed out after the settle time."""
        if self._settle:
            self.add_after(key, self._settle)
        else:
            self._add_now(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key after a delay; the earliest of several delays applies."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._on_timer, key)

    def retry(self, key: K) -> None:
        """Add a key whose reconcile failed, after a delay that grows with each consecutive failure."""
        if self.meter is not None:
            self.meter.on_retry()
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, min(self._retry_cap, self._first_retry * 2 ** min(failures - 1, 30)))

    def forget(self, key: K) -> None:
        """Reset the count of consecutive failures of a key."""
        self._failures.pop(key, None)

    async def take(self) -> K:
        """Return the next key. The caller must call `done` for it. Raises Closed if the queue is closed."""
        while not self._ready and not self._closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # A worker that is cancelled after its wake-up and before it takes a key wakes another worker, or the
                # key would never be taken.
                if waiter.done() and not waiter.cancelled() and self._ready:
                    self._wake_one()
                raise
        if self._closed:
            raise Closed
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._working.add(key)
        if self.meter is not None:
            timestamp = perf_counter()
            self.meter.on_take(timestamp - self._added_at.pop(key, timestamp))
        return key

    def done(self, key: K) -> None:
        """Finish the work on a key. Raises KeyError if no worker holds the key, because a second `done` could hand out
        a waiting key to two workers."""
        self._working.remove(key)
        if key in self._dirty:
            self._hand_out(key)

    def __len__(self) -> int:
        """Return the number of keys that can be taken now, excluding keys in their settle time and keys that are being
        processed."""
        return len(self._ready)

    def is_idle(self, seconds: float = 0.0) -> bool:
        """Return whether no key is being processed or waiting to be, and no key becomes due within `seconds`."""
        horizon = asyncio.get_running_loop().time() + seconds
        return not self._working and not self._dirty and all(t.when() > horizon for t in self._timers.values())

    def _on_timer(self, key: K) -> None:
        self._timers.pop(key, None)
        self._add_now(key)

    def _add_now(self, key: K) -> None:
        if key in self._dirty:
            return
        self._dirty.add(key)
        if self.meter is not None:
            self._added_at[key] = perf_counter()
            self.meter.on_add()
        if key not in self._working:
            self._hand_out(key)

    def _hand_out(self, key: K) -> None:
        self._ready.append(key)
        self._wake_one()

    def _wake_one(self) -> None:
        """Wake one waiting worker."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break


async def work(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[float | None]], workers: int) -> None:
    """Run `reconcile` for the keys of a queue with `workers` workers, until cancelled, or until the queue is closed and
    the last reconcile has ended.

    If a reconcile returns a number, the key is added again after that many seconds; if it raises, the key is retried
    with back-off.
    """

    async def worker() -> None:
        while True:
            try:
                key = await queue.take()
            except Closed:
                return
            started_at = perf_counter()
            outcome: Outcome = "error"
            try:
                delay = await reconcile(key)
            except Exception as error:
                with_traceback = isinstance(error, PROGRAMMING_ERRORS) or log.isEnabledFor(logging.DEBUG)
                log.warning("%s: %s", key, error, exc_info=with_traceback)
                queue.retry(key)
            else:
                queue.forget(key)
                outcome = "success"
                if delay is not None:
                    queue.add_after(key, delay)
                    outcome = "requeue_after"
            finally:
                queue.done(key)
                if queue.meter is not None:
                    queue.meter.on_done(perf_counter() - started_at, outcome)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())
