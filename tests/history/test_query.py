"""Tests of waits, queries, saved histories and timelines."""

from __future__ import annotations

import threading
import time

import pytest

from conformance.errors import HarnessError, UsageError
from conformance.evidence import timeline
from conformance.history.query import IDLE_SECONDS, POLL_SECONDS, History, Unmet, WaitTimeout
from tests.history.scripted import Scripted
from tests.history.story import Story

A = {"gang": "s-0", "clique": "s-0-a"}


def bound(view):
    pods = view.list("pods")
    return [p["metadata"]["name"] for p in pods if p["spec"].get("nodeName")] or Unmet(f"0 of {len(pods)} bound")


def test_a_wait_returns_if_its_condition_already_holds(story):
    story.pod("a1", **A, node="n1")
    assert story.history.wait("bound", bound, 0) == ["a1"]


def test_a_wait_ends_with_the_relevant_record(story):
    story.pod("a1", **A)
    story.keep_pace()
    timer = threading.Timer(0.05, lambda: story.pod("a1", **A, node="n1", after=0.05))
    timer.start()
    start = time.monotonic()
    assert story.history.wait("bound", bound, 5) == ["a1"]
    assert time.monotonic() - start < 2
    timer.join()


def test_a_timeout_reports_the_nearest_miss_and_the_last_state(story):
    story.pod("a1", **A, gated=True)
    with pytest.raises(WaitTimeout) as caught:
        story.history.wait("one pod is bound", bound, 0.05)
    text = str(caught.value)
    assert caught.value.unmet == "0 of 1 bound"
    assert "one pod is bound" in text
    assert "pods/a1: gated" in text


def test_events_wake_no_wait(story):
    sequences = []
    story.history.wait("first", lambda view: True, 0)
    story.keep_pace()
    story.record("events", "e1", {}, after=0)
    with pytest.raises(WaitTimeout):
        story.history.wait("never", lambda view: sequences.append(view.seq), 0.05)
    assert len(sequences) == 1


def test_a_dead_recorder_ends_every_wait(story):
    story.log.fail(HarnessError("the recorder died"))
    with pytest.raises(HarnessError, match="recorder died"):
        story.history.wait("anything", lambda view: None, 5)


def test_other_namespaces_are_not_seen_but_nodes_are(story):
    story.pod("a1", **A)
    story.record("nodes", "n1", {})
    other_history = History(story.log, "elsewhere")
    assert other_history.view().names("pods") == []
    assert other_history.view().names("nodes") == ["n1"]


def test_a_view_of_the_past_stays_as_it_was(story):
    first = story.pod("a1", **A, gated=True)
    story.pod("a1", **A, node="n1")
    assert story.history.view(first.seq).get("pods", "a1")["spec"].get("nodeName") is None
    now = story.history.view()
    story.delete("pods", "a1")
    assert now.names("pods") == ["a1"]
    assert story.history.view().names("pods") == []


def test_labels_are_looked_up_in_every_state(story):
    story.pod("a1", **A)
    story.pod("b1", gang="s-0", clique="s-0-b")
    selector = {"grove.io/podclique": "s-0-a"}
    assert story.history.wait("", lambda view: view.names("pods", selector), 0) == ["a1"]
    story.pod("b1", gang="s-0", clique="s-0-a")
    assert story.history.view().names("pods", selector) == ["a1", "b1"]
    assert story.history.wait("", lambda view: view.names("pods", {**selector, "grove.io/podgang": "s-0"}), 0) == [
        "a1",
        "b1",
    ]
    story.delete("pods", "a1")
    assert story.history.wait("", lambda view: view.names("pods", selector), 0) == ["b1"]


@pytest.fixture
def scripted():
    """A story that continues while a wait is going on, without real time passing."""
    return Story(Scripted())


def later(story, moments, append) -> None:
    def sentence() -> None:
        story.keep_pace()
        append()

    for moment in moments:
        story.log.later(moment, sentence)


def test_a_wait_continues_while_the_state_changes(scripted):
    later(scripted, [0.9, 5.8, 10.7], lambda: scripted.pod("a1", **A, after=0))
    later(scripted, [15.6], lambda: scripted.pod("a1", **A, node="n1", after=0))
    assert scripted.history.wait("bound", bound, 1, max_seconds=60) == ["a1"]
    assert scripted.log.now() == 15.6


def test_a_wait_without_an_extension_ends_in_time(scripted):
    later(scripted, [0.9, 5.8], lambda: scripted.pod("a1", **A, after=0))
    with pytest.raises(WaitTimeout):
        scripted.history.wait("bound", bound, 1)
    assert scripted.log.now() == 1


def test_a_wait_ends_when_nothing_has_moved_for_a_while(scripted):
    later(scripted, [0.9], lambda: scripted.pod("a1", **A, after=0))
    later(scripted, [2, 4, 6], lambda: scripted.record("nodes", "n1", {}, after=0))  # changes of nodes are not progress
    with pytest.raises(WaitTimeout, match="not seen within 6 s"):
        scripted.history.wait("bound", bound, 1, max_seconds=60)
    assert scripted.log.now() == pytest.approx(0.9 + IDLE_SECONDS)


