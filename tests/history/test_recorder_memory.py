"""Tests that a log keeps the records which its readers need, and not those of a whole run."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import orjson
import pytest

from conformance.history import log as logs
from conformance.history.log import Log
from conformance.history.query import History
from conformance.history.record import Record
from conformance.history.recorder import Watched, _Feed
from kube.objects import envelope
from kube.resource import PODS


def append(
    log: Log, name: str, *, namespace: str, kind: str = "ADDED", resource: str = "pods", padding: str = ""
) -> Record:
    raw = orjson.dumps({"metadata": {"name": name, "namespace": namespace}, "more": padding})
    fields = {"namespace": namespace, "name": name, "uid": f"uid-{name}", "version": "1", "raw": raw}
    return log.append(kind, resource, **fields)


def names(log: Log, namespace: str) -> list[str]:
    return [record.name for record in log.records_after(namespace, 0)]


def test_every_namespace_is_kept_where_none_was_opened() -> None:
    log = Log()
    append(log, "a", namespace="one")
    assert names(log, "one") == ["a"]


def test_only_open_namespaces_are_kept() -> None:
    log = Log()
    log.open("one")
    for namespace in ("one", "two"):
        append(log, "a", namespace=namespace)
    assert (names(log, "one"), names(log, "two")) == (["a"], [])
    log.forget("one")
    append(log, "late", namespace="one", kind="DELETED")
    assert names(log, "one") == []
    log.open("three")
    append(log, "c", namespace="three")
    assert names(log, "three") == ["c"]


def test_the_last_states_of_read_records_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MIN_DROPPED", 4)
    log = Log()
    for name in "abc":
        append(log, name, namespace="one")
        append(log, name, namespace="two")
    last_read = append(log, "a", namespace="one", kind="MODIFIED")
    append(log, "b", namespace="one", kind="DELETED")
    unread_record = append(log, "c", namespace="one", kind="MODIFIED")
    log.condense("one", last_read.seq)
    assert log.records_after("one", last_read.seq)[-1] is unread_record and names(log, "one") == [
        "b",
        "c",
        "a",
        "b",
        "c",
    ]
    append(log, "c", namespace="one", kind="MODIFIED")
    log.condense("one", log.last_seq())
    assert names(log, "one") == ["b", "c", "a", "b", "c", "c"], "little can have become superfluous since"
    for _ in range(9):
        append(log, "c", namespace="one", kind="MODIFIED")
    log.condense("one", log.last_seq())
    assert names(log, "one") == ["a", "c"] and names(log, "two") == ["a", "b", "c"]
    last = log.last("pods", "one", "a")
    assert last is last_read, "a deletion that is noticed by a list needs it"


def test_condensing_costs_nothing_where_there_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    for _ in range(100):
        append(log, "a", namespace="one", kind="MODIFIED")
    log.condense("one", log.last_seq())
    log.condense("none", log.last_seq())
    assert len(names(log, "one")) == 100


def test_the_history_of_many_pods_stays_small_and_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the log is condensed, each record is inspected at most a few times."""
    looked, states = [], logs._last_states
    monkeypatch.setattr(logs, "_last_states", lambda records: states(looked.append(len(records)) or records))
    log, pods, changes = Log(), 5_000, 10
    for change in range(changes):
        for pod in range(pods):
            append(log, f"pod-{pod}", namespace="one", kind="MODIFIED" if change else "ADDED")
            if pod % 100 == 0:
                log.condense("one", log.last_seq())
    assert len(names(log, "one")) < 2 * pods + logs.MIN_DROPPED + 100
    assert 0 < sum(looked) < 2 * pods * changes


def test_many_deletions_that_a_list_shows_take_one_pass_over_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    log, passes, last_of = Log(), [], Log.last_of
    monkeypatch.setattr(
        Log, "last_of", lambda self, *arguments: (passes.append(arguments), last_of(self, *arguments))[1]
    )
    monkeypatch.setattr(Log, "last", lambda *arguments: pytest.fail("one by one"))
    feed = _Feed(log, Watched(PODS))
    pods = [
        envelope(orjson.dumps({"metadata": {"name": name, "namespace": space, "uid": uid, "resourceVersion": "1"}}))
        for space in ("one", "two")
        for name, uid in (("a", f"u-{space}"), ("b", "v"), ("c", "w"))
    ]
    feed.on_list(pods)
    recreated = orjson.dumps({"metadata": {"name": "a", "namespace": "two", "uid": "new", "resourceVersion": "9"}})
    feed.on_list([*pods[:1], envelope(recreated)])
    changes = [(record.kind, record.name, record.uid) for record in log.records_after("two", 3)]
    assert changes[3:] == [
        ("DELETED", "b", "v"),
        ("DELETED", "c", "w"),
        ("DELETED", "a", "u-two"),
        ("ADDED", "a", "new"),
    ]
    assert [record.name for record in log.records_after("one", 3)] == ["b", "c"]
    assert len(passes) == 2


