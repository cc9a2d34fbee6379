"""Tests of the informer cache: identity, staleness, indexes and handlers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import RecordingSink, event, held_open, page, pod, running, serving

from kube.client import Client
from kube.config import Connection
from kube.informer import Informer, typed_decoder
from kube.objects import ObjectMeta, OwnerReference
from kube.resource import PODS


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: Spec = msgspec.field(default_factory=Spec)


def by_owner(item: Pod) -> Iterable[str]:
    return [owner.uid for owner in item.metadata.owner_references or ()]


def by_label(item: Pod) -> Iterable[str]:
    return (f"{key}={value}" for key, value in (item.metadata.labels or {}).items())


def by_node(item: Pod) -> Iterable[str]:
    return (item.spec.node_name,) if item.spec.node_name and item.metadata.deletion_timestamp is None else ()


INDICES = {"owner": by_owner, "label": by_label, "node": by_node}
decode = typed_decoder(Pod)


def decode_pod(item: dict[str, Any]) -> Pod:
    return decode(orjson.dumps(item))


def informer() -> Informer[Pod]:
    unreachable = Client(Connection("http://127.0.0.1:1", None, lambda: None), user_agent="test")
    cache = Informer(unreachable, PODS, decode)
    for name, function in INDICES.items():
        cache.add_index(name, function)
    return cache


async def test_catching_up_stores_changes_that_the_watch_has_not_delivered() -> None:
    first_page = page(pod("a", 1), pod("b", 2), version=2)
    now = page(pod("a", 5), pod("c", 3, "uid-other"), pod("d", 6), version=7)
    # The watch is at version 4. It has delivered the creation and deletion of the first c, but no later event.
    stream = held_open(event("ADDED", pod("c", 3)), event("DELETED", pod("c", 4)))
    async with serving(first_page, stream, now) as (_, client):
        cache, diary = Informer(client, PODS, decode), RecordingSink()
        cache.add_handler(diary.record)
        async with running(cache.run()):
            await diary.until(4)
            await cache.catch_up()
            assert {item.metadata.name: item.metadata.resource_version for item in cache} == {
                "a": "5",
                "d": "6",
                "b": "2",  # the event of its deletion has not arrived yet
            }


class CheckingHandler:
    """A handler that keeps a copy of the collection from its calls, and checks that each call makes sense."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Pod] = {}
        self.calls: list[tuple[str, str]] = []

    def __call__(self, kind: str, before: Pod | None, now: Pod) -> None:
        key = now.metadata.key
        stored = self.items.get(key)
        assert before is stored
        self.calls.append((kind, f"{now.metadata.uid}@{now.metadata.resource_version}"))
        if kind == "ADDED":
            assert stored is None
        else:
            assert stored is not None
            assert stored.metadata.uid == now.metadata.uid
        if kind == "DELETED":
            del self.items[key]
        else:
            assert stored is None or stored.metadata.resource_version != now.metadata.resource_version, "told twice"
            self.items[key] = now


@pytest.fixture
def handler() -> CheckingHandler:
    return CheckingHandler()


def informer_with_events(handler: CheckingHandler, *events: tuple[str, dict[str, Any]]) -> Informer[Pod]:
    cache = informer()
    cache.add_handler(handler)
    for kind, item in events:
        cache.on_event(kind, decode_pod(item))
    return cache


def test_the_same_name_with_a_new_uid_is_a_deletion_and_an_addition(handler: CheckingHandler) -> None:
    cache = informer_with_events(handler, ("ADDED", pod("a", 1)), ("MODIFIED", pod("a", 5, uid="second")))
    assert handler.calls == [("ADDED", "uid-a@1"), ("DELETED", "uid-a@1"), ("ADDED", "second@5")]
    current = cache.get("ns", "a")
    assert current is not None
    assert current.metadata.uid == "second"


@pytest.mark.parametrize(
    "stale_event",
    [
        ("MODIFIED", pod("a", 9)),
        ("MODIFIED", pod("a", 10)),
        ("ADDED", pod("a", 10)),
        ("ADDED", pod("a", 3, uid="first")),
        ("DELETED", pod("a", 4, uid="first")),
        # The pod stopped matching the selector and matched it again. The cache knows this from the response to our own
        # write.
        ("DELETED", pod("a", 9)),
    ],
)
def test_states_older_than_the_stored_state_are_ignored(
    handler: CheckingHandler, stale_event: tuple[str, dict[str, Any]]
) -> None:
    cache = informer_with_events(handler, ("ADDED", pod("a", 10)), stale_event)
    assert handler.calls == [("ADDED", "uid-a@10")]
    assert len(cache) == 1


def test_versions_compare_as_numbers(handler: CheckingHandler) -> None:
    informer_with_events(handler, ("ADDED", pod("a", 9)), ("MODIFIED", pod("a", 10)), ("MODIFIED", pod("a", 9)))
    assert handler.calls == [("ADDED", "uid-a@9"), ("MODIFIED", "uid-a@10")]


