"""Tests of the times and markers that a tracker computes from a handwritten history."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from conformance.grove import labels
from conformance.history import log as logs
from conformance.history.log import Log
from conformance.history.record import ADDED, DELETED, MODIFIED
from conformance.scale.markers import MARKERS, Target, conditions, is_over, markers_of
from conformance.scale.phases import Action, LoadPhase, Until
from conformance.scale.play import count_replicas
from conformance.scale.tracker import Tracker, percentiles

NAMESPACE = "space"


class Feed:
    def __init__(self) -> None:
        self.log = Log()
        self.tracker = Tracker(self.log, NAMESPACE)

    def add(
        self,
        time: float,
        kind: str,
        resource: str,
        name: str,
        *,
        namespace: str = NAMESPACE,
        uid: str = "",
        listed: bool = False,
        **document: Any,
    ) -> None:
        self.log.append(
            kind,
            resource,
            namespace=namespace,
            name=name,
            uid=uid or f"uid-{name}",
            version="1",
            raw=orjson.dumps(document),
            at=time,
            listed=listed,
        )

    def read(self) -> Tracker:
        self.tracker.read()
        return self.tracker


@pytest.fixture
def feed() -> Feed:
    return Feed()


def ready_status(status: str) -> dict[str, Any]:
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}


def phase(
    end_condition: Until, action: Action = Action.PATCH, replicas: int = 2, previous_replicas: int = 0
) -> LoadPhase:
    return LoadPhase("it", action, end_condition, replicas, previous_replicas)


def test_each_state_of_a_pod_has_the_time_of_its_first_event(feed: Feed) -> None:
    feed.add(1, ADDED, "pods", "a", spec={"schedulingGates": [{"name": "gate"}]})
    feed.add(2, MODIFIED, "pods", "a", spec={})
    feed.add(3, MODIFIED, "pods", "a", spec={"nodeName": "n"})
    feed.add(4, MODIFIED, "pods", "a", spec={"nodeName": "n"}, status=ready_status("False"))
    feed.add(5, MODIFIED, "pods", "a", spec={"nodeName": "n"}, status=ready_status("True"))
    feed.add(6, MODIFIED, "pods", "a", spec={"nodeName": "n"}, status=ready_status("True"))
    tracker = feed.read()
    assert (tracker.present, tracker.bound, tracker.ready, tracker.remaining_objects) == (1, 1, 1, 1)
    feed.add(7, DELETED, "pods", "a")
    tracker = feed.read()
    [times] = tracker.pods.values()
    assert (times.created, times.ungated, times.bound, times.running, times.ready) == (1, 2, 3, 4, 5)
    assert (
        times.deleted,
        tracker.present,
        tracker.bound,
        tracker.ready,
        tracker.deleted,
        tracker.remaining_objects,
    ) == (7, 0, 0, 0, 1, 0)


def test_a_pod_that_is_no_longer_ready_does_not_count(feed: Feed) -> None:
    feed.add(1, ADDED, "pods", "a", spec={"nodeName": "n"}, status=ready_status("True"))
    feed.add(
        2, MODIFIED, "pods", "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, status=ready_status("False")
    )
    tracker = feed.read()
    assert (tracker.ready, tracker.terminating, tracker.present) == (0, 1, 1)


def test_a_recreated_pod_with_the_same_name_is_another_pod(feed: Feed) -> None:
    feed.add(1, ADDED, "pods", "a")
    feed.add(2, DELETED, "pods", "a")
    feed.add(3, ADDED, "pods", "a", uid="other")
    tracker = feed.read()
    assert [times.created for times in tracker.pods.values()] == [1, 3] and tracker.present == 1


def test_other_namespaces_do_not_count(feed: Feed) -> None:
    feed.add(1, ADDED, "pods", "a", namespace="other")
    feed.add(1, ADDED, "nodes", "n", namespace="")
    feed.add(2, ADDED, "pods", "b")
    assert len(feed.read().pods) == 1


def test_records_of_a_list_are_counted_because_their_times_are_not_exact(feed: Feed) -> None:
    feed.add(1, ADDED, "pods", "a")
    feed.add(2, ADDED, "pods", "b", listed=True)
    assert feed.read().uncertain_records == 1


def test_if_not_all_pods_fit_the_phase_ends_with_those_that_fit(feed: Feed) -> None:
    deploy, target = phase(Until.SETTLED, Action.CREATE), Target(2, 2, 1, 0, 0, room=1)
    feed.tracker.mark(conditions(deploy, target), 0.5)
    feed.add(1, ADDED, "podcliquesets", "s", metadata={"generation": 1}, status={"availableReplicas": 0})
    feed.add(2, ADDED, "pods", "a", spec={"nodeName": "n"}, status=ready_status("True"))
    assert not is_over(deploy, feed.read(), target)  # the waiting pod must also exist
    feed.add(3, ADDED, "pods", "b")
    tracker = feed.read()
    assert is_over(deploy, tracker, target) and tracker.times["pods-ready"] == 2 and tracker.times["pods-created"] == 3


def test_replicas_are_counted_as_whole_torn_or_waiting() -> None:
    def pod(index: str, **spec: str) -> dict[str, Any]:
        return {"metadata": {"labels": {labels.SET_INDEX: index}}, "spec": spec}

    pods = [pod("0", nodeName="n"), pod("0", nodeName="m"), pod("1", nodeName="n"), pod("1"), pod("2"), pod("2")]
    assert count_replicas(pods, 2) == {"whole": 1, "torn": 1, "waiting": 1}


def test_upstreams_markers_have_upstreams_definitions(feed: Feed) -> None:
    """`pcs-available` marks the first available replica (E2E-314). `pcs-all-available`, which upstream does not have,
    marks the time when all replicas are available."""
    deploy = phase(Until.SETTLED, Action.CREATE)
    feed.tracker.mark(conditions(deploy, Target(2, 2, 1, 0, 0)), 0.5)
    feed.add(1, ADDED, "podcliquesets", "s", metadata={"generation": 1}, status={"availableReplicas": 0})
    feed.add(2, ADDED, "pods", "a", spec={"nodeName": "n"}, status=ready_status("True"))
    feed.add(3, MODIFIED, "podcliquesets", "s", status={"availableReplicas": 1})
    feed.add(4, ADDED, "pods", "b")
    feed.add(5, MODIFIED, "pods", "b", spec={"nodeName": "n"}, status=ready_status("True"))
    tracker = feed.read()
    assert not is_over(deploy, tracker, Target(2, 2, 1, 0, 0))
    feed.add(6, MODIFIED, "podcliquesets", "s", status={"availableReplicas": 2})
    feed.add(7, MODIFIED, "podcliquesets", "s", status={"availableReplicas": 2})
    assert is_over(deploy, feed.read(), Target(2, 2, 1, 0, 0))
    assert tracker.times == {
        "first-pod-created": 2,
        "pcs-available": 3,
        "pods-created": 4,
        "pods-scheduled": 5,
        "pods-ready": 5,
        "pcs-all-available": 6,
    }


def test_a_deletion_ends_when_nothing_is_left(feed: Feed) -> None:
    feed.add(1, ADDED, "podcliquesets", "s")
    feed.add(1, ADDED, "podcliques", "s-0-a")
    feed.add(1, ADDED, "pods", "a")
    feed.read()
    delete = phase(Until.GONE, Action.DELETE, replicas=0, previous_replicas=1)
    target = Target(0, 0, 1, 1, 0)
    feed.tracker.mark(conditions(delete, target), 1.5)
    feed.add(2, DELETED, "podcliquesets", "s")
    feed.add(3, DELETED, "pods", "a")
    assert not is_over(delete, feed.read(), target)
    feed.add(4, DELETED, "podcliques", "s-0-a")
    assert is_over(delete, feed.read(), target)
    assert feed.tracker.times == {"pcs-deleted": 2, "pods-deleted": 3, "all-deleted": 4}


def test_an_update_is_over_when_the_status_reports_its_end_for_this_generation(feed: Feed) -> None:
    update, target = phase(Until.UPDATED, replicas=1), Target(1, 1, 2, 1, 0)
    updated_status = {"availableReplicas": 1, "updatedReplicas": 1}
    feed.add(1, ADDED, "podcliquesets", "s", status={**updated_status, "observedGeneration": 1})
    feed.add(1, ADDED, "pods", "a", status=ready_status("True"))
    assert not is_over(update, feed.read(), target)
    feed.add(
        2, MODIFIED, "podcliquesets", "s", status={**updated_status, "observedGeneration": 2, "updateProgress": {}}
    )
    assert not is_over(update, feed.read(), target)
    ended_progress = {"updateProgress": {"updateEndedAt": "2026-01-01T00:00:00Z"}}
    feed.add(3, MODIFIED, "podcliquesets", "s", status={**updated_status, "observedGeneration": 2, **ended_progress})
    assert is_over(update, feed.read(), target)


def test_a_condition_that_holds_from_the_start_has_the_start_time(feed: Feed) -> None:
    feed.add(1, ADDED, "podcliquesets", "s", status={"availableReplicas": 1, "observedGeneration": 1})
    feed.read()
    feed.tracker.mark(conditions(phase(Until.OBSERVED), Target(1, 1, 1, 0, 0)), 5)
    assert feed.tracker.times == {"pcs-observed": 5, "pcs-still-available": 5}


def test_every_phase_has_known_markers() -> None:
    for until in Until:
        for previous in (0, 5):
            assert set(markers_of(phase(until, previous_replicas=previous))) <= set(MARKERS)


def test_records_that_were_read_can_be_dropped(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MIN_DROPPED", 1)
    feed.add(1, ADDED, "pods", "a")
    feed.add(2, MODIFIED, "pods", "a", spec={"nodeName": "n"})
    feed.read().drop_read()
    assert len(feed.log.records_after(NAMESPACE, 0)) == 1
    feed.add(3, MODIFIED, "pods", "a", spec={"nodeName": "n"}, status=ready_status("True"))
    assert (feed.read().ready, feed.tracker.present) == (1, 1)


def test_following_a_shared_log_drops_nothing(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conformance test later judges the whole history."""
    monkeypatch.setattr(logs, "MIN_DROPPED", 1)
    for time in range(9):
        feed.add(time, MODIFIED, "pods", "a")
    feed.tracker.wait_until(lambda tracker: tracker.present == 1, 1, lambda tracker: None)
    feed.read()
    assert len(feed.log.records_after(NAMESPACE, 0)) == 9


def test_waiting_ends_at_the_time_limit(feed: Feed) -> None:
    assert not feed.tracker.wait_until(lambda tracker: False, 0.01, lambda tracker: None)


def test_percentiles_are_nearest_ranks() -> None:
    assert percentiles([]) == {}
    assert percentiles([2.0]) == {"p50": 2, "p90": 2, "p99": 2, "max": 2}
    assert percentiles([float(n) for n in range(100, 0, -1)]) == {"p50": 50, "p90": 90, "p99": 99, "max": 100}