def test_the_last_state_of_nodes_is_kept_between_tests() -> None:
    log = Log()
    log.open("one")
    for _ in range(100):
        append(log, "n1", namespace="", kind="MODIFIED", resource="nodes")
    append(log, "n2", namespace="", resource="nodes")
    append(log, "n2", namespace="", kind="DELETED", resource="nodes")
    assert len(names(log, "one")) == 102
    log.forget("one")
    log.open("two")
    assert names(log, "two") == ["n1"]
    assert History(log, "two").view().names("nodes") == ["n1"]


def test_large_objects_are_kept_in_a_file_and_read_as_they_came() -> None:
    log = Log()
    log.open("one")
    small, large = (
        append(log, "a", namespace="one"),
        append(log, "b", namespace="one", padding="x" * (logs.LARGE_OBJECT_BYTES + 1)),
    )
    assert isinstance(small._raw, bytes)
    assert not isinstance(large._raw, bytes)
    assert orjson.loads(large.raw)["more"] == large.object["more"] == "x" * (logs.LARGE_OBJECT_BYTES + 1)
    assert [record.object["metadata"]["name"] for record in log.records_after("one", 0)] == ["a", "b"]
    log.forget("one")
    assert large.object["metadata"]["name"] == "b"  # a reader that has the record can still read it


def test_the_file_of_a_namespace_is_deleted_with_its_last_reader() -> None:
    log = Log()
    log.open("one")
    large = append(log, "b", namespace="one", padding="x" * (logs.LARGE_OBJECT_BYTES + 1))
    assert large.object["metadata"]["name"] == "b"
    file = weakref.ref(log._spill_files["one"])
    log.forget("one")
    del large
    gc.collect()
    assert file() is None


@pytest.mark.parametrize("opened", [True, False])
def test_objects_missing_in_a_list_are_deleted_with_their_last_state(opened: bool) -> None:
    log = Log()
    log.open("one" if opened else "other")
    feed = _Feed(log, Watched(PODS))
    metadata = {"name": "a", "namespace": "one", "uid": "u", "resourceVersion": "5", "labels": {"x": "y"}}
    feed.on_list([envelope(orjson.dumps({"metadata": metadata}))])
    feed.on_list([])
    records = log.records_after("one", 0)
    assert [record.kind for record in records] == (["ADDED", "DELETED"] if opened else [])
    assert all(record.object["metadata"]["labels"] == {"x": "y"} for record in records)


def test_many_objects_that_are_just_not_large_stay_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for decoded objects as well, and condensed or forgotten records free memory."""
    monkeypatch.setattr(logs, "MAX_MEMORY_BYTES", 10_000)
    log = Log()
    log.open("one")
    for version in range(100):
        append(log, f"p{version % 3}", namespace="one", kind="MODIFIED", padding="x" * 1_000)
    records = log.records_after("one", 0)
    assert 8_000 < sum(record.in_memory for record in records) == log._memory_bytes["one"] <= 10_000
    assert [record.object["metadata"]["name"] for record in records] == [f"p{n % 3}" for n in range(100)]
    monkeypatch.setattr(logs, "MIN_DROPPED", 0)
    log.condense("one", log.last_seq())
    assert log._memory_bytes["one"] == 0 and log._spill_files == {}
    assert isinstance(append(log, "a", namespace="one")._raw, bytes)
    log.forget("one")
    assert not any(log._memory_bytes.values())


def test_a_worker_stays_below_its_bound_under_many_large_writes() -> None:
    """20,000 objects of 60 KiB take 1.3 GiB, and several times as much when they are decoded."""
    output = subprocess.run([sys.executable, "-c", _LARGE_WRITES], capture_output=True, text=True, check=True).stdout
    assert int(output) < 500, f"{output} MiB"


_LARGE_WRITES = """
import orjson
from conformance.history.log import Log

log = Log()
log.open("one")
raw = orjson.dumps({"metadata": {"name": "p"}, "fields": {f"field-{n}": {"f:value": n} for n in range(1_900)}})
assert 50_000 < len(raw) < 1 << 16, len(raw)
for number in range(20_000):
    how = {"namespace": "one", "name": "p", "uid": "u", "version": str(number), "raw": bytes(bytearray(raw))}
    record = log.append("MODIFIED", "pods", **how)
    if record.in_memory or number % 100 == 0:
        record.object
assert log.last_seq() == 20_000
# Unlike ru_maxrss, this does not begin with the memory of the process that has started this one.
[peak] = [line for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak.split()[1]) >> 10)
"""