def test_the_deletion_of_an_unseen_successor_removes_the_old_object(handler: CheckingHandler) -> None:
    cache = informer_with_events(handler, ("ADDED", pod("a", 1)), ("DELETED", pod("a", 6, uid="second")))
    assert handler.calls == [("ADDED", "uid-a@1"), ("DELETED", "uid-a@1")]
    assert len(cache) == 0


def test_the_deletion_of_an_unknown_object_is_ignored(handler: CheckingHandler) -> None:
    informer_with_events(handler, ("DELETED", pod("a", 6)))
    assert handler.calls == []


def test_an_index_survives_an_object_that_was_changed_in_place() -> None:
    cache = informer()
    cache.on_event("ADDED", decode_pod({**pod("a", 1), "spec": {"nodeName": "n"}}))
    shared = cache.get("ns", "a")
    assert shared is not None
    shared.spec.node_name = "other"
    cache.on_event("MODIFIED", decode_pod({**pod("a", 2), "spec": {"nodeName": "m"}}))
    assert [cache.indexed("node", node) for node in ("n", "other")] == [[], []]
    assert len(cache.indexed("node", "m")) == 1


def test_our_own_write_is_visible_at_once_and_reported_once(handler: CheckingHandler) -> None:
    cache = informer_with_events(handler)
    cache._reflector._advance_version("5")
    cache.observe(decode_pod(pod("a", 8)))
    assert handler.calls == [("ADDED", "uid-a@8")]
    # A list that had already started does not contain the pod yet.
    cache._reflector._advance_version("7")
    cache.on_list([])
    cache.on_event("ADDED", decode_pod(pod("a", 8)))
    assert handler.calls == [("ADDED", "uid-a@8")]
    cache._reflector._advance_version("9")
    cache.on_list([])
    assert handler.calls == [("ADDED", "uid-a@8"), ("DELETED", "uid-a@8")]


def test_a_response_after_the_deletion_of_its_object_restores_nothing(handler: CheckingHandler) -> None:
    cache = informer_with_events(handler, ("ADDED", pod("a", 6)), ("DELETED", pod("a", 7)))
    cache._reflector._advance_version("7")
    cache.observe(decode_pod(pod("a", 6)))
    assert handler.calls == [("ADDED", "uid-a@6"), ("DELETED", "uid-a@7")]


def test_our_own_deletion_is_visible_at_once_and_stays_visible(handler: CheckingHandler) -> None:
    cache = informer_with_events(handler, ("ADDED", {**pod("a", 1), "spec": {"nodeName": "n"}}))
    cache.observe_deletion(decode_pod(pod("a", 1, uid="another")))
    assert len(cache.indexed("node", "n")) == 1
    cache.observe_deletion(decode_pod(pod("a", 1)))
    assert cache.indexed("node", "n") == []
    cache.on_event("MODIFIED", decode_pod(pod("a", 2)))  # a state older than our deletion, delivered late
    current = cache.get("ns", "a")
    assert current is not None
    assert current.metadata.deletion_timestamp is not None
    cache.on_event("DELETED", decode_pod(pod("a", 3)))
    cache.on_event("ADDED", decode_pod(pod("a", 4, uid="second")))
    current = cache.get("ns", "a")
    assert current is not None
    assert current.metadata.deletion_timestamp is None


async def test_handlers_have_processed_the_list_before_the_informer_is_synced() -> None:
    diary = RecordingSink()
    async with serving(page(pod("a", 1), version=5), held_open(event("MODIFIED", pod("a", 6)))) as (_, client):
        cache = Informer(client, PODS, decode)
        cache.add_handler(diary.record)
        async with running(cache.run()):
            await cache.wait_until_synced()
            assert diary.entries[0] == ("ADDED", "a/uid-a@1")
            await diary.until(2)
            assert [item.metadata.resource_version for item in cache] == ["6"]


async def test_each_received_object_is_decoded_once() -> None:
    decoded = []

    def counting(raw: msgspec.Raw | bytes) -> Pod:
        item = decode(raw)
        decoded.append(item.metadata.resource_version)
        return item

    diaries = [RecordingSink(), RecordingSink(), RecordingSink()]
    async with serving(page(pod("a", 1), version=5), held_open(event("MODIFIED", pod("a", 6)))) as (_, client):
        cache = Informer(client, PODS, counting)
        for name, function in INDICES.items():
            cache.add_index(name, function)
        for diary in diaries:
            cache.add_handler(diary.record)
        async with running(cache.run()):
            for diary in diaries:
                await diary.until(2)
    assert decoded == ["1", "6"]


def test_the_controller_is_the_owner_marked_as_controller() -> None:
    owners = [OwnerReference(uid="other"), OwnerReference(uid="boss", controller=True)]
    assert ObjectMeta(owner_references=owners).controller is owners[1]
    assert ObjectMeta(owner_references=owners[:1]).controller is None
    assert ObjectMeta().controller is None
    assert ObjectMeta(labels={"a": "b"}).label("a") == "b"
    assert ObjectMeta().label("a") == ""


