"""Leader election over a Lease, by the rules of client-go.

Whether a leader is dead is told by the local clock alone: its lease has run out when its record has not changed for as
long as the record says, counted from when that was first seen here. Clocks of other machines are never compared.

The decisions (`seen`, `free`, `claim`, `released`) are pure; `Elector` acts on them.
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

from kube.client import Client
from kube.errors import REQUEST_FAILED, ApiError
from kube.resource import LEASES

log = logging.getLogger(__name__)
JITTER = 1.2
"""A waiting candidate looks again after its retry period and up to this much of it more, as client-go does."""
RELEASE_SECONDS = 2.0
"""How long a clean stop may take to give the lease back; after that it runs out by itself."""


class LeadershipLost(Exception):
    """This process must not write any more; `str()` is one line that says why."""


@dataclass(frozen=True)
class Terms:
    """Seconds. `lease`: how long a leader that says nothing is left alone; `deadline`: how long one goes on without a
    successful renewal; `retry`: between two tries."""

    lease: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0


@dataclass(frozen=True)
class Record:
    """What a Lease says. `holder` is empty where nobody leads."""

    holder: str = ""
    seconds: int = 0
    acquired: str | None = None
    renewed: str | None = None
    transitions: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> Record:
        spec = lease.get("spec") or {}
        return cls(
            spec.get("holderIdentity") or "",
            spec.get("leaseDurationSeconds") or 0,
            spec.get("acquireTime"),
            spec.get("renewTime"),
            spec.get("leaseTransitions") or 0,
        )

    def spec(self) -> dict[str, Any]:
        """As the Lease has it; an empty holder is None."""
        return {
            "holderIdentity": self.holder or None,
            "leaseDurationSeconds": self.seconds,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }


@dataclass(frozen=True)
class Sight:
    """A record, and the local time at which it was first seen so."""

    record: Record
    since: float


def seen(before: Sight | None, record: Record, now: float) -> Sight:
    """What is known after a look at the Lease."""
    return before if before is not None and before.record == record else Sight(record, now)


def free(sight: Sight, identity: str, terms: Terms, now: float) -> bool:
    """Whether `identity` may write itself into the Lease: nobody else has it, or its holder is dead. A record that
    says no duration is given that of our own terms."""
    record = sight.record
    return record.holder in ("", identity) or now >= sight.since + (record.seconds or terms.lease)


def claim(record: Record | None, identity: str, terms: Terms, timestamp: str) -> Record:
    """What to write to become the leader, or to stay it."""
    seconds = max(1, math.ceil(terms.lease))
    if record is None:
        return Record(identity, seconds, timestamp, timestamp)
    if record.holder == identity:
        return replace(record, seconds=seconds, renewed=timestamp)
    return Record(identity, seconds, timestamp, timestamp, record.transitions + 1)


def released(record: Record, timestamp: str) -> Record:
    """What to write to let the next one lead at once."""
    return Record("", 1, timestamp, timestamp, record.transitions)


class Elector:
    """One candidate for one Lease. Give it a client of its own: renewals must not queue behind other requests."""

    def __init__(self, client: Client, namespace: str, name: str, *, identity: str, terms: Terms) -> None:
        self._client, self._namespace, self._name = client, namespace, name
        self.identity, self.terms = identity, terms
        self._sight: Sight | None = None
        self._lease: dict[str, Any] | None = None
        self._until = -math.inf

    @property
    def leads(self) -> bool:
        """Whether the last renewal is younger than the deadline."""
        return asyncio.get_running_loop().time() < self._until

    def check(self) -> None:
        """Raises LeadershipLost unless this process leads. To be asked before each write: a process that was stopped
        for a while and goes on must not write what it had in mind."""
        if not self.leads:
            raise LeadershipLost(f"{self._place} is not ours: nothing may be written")

    async def acquire(self) -> None:
        """Returns once this process leads."""
        log.info("waiting for %s as %s", self._place, self.identity)
        while True:
            if await self._try():
                break
            await asyncio.sleep(self.terms.retry * (1 + random.random() * JITTER))
        log.info("leading: %s is ours", self._place)

    async def hold(self) -> None:
        """Renews the lease until cancelled. Raises LeadershipLost when that has not succeeded within the deadline, or
        when somebody else has the lease."""
        try:
            while True:
                await asyncio.sleep(self.terms.retry)
                await self._renew()
        except LeadershipLost:
            self._until = -math.inf
            raise

    async def release(self) -> None:
        """Gives the lease back, if it is ours. What goes wrong is only logged: it runs out by itself."""
        if not self.leads or self._lease is None:
            return
        self._until = -math.inf
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._write(released(Record.of(self._lease), _now()))
        except REQUEST_FAILED as error:
            log.warning("%s could not be released: %s", self._place, error or type(error).__name__)
        else:
            log.info("released %s", self._place)

    @property
    def _place(self) -> str:
        return f"lease {self._namespace}/{self._name}"

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout_at(self._until):
                while True:
                    if await self._try():
                        break
                    if self._sight is not None and self._sight.record.holder not in ("", self.identity):
                        raise LeadershipLost(f"{self._place} has been taken by {self._sight.record.holder}")
                    await asyncio.sleep(self.terms.retry)
        except TimeoutError:
            raise LeadershipLost(f"{self._place} could not be renewed within {self.terms.deadline:g} s") from None

    async def _try(self) -> bool:
        """One try to get the lease, or to keep it; False where that failed or it is somebody else's. The lease as we
        have written it last is written over without a look; if that is a conflict, we look."""
        now = asyncio.get_running_loop().time
        began, looked = now(), self._lease is None
        try:
            async with asyncio.timeout(self.terms.deadline):
                if self._lease is None:
                    found = await self._client.get_or_none(LEASES, self._namespace, self._name)
                    began = now()
                    if found is not None:
                        self._lease = orjson.loads(found)
                if self._lease is None:
                    await self._write(claim(None, self.identity, self.terms, _now()))
                else:
                    self._sight = seen(self._sight, Record.of(self._lease), now())
                    if not free(self._sight, self.identity, self.terms, now()):
                        self._lease = None
                        return False
                    await self._write(claim(self._sight.record, self.identity, self.terms, _now()))
        except REQUEST_FAILED as error:
            self._lease = None
            if isinstance(error, ApiError) and (error.conflict or error.already_exists):
                return not looked and await self._try()
            log.warning("%s: %s", self._place, error or type(error).__name__)
            return False
        self._until = began + self.terms.deadline
        return True

    async def _write(self, record: Record) -> None:
        """Writes the record over the Lease as it was read: if it has changed since, that is a conflict."""
        if self._lease is None:
            metadata = {"namespace": self._namespace, "name": self._name}
            body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": record.spec()}
            answer = await self._client.create(LEASES, body)
        else:
            body = {**self._lease, "spec": {**(self._lease.get("spec") or {}), **record.spec()}}
            answer = await self._client.replace(LEASES, body)
        self._lease = orjson.loads(answer)
        self._sight = seen(self._sight, Record.of(self._lease), asyncio.get_running_loop().time())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
