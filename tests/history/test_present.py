"""Tests of judging while the watch of one resource lags behind the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance import invariants
from conformance.errors import HarnessError
from conformance.history.log import Completeness
from conformance.history.query import History, Unmet, WaitTimeout
from conformance.history.record import Record
from conformance.history.recorder import Recorder, Stopped
from tests.history.scripted import Scripted
from tests.history.story import SPACE, Story


class Lagging(Scripted):
    """A log that holds back the records of one resource until a reader asks for a complete log, or forever if `ever` is
    false."""

    def __init__(self, resource: str, *, ever: bool = True) -> None:
        super().__init__()
        self._resource, self._ever = resource, ever
        self._delayed: list[Callable[[], Record]] = []

    def append(self, kind: str, resource: str, **options: object) -> Record:
        def write() -> Record:
            return super(Lagging, self).append(kind, resource, **options)

        if resource == self._resource:
            self._delayed.append(write)
        else:
            write()
        return None

    def complete(self, namespace: str, timeout: float) -> Completeness:
        if not self._ever:
            return Completeness(0, self._resource)
        for write in self._delayed:
            write()
        self._delayed.clear()
        return Completeness()


def record_set(story: Story, *, referenced: bool = True) -> None:
    """Record a set with one pod, which is ungated after its gang has referenced it, or is not referenced at all."""
    story.owned("podcliquesets", "s", None)
    story.owned("podcliques", "s-0-a", ("podcliquesets", "s"))
    of = {"gang": "s-0", "clique": "s-0-a", "owner": ("podcliques", "s-0-a")}
    of["extra"] = {"app.kubernetes.io/managed-by": "grove-operator"}
    story.pod("a1", gated=True, **of)
    story.gang("s-0", {"s-0-a": (1, ["a1"] if referenced else [])}, owner=("podcliquesets", "s"))
    story.pod("a1", **of)


def verdicts(log: Scripted, *, referenced: bool = True) -> dict[str, bool | None]:
    """Return the verdict of each invariant by its id."""
    story = Story(log)
    record_set(story, referenced=referenced)
    story.node("n1", pods="1")
    story.pod("a1", node="n1", gang="s-0", clique="s-0-a", owner=("podcliques", "s-0-a"))
    return {verdict.id: verdict.holds for verdict in invariants.judge(story.history)}


@pytest.mark.parametrize("resource", ["pods", "podgangs", "podcliques", "podcliquesets", "nodes"])
@pytest.mark.parametrize("referenced", [True, False])
def test_a_lag_of_one_watch_changes_no_verdict(resource: str, referenced: bool) -> None:
    assert verdicts(Lagging(resource), referenced=referenced) == verdicts(Scripted(), referenced=referenced)


def test_a_history_that_never_becomes_complete_is_a_harness_error() -> None:
    """An unknown result would block the requirement, and the implementation would be blamed for that."""
    with pytest.raises(HarnessError, match="podcliques"):
        verdicts(Lagging("podcliques", ever=False))


def test_a_view_is_consistent() -> None:
    story = Story(Lagging("podcliques"))
    record_set(story)
    assert story.history.view().names("podcliques") == ["s-0-a"]
    assert [record.name for record in story.history.records("podcliques")] == ["s-0-a"]


def test_a_view_that_cannot_be_complete_is_a_harness_error() -> None:
    story = Story(Lagging("podcliques", ever=False))
    record_set(story)
    with pytest.raises(HarnessError, match="podcliques"):
        story.history.view()


def test_only_records_of_complete_times_are_compared() -> None:
    class Cut(Scripted):
        def complete(self, namespace: str, timeout: float) -> Completeness:
            return Completeness(102)

    story = Story(Cut())
    record_set(story)  # revisions 101 to 105
    assert [record.revision for record in story.history.records()] == [101, 102]
    assert story.history.view().names("pods") == []


def test_a_wait_checks_late_records_before_it_times_out() -> None:
    story = Story(Lagging("podcliques"))
    record_set(story)
    assert story.history.wait("a clique", lambda view: view.names("podcliques") or Unmet("none"), 5) == ["s-0-a"]
    with pytest.raises(WaitTimeout):
        story.history.wait("another exists", lambda view: view.get("podcliques", "b") is not None, 5)


def test_the_present_moves_on_while_nothing_arrives() -> None:
    story = Story(Lagging("podcliques"))
    story.pod("a1")
    assert story.history.view().names("podcliques") == []
    story.owned("podcliques", "s-0-a", None)
    story.log.clock += 60
    assert story.history.view().names("podcliques") == ["s-0-a"]


def test_nothing_is_judged_by_the_records_of_a_recorder_that_died() -> None:
    story = Story(Recorder("kubeconfig"))
    record_set(story)
    story.log.fail(HarnessError("the recorder died"))
    with pytest.raises(HarnessError, match="the recorder died"):
        story.history.view()
    with pytest.raises(HarnessError, match="the recorder died"):
        invariants.judge(story.history)
    story.history.end()  # a bundle gets what was recorded
    assert story.history.view().names("pods") == ["a1"]


def test_the_records_of_a_stopped_recorder_stay_readable() -> None:
    story = Story(Recorder("kubeconfig"))
    record_set(story)
    story.log.fail(Stopped())
    assert story.history.view().names("pods") == ["a1"]


def test_records_after_the_end_are_not_waited_for() -> None:
    story = Story(Lagging("podcliques", ever=False))
    record_set(story)
    story.history.end()
    assert story.history.view().names("pods") == ["a1"]


def test_a_late_record_is_dated_by_the_revision_that_the_server_had_reached() -> None:
    log = Scripted()
    for moment, revision in ((0.0, 100), (1.0, 110), (2.0, 120)):
        log.clock = moment
        log.record_revision(revision)

    def arrival(version: int, moment: float) -> float:
        log.clock = moment
        fields = {"namespace": SPACE, "name": "a", "uid": "u", "raw": b"{}"}
        return log.append("ADDED", "pods", version=str(version), **fields).at

    assert arrival(110, 9.0) == 1.0
    assert arrival(115, 9.0) == 2.0
    assert arrival(125, 9.0) == 9.0
    assert arrival(115, 60.0) == 60.0  # so far behind that the revision may belong to another etcd


def test_a_predicate_uses_the_records_that_have_arrived() -> None:
    story = Story(Lagging("podcliques", ever=False))
    record_set(story)
    history: History = story.history
    assert history.wait("a pod", lambda _: history.view().names("pods"), 1) == ["a1"]