NAMES = st.sampled_from("abc")
STATES = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2),
        "owners": st.lists(st.sampled_from(["o1", "o2"]), max_size=2),  # duplicates are possible
        "node": st.sampled_from(["", "n1", "n2"]),
    }
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, STATES),
        st.tuples(st.just("remake"), NAMES, STATES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("leave and return"), NAMES, STATES),
        st.tuples(st.just("deliver"), st.integers(1, 4)),
        st.tuples(st.just("list"), st.integers(0, 3)),
        st.tuples(st.just("replay"), st.integers(0, 30)),
        st.tuples(st.just("answer"), st.integers(0, 30)),
        st.tuples(st.just("our deletion"), NAMES),
    ),
    max_size=40,
)


@dataclass
class World:
    """A naive collection: the log of all events, and the number of events that can have reached the cache."""

    log: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    now: dict[str, dict[str, Any]] = field(default_factory=dict)
    delivered: int = 0
    answered: set[int] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)

    def happen(self, kind: str, name: str, state: dict[str, Any], uid: str) -> None:
        # The empty collection has version 1.
        item = pod(name, len(self.log) + 2, uid, labels=state["labels"])
        item["metadata"]["ownerReferences"] = [{"uid": owner} for owner in state["owners"]]
        item["spec"] = {"nodeName": state["node"]}
        self.log.append((kind, item))
        if kind == "DELETED":
            del self.now[name]
        else:
            self.now[name] = {**state, "uid": uid}

    def write(self, name: str, state: dict[str, Any]) -> None:
        stored = self.now.get(name)
        self.happen("MODIFIED" if stored else "ADDED", name, state, stored["uid"] if stored else f"uid{len(self.log)}")

    def delete(self, name: str) -> None:
        if name in self.now:
            self.happen("DELETED", name, self.now[name], self.now[name]["uid"])

    def leave_and_return(self, name: str, state: dict[str, Any]) -> None:
        if name in self.now:
            uid = self.now[name]["uid"]
            self.delete(name)
            self.happen("ADDED", name, state, uid)

    def expected(self, *, answers: bool = True) -> dict[str, dict[str, Any]]:
        """Return the objects that the cache must show after it has processed all known events in the order in which
        they happened. With `answers=False`, responses to our own writes are omitted, so the result is the collection at
        the version of the last delivery."""
        state: dict[str, dict[str, Any]] = {}
        for number, (kind, item) in enumerate(self.log):
            if number < self.delivered or (answers and number in self.answered):
                name = item["metadata"]["name"]
                if kind == "DELETED":
                    state.pop(name, None)
                else:
                    state[name] = item
        return state


def step(world: World, cache: Informer[Pod], action: tuple[Any, ...]) -> None:
    """Take one step in the world and in the cache. This function acts as the cache's reflector."""
    match action:
        case ("write", name, state):
            world.write(name, state)
        case ("remake", name, state):
            world.delete(name)
            world.write(name, state)
        case ("delete", name):
            world.delete(name)
        case ("leave and return", name, state):
            world.leave_and_return(name, state)
        case ("deliver", count):
            for kind, item in world.log[world.delivered : world.delivered + count]:
                cache.on_event(kind, decode_pod(item))
                cache._reflector._advance_version(item["metadata"]["resourceVersion"])
                world.delivered += 1
        case ("list", behind):
            # The list can be older than our own writes, which the cache knows from their responses.
            world.delivered = max(world.delivered, len(world.log) - behind)
            cache._reflector._advance_version(str(world.delivered + 1))
            cache.on_list([decode_pod(item) for item in world.expected(answers=False).values()])
        case ("replay", number) if number < world.delivered:
            kind, item = world.log[number]
            # A watch never reports an object again after its deletion.
            if item["metadata"]["name"] in world.expected():
                cache.on_event(kind, decode_pod(item))
        case ("answer", number) if number < len(world.log) and world.log[number][0] != "DELETED":
            world.answered.add(number)
            cache.observe(decode_pod(world.log[number][1]))
        case ("our deletion", name) if name in world.expected():
            cache.observe_deletion(decode_pod(world.expected()[name]))


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_the_cache_reflects_all_events_in_order(steps: list[tuple[Any, ...]]) -> None:
    world, cache, handler = World(), informer(), CheckingHandler()
    cache.add_handler(handler)
    for action in steps:
        before = len(handler.calls)
        step(world, cache, action)
        expected = world.expected()
        actual = {item.metadata.name: item for item in cache}
        assert {name: item.metadata.resource_version for name, item in actual.items()} == {
            name: item["metadata"]["resourceVersion"] for name, item in expected.items()
        }
        assert handler.items == {item.metadata.key: item for item in cache}
        if action[0] == "replay":
            assert len(handler.calls) == before
        for name, function in INDICES.items():
            naive: dict[str, dict[tuple[str, str], Pod]] = {}
            for item in cache:
                for value in function(item):
                    naive.setdefault(value, {})[item.metadata.key] = item
            assert cache._indices[name] == naive
            for value, bucket in naive.items():
                assert {item.metadata.key for item in cache.indexed(name, value)} == set(bucket)
        assert cache._terminating_uids <= {item.metadata.uid for item in cache}
