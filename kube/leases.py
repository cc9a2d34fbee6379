"""Leader election with a Lease, by the rules of client-go.

Only the local clock decides whether a leader is dead: a lease has expired when its record has not changed for the
duration in the record, counted from when this process first observed the record. Clocks of different machines are never
compared.

The decisions (`observe`, `can_acquire`, `claim`, `released_record`) are pure functions; `Elector` acts on them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from kube import errors
from kube.client import Client
from kube.errors import ApiError
from kube.resource import LEASES

log = logging.getLogger(__name__)
JITTER = 1.2
"""A waiting candidate retries after its retry period plus a random delay of at most this multiple of the period, as in
client-go."""
RELEASE_SECONDS = 2.0
"""The maximum time for releasing the lease on a clean stop. A lease that is not released expires."""


class LeadershipLost(Exception):
    """This process must no longer write. `str()` returns the reason in one line."""


@dataclass(frozen=True)
class LeaseTiming:
    """The timing of leader election, in seconds. `lease` is how long a leader that does not renew keeps the lease,
    `deadline` is how long a leader continues without a successful renewal, and `retry` is the interval between
    attempts."""

    lease: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0


@dataclass(frozen=True)
class Record:
    """The state of a Lease. `holder` is empty if there is no leader."""

    holder: str = ""
    seconds: int = 0
    acquired: str | None = None
    renewed: str | None = None
    transitions: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> Record:
        """Read the record of a Lease object."""
        spec = lease.get("spec") or {}
        return cls(
            spec.get("holderIdentity") or "",
            spec.get("leaseDurationSeconds") or 0,
            spec.get("acquireTime"),
            spec.get("renewTime"),
            spec.get("leaseTransitions") or 0,
        )

    def spec(self) -> dict[str, Any]:
        """Return the `spec` of a Lease with this record; an empty holder becomes None."""
        return {
            "holderIdentity": self.holder or None,
            "leaseDurationSeconds": self.seconds,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }


@dataclass(frozen=True)
class Observation:
    """A record, and the local time at which it was first observed."""

    record: Record
    first_seen: float


def observe(before: Observation | None, record: Record, now: float) -> Observation:
    """Return the observation after another read of the Lease, which is the previous observation if the record is
    unchanged."""
    return before if before is not None and before.record == record else Observation(record, now)


def can_acquire(observation: Observation, identity: str, terms: LeaseTiming, now: float) -> bool:
    """Return whether `identity` may acquire the Lease, because the Lease has no other holder or its holder is dead. For
    a record without a duration, the lease duration of `terms` applies."""
    record = observation.record
    return record.holder in ("", identity) or now >= observation.first_seen + (record.seconds or terms.lease)


def claim(record: Record | None, identity: str, terms: LeaseTiming, timestamp: str) -> Record:
    """Return the record that `identity` writes to become or stay the leader."""
    seconds = max(1, math.ceil(terms.lease))
    if record is None:
        return Record(identity, seconds, timestamp, timestamp)
    if record.holder == identity:
        return replace(record, seconds=seconds, renewed=timestamp)
    return Record(identity, seconds, timestamp, timestamp, record.transitions + 1)


def released_record(record: Record, timestamp: str) -> Record:
    """Return the record that releases the Lease, so that the next candidate can lead at once."""
    return Record("", 1, timestamp, timestamp, record.transitions)


class Elector:
    """One candidate for one Lease. It needs a separate client, because renewals must not queue behind other
    requests."""

    def __init__(self, client: Client, namespace: str, name: str, *, identity: str, terms: LeaseTiming) -> None:
        self._client, self._namespace, self._name = client, namespace, name
        self.identity, self.terms = identity, terms
        self._observation: Observation | None = None
        self._lease: dict[str, Any] | None = None
        self._leads_until = -math.inf

    @property
    def leads(self) -> bool:
        """Whether the last renewal is younger than the deadline."""
        return asyncio.get_running_loop().time() < self._leads_until

    def check(self) -> None:
        """Raise LeadershipLost unless this process leads. Call this before each write: a process that resumes after a
        suspension must not carry out its old plans."""
        if not self.leads:
            raise LeadershipLost(f"{self._description} is not held: writes are not allowed")

    async def acquire(self) -> None:
        """Wait until this process leads."""
        log.info("waiting for %s, identity %s", self._description, self.identity)
        while True:
            if await self._try_acquire():
                break
            await asyncio.sleep(self.terms.retry * (1 + random.random() * JITTER))
        log.info("leading: acquired %s", self._description)

    async def hold(self) -> None:
        """Renew the lease until cancelled. Raises LeadershipLost if no renewal succeeds within the deadline, or if
        another process holds the lease."""
        try:
            while True:
                await asyncio.sleep(self.terms.retry)
                await self._renew()
        except LeadershipLost:
            self._leads_until = -math.inf
            raise

    async def release(self) -> None:
        """Release the lease if this process holds it. Failures are only logged, since the lease expires anyway."""
        if not self.leads:
            return
        self._leads_until = -math.inf
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                while not await self._try_release():
                    pass
        except errors.REQUEST_FAILED as error:
            log.warning("cannot release %s: %s", self._description, error or type(error).__name__)

    async def _try_release(self) -> bool:
        """Try to release the lease. Return False if the Lease was changed at the same time, because a cancelled renewal
        may have been written or may still be written. Return True if the Lease is released or another process holds
        it."""
        content = await self._client.get_or_none(LEASES, self._namespace, self._name)
        self._lease = None if content is None else orjson.loads(content)
        if self._lease is None or (record := Record.of(self._lease)).holder != self.identity:
            return True
        try:
            await self._write(released_record(record, _now()))
        except ApiError as error:
            if error.conflict:
                return False
            raise
        log.info("released %s", self._description)
        return True

    @property
    def _description(self) -> str:
        return f"lease {self._namespace}/{self._name}"

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout_at(self._leads_until):
                while True:
                    if await self._try_acquire():
                        break
                    if self._observation is not None and self._observation.record.holder not in ("", self.identity):
                        raise LeadershipLost(f"{self._description} is held by {self._observation.record.holder}")
                    await asyncio.sleep(self.terms.retry)
        except TimeoutError:
            raise LeadershipLost(f"{self._description} was not renewed within {self.terms.deadline:g} s") from None

    async def _try_acquire(self) -> bool:
        """Try once to acquire or renew the lease. Return False if the attempt failed or another process holds the
        lease. If this process wrote the Lease last, update it without reading it first, and read it only after a
        conflict."""
        now = asyncio.get_running_loop().time
        started_at, read_first = now(), self._lease is None
        try:
            async with asyncio.timeout(self.terms.deadline):
                if self._lease is None:
                    content = await self._client.get_or_none(LEASES, self._namespace, self._name)
                    started_at = now()
                    if content is not None:
                        self._lease = orjson.loads(content)
                if self._lease is None:
                    await self._write(claim(None, self.identity, self.terms, _now()))
                else:
                    self._observation = observe(self._observation, Record.of(self._lease), now())
                    if not can_acquire(self._observation, self.identity, self.terms, now()):
                        self._lease = None
                        return False
                    await self._write(claim(self._observation.record, self.identity, self.terms, _now()))
        except errors.REQUEST_FAILED as error:
            self._lease = None
            if isinstance(error, ApiError) and (error.conflict or error.already_exists):
                return not read_first and await self._try_acquire()
            log.warning("%s: %s", self._description, error or type(error).__name__)
            return False
        self._leads_until = started_at + self.terms.deadline
        return True

    async def _write(self, record: Record) -> None:
        """Write the record to the Lease, based on the state that was read. Raises ApiError (a conflict) if the Lease
        has changed since."""
        if self._lease is None:
            metadata = {"namespace": self._namespace, "name": self._name}
            body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": record.spec()}
            answer = await self._client.create(LEASES, body)
        else:
            body = {**self._lease, "spec": {**(self._lease.get("spec") or {}), **record.spec()}}
            answer = await self._client.replace(LEASES, body)
        self._lease = orjson.loads(answer)
        self._observation = observe(self._observation, Record.of(self._lease), asyncio.get_running_loop().time())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
