"""Tests that a recorder knows up to which revision it has received every event."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from conformance.history.arrivals import Arrivals
from conformance.history.recorder import ARRIVAL_SECONDS, Recorder, Watched, _RevisionHandler
from kube.client import Client
from kube.objects import Envelope, envelope
from kube.resource import NAMESPACES, PODS

SPACE = "test"


@given(st.lists(st.integers(1, 12), min_size=1, unique=True), st.integers(1, 12), st.integers(1, 12))
def test_a_range_is_complete_once_each_of_its_revisions_has_arrived(arriving: list[int], begin: int, end: int) -> None:
    arrivals = Arrivals()
    for index, revision in enumerate(arriving):
        arrivals.add(revision)
        expected = set(range(begin + 1, end + 1)) <= set(arriving[: index + 1])
        if begin >= arriving[0]:
            assert arrivals.is_complete(begin, end) == expected
        assert expected or not arrivals.is_complete(begin, end)


def test_a_revision_that_arrives_twice_counts_once() -> None:
    arrivals = Arrivals()
    for revision in (10, 11, 13, 11, 13):
        arrivals.add(revision)
    assert arrivals.is_complete(10, 11) and not arrivals.is_complete(10, 13)
    arrivals.add(12)
    assert arrivals.is_complete(10, 13)


def pod(revision: int, name: str = "a") -> Envelope:
    metadata = {"name": name, "namespace": SPACE, "uid": name, "resourceVersion": str(revision)}
    return envelope(json.dumps({"metadata": metadata}).encode())


class Server:
    """Answers each list with its current revision, and counts the requests."""

    def __init__(self, revision: int) -> None:
        self.revision, self.requests = revision, 0
        self.meanwhile: Callable[[], None] = lambda: None

    async def request(self, *_: Any, **__: Any) -> bytes:
        self.requests += 1
        asyncio.get_running_loop().call_soon(self.meanwhile)
        return json.dumps({"metadata": {"resourceVersion": str(self.revision)}, "items": []}).encode()


def new_recorder() -> Recorder:
    """Return a recorder of pods that has received all revisions up to 10."""
    recorder = Recorder("kubeconfig", watched=[Watched(PODS)], unrecorded=[Watched(NAMESPACES)])
    recorder._feeds[0].on_event("ADDED", pod(10))
    recorder._complete_revision = 10
    return recorder


def arrive(recorder: Recorder, server: Server) -> int | None:
    return asyncio.run(recorder._wait_for_arrivals(cast(Client, server)))


def test_one_request_shows_that_everything_has_arrived() -> None:
    recorder, server = new_recorder(), Server(12)
    recorder._feeds[0].on_event("MODIFIED", pod(11))
    _RevisionHandler(recorder.record_arrival).on_event("MODIFIED", pod(12, "namespace"))
    assert (arrive(recorder, server), server.requests) == (12, 1)


def test_a_delayed_event_is_waited_for() -> None:
    recorder, server = new_recorder(), Server(11)
    server.meanwhile = lambda: recorder._feeds[0].on_event("DELETED", pod(11))
    assert arrive(recorder, server) == 11
    assert [record.kind for record in recorder.records_after(SPACE, 0)] == ["ADDED", "DELETED"]


def test_lists_decide_if_a_revision_does_not_arrive() -> None:
    recorder, server = new_recorder(), Server(12)
    recorder._feeds[0].on_event("MODIFIED", pod(12))
    assert arrive(recorder, server) is None


def test_a_list_does_not_show_the_revisions_before_it() -> None:
    recorder, server = new_recorder(), Server(12)
    recorder._feeds[0].on_list([pod(12)])
    assert arrive(recorder, server) is None


def test_nothing_is_known_before_the_first_lists() -> None:
    recorder, server = Recorder("kubeconfig", watched=[Watched(PODS)], unrecorded=[]), Server(10)
    assert arrive(recorder, server) is None and server.requests == 0


def test_a_recorder_waits_for_less_time_after_waits_without_success() -> None:
    recorder, server = new_recorder(), cast(Client, Server(12))

    async def fail_twice() -> None:
        for times in (1, 2):
            assert await recorder._wait_for_arrivals(server) is None and recorder._failed_waits == times
        for revision in (11, 12):
            recorder._feeds[0].on_event("MODIFIED", pod(revision))
        assert await recorder._wait_for_arrivals(server) == 12 and recorder._failed_waits == 0

    start = time.monotonic()
    asyncio.run(fail_twice())
    assert time.monotonic() - start >= ARRIVAL_SECONDS * 1.5
