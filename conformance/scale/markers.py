"""Timing markers from watch events: when how many pods were created, bound, ready, gone, and the set available.

A marker is the time at which the event arrived: timestamps of objects have whole seconds. Each record is read once, so
that watching costs little compared with what is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from conformance.history.log import Log
from conformance.history.record import DELETED, Record

GROVE = frozenset({"podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs", "services"})


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _PodSpec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 - the API's own word


class _PodStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _SetStatus(msgspec.Struct):
    availableReplicas: int = 0  # noqa: N815


class _Set(msgspec.Struct):
    status: _SetStatus = msgspec.field(default_factory=_SetStatus)


_pods, _sets = msgspec.json.Decoder(_Pod), msgspec.json.Decoder(_Set)


@dataclass
class PodTimes:
    """Seconds of the recorder's clock at which each state of one pod was first seen."""

    created: float
    scheduled: float | None = None
    ready: float | None = None
    deleted: float | None = None


@dataclass
class Tracker:
    """Follows one namespace of a log."""

    log: Log
    namespace: str
    pods: dict[str, PodTimes] = field(default_factory=dict)
    available: int = 0
    first_available_at: float | None = None
    available_at: float | None = None
    set_gone_at: float | None = None
    children_gone_at: float | None = None
    scheduled: int = 0
    ready: int = 0
    deleted: int = 0
    _seq: int = 0
    _grove: set[tuple[str, str]] = field(default_factory=set)

    def until(self, done: Callable[[Tracker], bool], timeout: float, progress: Callable[[Tracker], None]) -> bool:
        """Process records until `done` returns True; return False after `timeout` seconds. `progress` is called once a
        second."""
        deadline, told = self.log.now() + timeout, self.log.now()
        while not done(self):
            left = deadline - self.log.now()
            if left <= 0:
                return False
            for record in self.log.beyond(self.namespace, self._seq, min(left, 1.0)):
                self._seq = record.seq
                self._take(record)
            if self.log.now() - told >= 1.0:
                told = self.log.now()
                progress(self)
        return True

    def _take(self, record: Record) -> None:
        if record.namespace != self.namespace:
            return
        if record.resource == "pods":
            self._take_pod(record)
        elif record.resource in GROVE:
            self._take_grove(record)

    def _take_pod(self, record: Record) -> None:
        times = self.pods.get(record.uid)
        if times is None:
            times = self.pods[record.uid] = PodTimes(record.at)
        if record.kind == DELETED:
            times.deleted = record.at
            self.deleted += 1
            return
        pod = _pods.decode(record.raw)
        if times.scheduled is None and pod.spec.nodeName:
            times.scheduled = record.at
            self.scheduled += 1
        if times.ready is None and any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions):
            times.ready = record.at
            self.ready += 1

    def _take_grove(self, record: Record) -> None:
        key = (record.resource, record.name)
        if record.kind == DELETED:
            self._grove.discard(key)
            if record.resource == "podcliquesets":
                self.set_gone_at = record.at
            if not self._grove:
                self.children_gone_at = record.at
            return
        self._grove.add(key)
        if record.resource == "podcliquesets":
            available = _sets.decode(record.raw).status.availableReplicas
            if available > self.available:
                self.available_at = record.at
            if available and self.first_available_at is None:
                self.first_available_at = record.at
            self.available = available

    @property
    def left(self) -> int:
        """Return how many pods and Grove objects still exist."""
        return len(self.pods) - self.deleted + len(self._grove)


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return median, 90th and 99th percentile and maximum (nearest rank); empty for no values."""
    if not seconds:
        return {}
    ordered = sorted(seconds)

    def rank(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered)) - 1))], 3)

    return {"p50": rank(0.5), "p90": rank(0.9), "p99": rank(0.99), "max": round(ordered[-1], 3)}
