"""Tests of lists: pages, expired continue tokens, expired versions and objects that cannot be decoded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scripted import (
    RecordedSleep,
    RecordingSink,
    ScriptedResponse,
    Stream,
    error,
    event,
    held_open,
    page,
    pod,
    reflecting,
    refusal,
    running,
    serving,
    watch,
)

from kube.informer import Informer, typed_decoder
from kube.objects import ObjectMeta
from kube.reflector import Reflector, SinkFailed
from kube.resource import PODS


class Pod(msgspec.Struct):
    metadata: ObjectMeta


async def test_pages_form_one_list_and_the_watch_starts_at_its_version() -> None:
    pages = (
        page(pod("a", 1), version=7, continue_token="t1"),
        page(pod("b", 2), version=7, continue_token="t2"),
        page(version=7),
    )
    async with reflecting(*pages, held_open(), label_selector="app=x", field_selector="spec.nodeName=n") as run:
        server, diary, naps = run
        await server.until_asked(4)
    assert diary.entries == [("LIST", "a b")]
    first, second, third, watched = server.queries
    selectors = {"labelSelector": "app=x", "fieldSelector": "spec.nodeName=n"}
    # The request has no resourceVersion, because the list must return the latest state instead of a cached state.
    assert first == {"limit": first["limit"], **selectors}
    assert int(first["limit"]) > 0
    assert second == {**first, "continue": "t1"}
    assert third == {**first, "continue": "t2"}
    assert 300 <= int(watched.pop("timeoutSeconds")) <= 600
    assert watched == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7", **selectors}
    assert {request.path for request in server.requests} == {"/api/v1/pods"}
    assert naps.waits == []


async def test_an_expired_continue_token_restarts_the_list_without_reporting_a_part() -> None:
    script = (
        page(pod("a", 1), version=7, continue_token="t1"),
        refusal(410, "Expired"),
        page(pod("b", 2), version=9, continue_token="t2"),
        page(pod("c", 3), version=9),
        held_open(),
    )
    async with reflecting(*script) as (server, diary, naps):
        await server.until_asked(5)
    assert server.kinds == "LCLCW"
    assert diary.entries == [("LIST", "b c")]
    assert server.watched_from == ["9"]
    assert naps.waits == []


EXPIRED: dict[str, ScriptedResponse | Stream] = {
    "as a status": refusal(410, "Gone"),
    "as an event": watch(error(410, "Expired")),
    "as an event on a stream that stays open": held_open(error(410, "Expired")),
}


@pytest.mark.parametrize("expired", EXPIRED.values(), ids=EXPIRED)
async def test_after_an_expired_version_each_difference_is_reported_once(expired: ScriptedResponse | Stream) -> None:
    before = (pod("same", 1), pod("changed", 2), pod("left", 3), pod("remade", 4))
    after = (pod("same", 1), pod("changed", 12), pod("remade", 13, uid="second"), pod("new", 14))
    script = (page(*before, version=5), expired, page(*after, version=15), held_open(event("MODIFIED", pod("new", 16))))
    diary = RecordingSink()
    async with serving(*script) as (server, client):
        informer = Informer(client, PODS, typed_decoder(Pod))
        informer.add_handler(diary.record)
        async with running(informer.run()):
            await informer.wait_until_synced()
            assert len(diary.entries) == 4
            events = (await diary.until(10))[4:]
    assert server.kinds == "LWLW"
    assert server.watched_from == ["5", "15"]
    assert sorted(events[:-1]) == [
        ("ADDED", "new/uid-new@14"),
        ("ADDED", "remade/second@13"),
        ("DELETED", "left/uid-left@3"),
        ("DELETED", "remade/uid-remade@4"),
        ("MODIFIED", "changed/uid-changed@12"),
    ]
    assert events.index(("DELETED", "remade/uid-remade@4")) < events.index(("ADDED", "remade/second@13"))
    assert events[-1] == ("MODIFIED", "new/uid-new@16")


@pytest.mark.parametrize("expired", EXPIRED.values(), ids=EXPIRED)
async def test_the_first_expired_version_lists_at_once_regardless_of_the_back_off(
    expired: ScriptedResponse | Stream,
) -> None:
    silent = [watch()] * 6  # each watch ends without an event, so the back-off grows
    one_event = watch(event("ADDED", pod("b", 6)))
    script = (
        page(version=5),
        *silent,
        expired,
        page(version=9),
        one_event,
        expired,
        page(version=12),
        expired,
        held_open(),
    )
    async with reflecting(*script) as (server, _, naps):
        await server.until_asked(14)
    assert server.kinds == "L" + "W" * 7 + "LWWLWL"
    # No wait before a list that follows the first 410 in a row, and one wait before the list that follows a second one.
    assert len(naps.waits) == 6 + 1


async def test_a_server_that_always_responds_gone_is_queried_less_often() -> None:
    script = [page(version=5), refusal(410, "Gone")] * 12
    async with reflecting(*script) as (server, _, naps):
        await server.until_asked(25)
    assert server.kinds.startswith("LW" * 12)
    assert len(naps.waits) >= 11


async def test_an_undecodable_object_counts_as_absent_and_blocks_no_other_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Strict(msgspec.Struct):
        metadata: ObjectMeta
        spec: dict[str, int]

    def strict(name: str, version: int, value: Any) -> dict[str, Any]:
        return {**pod(name, version), "spec": {"n": value}}

    script = (
        page(strict("good", 1, 1), strict("bad", 2, "x"), version=5),
        watch(event("MODIFIED", strict("good", 6, "x"))),
        page(strict("good", 6, "x"), strict("bad", 7, 7), version=8),
        held_open(event("ADDED", strict("next", 9, 9))),
    )
    diary = RecordingSink()
    async with serving(*script) as (server, client):
        informer = Informer(client, PODS, typed_decoder(Strict))
        informer.add_handler(diary.record)
        async with running(informer.run()):
            events = await diary.until(4)
    assert events == [
        ("ADDED", "good/uid-good@1"),
        ("DELETED", "good/uid-good@1"),
        ("ADDED", "bad/uid-bad@7"),
        ("ADDED", "next/uid-next@9"),
    ]
    assert server.kinds == "LWLW"
    assert "cannot decode pods ns/bad" in caplog.text
    assert "cannot decode pods ns/good" in caplog.text


@pytest.mark.parametrize("broken", [b"{", b"", b'{"metadata":{},"items":[{"metadata":{"name":"\xff"}}]}'])
async def test_a_broken_list_is_requested_again(broken: bytes) -> None:
    async with reflecting(ScriptedResponse(broken), page(pod("a", 1), version=5), held_open()) as (server, diary, naps):
        await server.until_asked(3)
    assert diary.entries == [("LIST", "a")]
    assert len(naps.waits) == 1


class FailingSink:
    """A sink with a bug. The reflector would retry the same exception if it came from the network."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def on_list(self, items: list[Any]) -> None:
        if items:
            raise self.error

    def on_event(self, kind: str, item: Any) -> None:
        raise self.error


@pytest.mark.parametrize("cause", [KeyError("x"), OSError("disk full"), msgspec.ValidationError("x")], ids=repr)
@pytest.mark.parametrize("items", [[pod("a", 1)], []], ids=["in the list", "in an event"])
async def test_an_error_in_a_handler_ends_the_reflector(cause: Exception, items: list[Any]) -> None:
    async with serving(page(*items, version=5), held_open(event("ADDED", pod("b", 6)))) as (_, client):
        reflector = Reflector(client, PODS, typed_decoder(Pod), FailingSink(cause), sleep=RecordedSleep())
        with pytest.raises(SinkFailed, match="pods: handling") as caught:
            await reflector.run()
    assert caught.value.__cause__ is cause
