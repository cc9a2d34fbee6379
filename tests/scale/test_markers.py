"""Markers from a history made by hand."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from conformance.history.log import Log
from conformance.history.record import ADDED, DELETED, MODIFIED
from conformance.scale.markers import Tracker, percentiles

SPACE = "space"


class Teller:
    def __init__(self) -> None:
        self.log = Log()
        self.tracker = Tracker(self.log, SPACE)

    def tell(self, at: float, kind: str, resource: str, name: str, namespace: str = SPACE, **document: Any) -> None:
        self.log.append(
            kind,
            resource,
            namespace=namespace,
            name=name,
            uid=f"uid-{name}",
            version="1",
            raw=orjson.dumps(document),
            at=at,
        )

    def heard(self) -> Tracker:
        self.tracker.until(lambda tracker: tracker._seq >= self.log.last_seq(), 1, lambda tracker: None)
        return self.tracker


@pytest.fixture
def teller() -> Teller:
    return Teller()


def ready(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status}]}


def test_a_pod_is_timed_at_each_first_sight(teller: Teller) -> None:
    teller.tell(1, ADDED, "pods", "a", spec={})
    teller.tell(2, MODIFIED, "pods", "a", spec={"nodeName": "n"})
    teller.tell(3, MODIFIED, "pods", "a", spec={"nodeName": "n"}, status=ready("False"))
    teller.tell(4, MODIFIED, "pods", "a", spec={"nodeName": "n"}, status=ready("True"))
    teller.tell(5, MODIFIED, "pods", "a", spec={"nodeName": "n"}, status=ready("True"))
    teller.tell(6, DELETED, "pods", "a")
    heard = teller.heard()
    [times] = heard.pods.values()
    assert (times.created, times.scheduled, times.ready, times.deleted) == (1, 2, 4, 6)
    assert (heard.scheduled, heard.ready, heard.deleted, heard.left) == (1, 1, 1, 0)


def test_a_pod_made_anew_under_its_old_name_is_another(teller: Teller) -> None:
    teller.tell(1, ADDED, "pods", "a")
    teller.tell(2, DELETED, "pods", "a")
    teller.log.append(ADDED, "pods", namespace=SPACE, name="a", uid="other", version="3", raw=b"{}", at=3)
    heard = teller.heard()
    assert [times.created for times in heard.pods.values()] == [1, 3] and heard.left == 1


def test_other_namespaces_do_not_count(teller: Teller) -> None:
    teller.tell(1, ADDED, "pods", "a", namespace="other")
    teller.tell(1, ADDED, "nodes", "n", namespace="")
    teller.tell(2, ADDED, "pods", "b")
    assert len(teller.heard().pods) == 1


def test_available_is_timed_when_it_last_rose(teller: Teller) -> None:
    for at, count in ((1, 0), (2, 1), (3, 4), (4, 4), (5, 3)):
        teller.tell(at, MODIFIED, "podcliquesets", "s", status={"availableReplicas": count})
    heard = teller.heard()
    assert (heard.first_available_at, heard.available_at, heard.available) == (2, 3, 3)


def test_the_set_and_its_children_are_timed_when_they_go(teller: Teller) -> None:
    teller.tell(1, ADDED, "podcliquesets", "s")
    teller.tell(1, ADDED, "podcliques", "s-0-a")
    teller.tell(2, DELETED, "podcliquesets", "s")
    assert (teller.heard().set_gone_at, teller.tracker.children_gone_at, teller.tracker.left) == (2, None, 1)
    teller.tell(3, DELETED, "podcliques", "s-0-a")
    assert (teller.heard().children_gone_at, teller.tracker.left) == (3, 0)


def test_what_does_not_come_ends_at_the_time_limit(teller: Teller) -> None:
    assert not teller.tracker.until(lambda tracker: False, 0.01, lambda tracker: None)


def test_percentiles_are_nearest_ranks() -> None:
    assert percentiles([]) == {}
    assert percentiles([2.0]) == {"p50": 2, "p90": 2, "p99": 2, "max": 2}
    assert percentiles([float(n) for n in range(100, 0, -1)]) == {"p50": 50, "p90": 90, "p99": 99, "max": 100}