def test_a_wait_without_any_change_ends_in_time(scripted):
    with pytest.raises(WaitTimeout):
        scripted.history.wait("bound", bound, 1, max_seconds=60)
    assert scripted.log.now() == 1


def test_a_wait_ends_although_changes_never_stop(scripted):
    later(scripted, range(1, 99), lambda: scripted.pod("a1", **A, after=0))
    with pytest.raises(WaitTimeout):
        scripted.history.wait("bound", bound, 1, max_seconds=20)
    assert scripted.log.now() == 20


def test_a_wait_ends_although_changes_come_faster_than_checks(scripted):
    looks = []

    def slow(view):
        looks.append(len(looks))
        assert len(looks) < 500, "this wait never ends"
        scripted.log.clock += 0.1
        scripted.keep_pace()
        scripted.pod("a1", **A, after=0)

    with pytest.raises(WaitTimeout, match="not seen within 20 s"):
        scripted.history.wait("bound", slow, 1, max_seconds=20)
    assert len(looks) <= 201 + 1


def test_a_hopeless_wait_ends_early(scripted):
    later(scripted, [0.5], lambda: scripted.pod("a1", **A, after=0))
    with pytest.raises(WaitTimeout):
        scripted.history.wait("bound", bound, 30, max_seconds=60, is_hopeless=lambda: "it died")
    assert scripted.log.now() == pytest.approx(0.5 + POLL_SECONDS)


def test_quiet_considers_only_the_requested_resources(scripted):
    later(scripted, [0.5, 1, 1.5], lambda: scripted.record("nodes", "n1", {}, after=0))
    later(scripted, [2], lambda: scripted.pod("a1", **A, after=0))
    scripted.history.quiet(0.7, 9)
    assert scripted.log.now() == pytest.approx(0.7)
    scripted.history.quiet(0.7, 9, resources=("nodes",))
    assert scripted.log.now() == pytest.approx(2.2)
    assert scripted.history.quiet(0.7, 9) == 4


def test_quiet_ends_with_the_change_after_which_something_holds(scripted):
    later(scripted, [0.5], lambda: scripted.pod("a1", **A, after=0))
    later(scripted, [1], lambda: scripted.pod("a2", **A, after=0))
    scripted.history.quiet(3, 9, unless=lambda view: view.get("pods", "a2") is not None)
    assert scripted.log.now() == pytest.approx(1)


def test_quiet_waits_for_the_last_change(story):
    story.pod("a1", **A)
    story.keep_pace()
    assert story.history.quiet(0.05, 1) == 1
    with pytest.raises(WaitTimeout):
        story.history.quiet(1, 0.05)


@pytest.mark.parametrize("name", ["history.jsonl", "history.jsonl.gz"])
def test_a_saved_history_is_the_same_byte_for_byte(story, tmp_path, name):
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.delete("pods", "a1")
    story.history.save(tmp_path / name)
    loaded = History.load(tmp_path / name)
    assert [(r.seq, r.at, r.kind, r.raw) for r in loaded.records()] == [
        (r.seq, r.at, r.kind, r.raw) for r in story.history.records()
    ]
    assert loaded.view().names("podgangs") == ["s-0"]


def test_a_cut_file_is_refused_by_line(story, tmp_path):
    story.pod("a1", **A)
    path = tmp_path / "history.jsonl"
    story.history.save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UsageError, match=r"history.jsonl:2: no record"):
        History.load(path)


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[:-20], lambda b: b[:15] + bytes(20) + b[35:], lambda b: b[:-8] + bytes(8)],
    ids=["cut", "overwritten", "wrong checksum"],
)
def test_a_damaged_compressed_file_is_refused(story, tmp_path, damage):
    story.pod("a1", **A)
    path = tmp_path / "history.jsonl.gz"
    story.history.save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UsageError, match=r"history.jsonl.gz: no saved history"):
        History.load(path)


def test_the_timeline_has_a_lane_for_each_object_with_its_changes(story):
    story.owned("podcliquesets", "s", None, replicas=1)
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a1", **A)
    story.pod("a1", **A, node="n1")
    story.owned("services", "s-0", None)
    text = timeline.render(story.history, marks=[(9.0, "here it failed")])
    lanes = text.splitlines()
    assert "here it failed" in lanes[0]
    assert [lane.split()[:2] for lane in lanes[1:]] == [
        ["set", "s"],
        ["gang", "s-0"],
        ["pod", "a1"],
        ["service", "s-0"],
    ]
    assert "gated → +2.000 waiting → +2.500 bound on n1" in lanes[3]


def test_a_thousand_pods_cost_little(story):
    """After five records per pod, a thousand waits that each see one new record take far less than two seconds."""
    for step in range(5):
        for number in range(1000):
            clique = f"s-0-{number % 100}"
            story.pod(f"p{number}", gang="s-0", clique=clique, node="n" if step else "", after=0)
    story.history.wait("indexed", lambda view: view.names("pods", {"grove.io/podclique": "s-0-7"}), 0)
    story.keep_pace()
    start = time.process_time()
    for number in range(1000):
        story.pod(f"p{number}", gang="s-0", clique="s-0-7", node="m", after=0)
        story.history.wait("", lambda view: view.record("pods", "p7") is not None, 1)
    assert time.process_time() - start < 2
