"""Tests of leader election: when a process may acquire the lease, when it must stop leading, and how clocks matter. The
tests run in a `leaping` loop."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import aiohttp
import orjson
import pytest
from leaping import leap

from kube.errors import ApiError
from kube.leases import (
    JITTER,
    Elector,
    LeadershipLost,
    LeaseTiming,
    Observation,
    Record,
    can_acquire,
    claim,
    observe,
    released_record,
)

TIMING = LeaseTiming(lease=15, deadline=10, retry=2)
HELD = Record("other", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z", 3)


class FakeLeaseServer:
    """One Lease as an API server stores it. `fault` is called before each request; an exception that it raises is the
    response."""

    def __init__(self, record: Record | None = None) -> None:
        self.version = 0
        self.lease: dict[str, Any] | None = None
        self.history: list[Record] = []
        self.requests: list[str] = []
        self.fault: Callable[[str], None] = lambda verb: None
        self.hang = False
        self.slow = 0.0
        """The time, in seconds, between a write and its response."""
        if record is not None:
            self._store({"metadata": {"namespace": "ns", "name": "l"}, "spec": {**record.spec(), "strategy": "own"}})

    @property
    def record(self) -> Record:
        assert self.lease is not None
        return Record.of(self.lease)

    def write(self, record: Record) -> None:
        """Write the record as another client would."""
        assert self.lease is not None
        self._store({**self.lease, "spec": {**self.lease["spec"], **record.spec()}})

    def _store(self, lease: dict[str, Any]) -> bytes:
        self.version += 1
        lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}
        self.lease = copy.deepcopy(lease)
        self.history.append(self.record)
        return orjson.dumps(lease)

    async def _ask(self, verb: str) -> None:
        self.requests.append(verb)
        if self.hang:
            await asyncio.get_running_loop().create_future()
        self.fault(verb)

    async def get_or_none(self, resource: Any, namespace: str, name: str) -> bytes | None:
        await self._ask("get")
        return None if self.lease is None else orjson.dumps(self.lease)

    async def create(self, resource: Any, body: dict[str, Any]) -> bytes:
        await self._ask("create")
        if self.lease is not None:
            raise ApiError(409, "AlreadyExists", "there is one", {}, None)
        return self._store(body)

    async def replace(self, resource: Any, body: dict[str, Any]) -> bytes:
        await self._ask("replace")
        assert self.lease is not None
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "it has been changed", {}, None)
        answer = self._store(body)
        await asyncio.sleep(self.slow)
        return answer


def elector(leases: FakeLeaseServer, identity: str = "me", timing: LeaseTiming = TIMING) -> Elector:
    return Elector(leases, "ns", "l", identity=identity, terms=timing)  # type: ignore[arg-type]


def clock() -> float:
    return asyncio.get_running_loop().time()


# -- the decisions ---------------------------------------------------------------------------------------------------


def test_a_lease_expires_by_the_local_clock_after_its_record_was_first_seen() -> None:
    observation = observe(None, HELD, 100)
    assert observe(observation, HELD, 110) is observation
    assert not can_acquire(observation, "me", TIMING, 114.9) and can_acquire(observation, "me", TIMING, 115)
    renewed = observe(observation, Record(**{**HELD.__dict__, "renewed": "1999-01-01T00:00:00.000000Z"}), 110)
    assert renewed.first_seen == 110, "what the other's clock says does not matter, only that it has written"


def test_the_duration_in_the_record_applies_instead_of_ours() -> None:
    assert can_acquire(Observation(Record("other", 3), 0), "me", TIMING, 3)
    assert not can_acquire(Observation(Record("other", 60), 0), "me", TIMING, 59)
    assert not can_acquire(Observation(Record("other", 0), 0), "me", TIMING, 14) and can_acquire(
        Observation(Record("other"), 0), "me", TIMING, 15
    )


def test_a_lease_without_a_holder_and_our_own_lease_can_be_acquired() -> None:
    assert can_acquire(Observation(Record(""), 0), "me", TIMING, 0) and can_acquire(
        Observation(Record("me", 15), 0), "me", TIMING, 0
    )


def test_claims_keep_or_change_the_holder() -> None:
    assert claim(None, "me", TIMING, "t") == Record("me", 15, "t", "t", 0)
    assert claim(HELD, "me", TIMING, "t") == Record("me", 15, "t", "t", 4)
    assert claim(Record("me", 15, "a", "b", 4), "me", TIMING, "t") == Record("me", 15, "a", "t", 4)
    assert claim(None, "me", LeaseTiming(lease=0.4), "t").seconds == 1, "the API knows whole seconds, at least one"
    assert released_record(HELD, "t") == Record("", 1, "t", "t", 3)


@pytest.mark.parametrize("lease", [{}, {"spec": None}, {"spec": {"holderIdentity": None, "leaseTransitions": None}}])
def test_an_empty_lease_has_no_holder(lease: dict[str, Any]) -> None:
    assert Record.of(lease) == Record()


# -- acting on them --------------------------------------------------------------------------------------------------


def test_the_first_candidate_creates_the_lease_and_keeps_it() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        assert not candidate.leads
        await candidate.acquire()
        assert candidate.leads and leases.record.holder == "me"
        hold_task = asyncio.create_task(candidate.hold())
        await asyncio.sleep(100)
        assert candidate.leads
        hold_task.cancel()
        assert leases.requests[:2] == ["get", "create"] and set(leases.requests[2:]) == {"replace"}
        assert 45 <= len(leases.requests) <= 55, "one request each retry period"
        assert leases.record.acquired == leases.history[0].acquired and leases.record.transitions == 0

    leap(scenario())


def test_a_dead_leader_is_replaced_after_its_lease_and_a_live_leader_never() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        first, second = elector(leases, "first"), elector(leases, "second")
        await first.acquire()
        hold_task = asyncio.create_task(first.hold())
        acquire_task = asyncio.create_task(second.acquire())
        await asyncio.sleep(300)
        assert not acquire_task.done() and not second.leads
        hold_task.cancel()  # as with SIGKILL, nothing is released
        died_at = clock()
        await acquire_task
        # The other candidate sees the last renewal at its next check, and finds it expired at the first check after
        # that.
        poll_delay = TIMING.retry * (1 + JITTER)
        assert 13 <= clock() - died_at <= TIMING.lease + 2 * poll_delay
        assert (leases.record.holder, leases.record.transitions) == ("second", 1)
        assert not first.leads

    leap(scenario())


def test_a_release_clears_the_holder_and_keeps_other_fields() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer(Record("", 1))
        candidate = elector(leases)
        await candidate.acquire()
        started_at = clock()
        other = asyncio.create_task(elector(leases, "other").acquire())
        await asyncio.sleep(1)
        await candidate.release()
        assert leases.lease is not None and leases.lease["spec"]["holderIdentity"] is None
        assert leases.lease["spec"]["strategy"] == "own"
        with pytest.raises(LeadershipLost):
            candidate.check()
        await other
        assert clock() - started_at <= 2.2 * 2 and leases.record.holder == "other"

    leap(scenario())


def test_a_lease_is_released_after_a_renewal_without_a_response() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        hold_task = asyncio.create_task(candidate.hold())
        leases.slow = 1
        await asyncio.sleep(TIMING.retry + 0.5)
        assert leases.version == 2, "the renewal is stored, and its answer is on the way"
        hold_task.cancel()
        await candidate.release()
        assert leases.record.holder == ""

    leap(scenario())


def test_a_lease_is_released_although_a_cancelled_renewal_is_still_written() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        late_records = [Record("me", 15, renewed="later")]
        leases.fault = lambda verb: leases.write(late_records.pop()) if verb == "replace" and late_records else None
        await candidate.release()
        assert leases.record.holder == "" and leases.requests.count("replace") == 2

    leap(scenario())


def test_a_lease_of_another_holder_is_not_released() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        leases.write(HELD)
        await candidate.release()
        assert leases.record.holder == HELD.holder and "replace" not in leases.requests

    leap(scenario())


def test_a_candidate_that_never_led_releases_nothing() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer(HELD)
        await elector(leases).release()
        assert leases.record == HELD and not leases.requests

    leap(scenario())


def test_a_leader_that_cannot_renew_stops_before_another_may_lead() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        started_at = clock()

        def broken(verb: str) -> None:
            raise aiohttp.ClientConnectionError("gone")

        leases.fault = broken
        with pytest.raises(LeadershipLost, match=r"lease ns/l was not renewed within 10 s"):
            await candidate.hold()
        assert clock() - started_at <= TIMING.deadline < TIMING.lease
        assert not candidate.leads

    leap(scenario())


def test_a_leader_also_stops_if_the_api_server_does_not_respond() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        started_at, leases.hang = clock(), True
        with pytest.raises(LeadershipLost):
            await candidate.hold()
        assert clock() - started_at <= TIMING.deadline

    leap(scenario())


def test_a_leader_survives_temporary_errors() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        errors = iter([True, True, True])

        def now_and_then(verb: str) -> None:
            if next(errors, False):
                raise ApiError(503, "", "busy", {}, None)

        leases.fault = now_and_then
        hold_task = asyncio.create_task(candidate.hold())
        await asyncio.sleep(60)
        assert not hold_task.done() and candidate.leads
        hold_task.cancel()

    leap(scenario())


def test_a_leader_whose_lease_was_taken_stops_at_once() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        leases.write(HELD)
        started_at = clock()
        with pytest.raises(LeadershipLost, match="held by other"):
            await candidate.hold()
        assert clock() - started_at <= TIMING.retry
        assert leases.record == HELD

    leap(scenario())


def test_a_change_by_another_client_costs_one_more_read() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        leases.write(leases.record)
        hold_task = asyncio.create_task(candidate.hold())
        await asyncio.sleep(3)
        assert (
            candidate.leads
            and not hold_task.done()
            and leases.requests == ["get", "create", "replace", "get", "replace"]
        )
        hold_task.cancel()

    leap(scenario())


def test_two_simultaneous_candidates_do_not_both_lead() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidates = elector(leases, "a"), elector(leases, "b")
        tasks = [asyncio.create_task(one.acquire()) for one in candidates]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(5)
        assert sum(one.leads for one in candidates) == 1
        for task in tasks:
            task.cancel()

    leap(scenario())


def test_a_process_that_was_suspended_too_long_must_not_write() -> None:
    async def scenario() -> None:
        leases = FakeLeaseServer()
        candidate = elector(leases)
        await candidate.acquire()
        candidate.check()
        await asyncio.sleep(TIMING.deadline)  # no renewal, as when the process is stopped by SIGSTOP
        with pytest.raises(LeadershipLost):
            candidate.check()

    leap(scenario())
