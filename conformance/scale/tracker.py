"""The state of one namespace, followed through watch events: its pods, its Grove objects and its PodCliqueSet.

The time of a change is the time at which its event arrived, because timestamps in objects have whole seconds. Each
record is read only once, so that watching costs little compared with the measured work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from conformance.grove.kinds import GROVE, PODCLIQUESETS, PODGANGMAPS
from conformance.history.log import Log
from conformance.history.record import DELETED, Record
from kube.resource import PODS, SERVICES

FOLLOWED_RESOURCES = frozenset(resource.plural for resource in (*GROVE, PODGANGMAPS, SERVICES))
"""The Grove objects and Services whose deletion is part of the deletion of the set."""


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    generation: int = 0
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduling_gates: list[msgspec.Raw] | None = None


class _PodStatus(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def ready(self) -> bool:
        return any(
            condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions or ()
        )


class _Progress(msgspec.Struct, rename="camel"):
    update_ended_at: str | None = None


class SetStatus(msgspec.Struct, rename="camel"):
    """The part of a PodCliqueSet's status that the markers read."""

    observed_generation: int = 0
    replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    update_progress: _Progress | None = None
    last_errors: list[msgspec.Raw] | None = None

    @property
    def update_ended(self) -> bool:
        """Return whether no update is in progress."""
        return self.update_progress is None or self.update_progress.update_ended_at is not None


class _Set(msgspec.Struct):
    status: SetStatus = msgspec.field(default_factory=SetStatus)


class _Any(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _CliqueSpec(msgspec.Struct):
    replicas: int | None = 1


class _CliqueStatus(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    ready_replicas: int | None = None
    updated_replicas: int | None = None
    last_errors: list[msgspec.Raw] | None = None


class ObservedClique(msgspec.Struct):
    """The part of a PodClique that the final check reads."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _CliqueSpec = msgspec.field(default_factory=_CliqueSpec)
    status: _CliqueStatus | None = None

    @property
    def has_last_errors(self) -> bool:
        """Return whether the status has lastErrors."""
        return self.status is not None and bool(self.status.last_errors)

    @property
    def is_current(self) -> bool:
        """Return whether the status is up to date: it is for the current generation, and all replicas are Ready and
        updated."""
        status, desired = self.status or _CliqueStatus(), self.spec.replicas
        observed = status.observed_generation >= self.metadata.generation
        return observed and status.ready_replicas == desired == status.updated_replicas


_POD_DECODER, _SET_DECODER, _ANY_DECODER = (
    msgspec.json.Decoder(_Pod),
    msgspec.json.Decoder(_Set),
    msgspec.json.Decoder(_Any),
)
_CLIQUE_DECODER = msgspec.json.Decoder(ObservedClique)


@dataclass
class PodTimes:
    """The times (in seconds of the recorder's clock) at which each state of one pod was first seen, and its current
    state."""

    created: float
    ungated: float | None = None
    bound: float | None = None
    running: float | None = None
    ready: float | None = None
    deleted: float | None = None
    is_ready: bool = False
    is_terminating: bool = False


@dataclass(frozen=True)
class ExistingObject:
    """An existing Grove object or Service."""

    terminating: bool
    record: Record

    @cached_property
    def clique(self) -> ObservedClique:
        """Return the object as a PodClique. It is decoded on demand, because a completely decoded object would need
        thirty times the memory."""
        return _CLIQUE_DECODER.decode(self.record.raw)


@dataclass
class Tracker:
    """Follows one namespace of a log. `mark` sets the conditions whose first times are recorded."""

    log: Log
    namespace: str
    pods: dict[str, PodTimes] = field(default_factory=dict)
    objects: dict[tuple[str, str], ExistingObject] = field(default_factory=dict)
    """The existing Grove objects and Services, by resource and name."""
    status: SetStatus = field(default_factory=SetStatus)
    set_exists: bool = False
    bound: int = 0
    """The number of existing pods that are bound; `ready` and `terminating` are counted in the same way."""
    ready: int = 0
    terminating: int = 0
    deleted: int = 0
    """The number of pods that have been deleted since the start."""
    uncertain_records: int = 0
    """The number of records that came from a list after the start. Such records show that the watch was interrupted, so
    times are not exact."""
    times: dict[str, float] = field(default_factory=dict)
    """Maps a marker to the time, in seconds of the recorder's clock, at which its condition was first true."""
    _pending: dict[str, Callable[[Tracker], bool]] = field(default_factory=dict)
    _seq: int = 0

    @property
    def present(self) -> int:
        """Return the number of existing pods, including those that are being deleted."""
        return len(self.pods) - self.deleted

    @property
    def remaining_objects(self) -> int:
        """Return the number of pods and Grove objects that still exist."""
        return self.present + len(self.objects)

    def mark(self, conditions: Mapping[str, Callable[[Tracker], bool]], start: float) -> None:
        """Forget the times of the last phase, and record when each of these conditions is first true, from `start`
        on."""
        self.times, self._pending = {}, dict(conditions)
        self._check(start)

    def wait_until(
        self, condition: Callable[[Tracker], bool], timeout: float, progress: Callable[[Tracker], None]
    ) -> bool:
        """Process records until `condition` returns True; return False after `timeout` seconds. `progress` is called
        once a second."""
        deadline, reported_at = self.log.now() + timeout, self.log.now()
        while not condition(self):
            remaining = deadline - self.log.now()
            if remaining <= 0:
                return False
            self.read(min(remaining, 1.0))
            if self.log.now() - reported_at >= 1.0:
                reported_at = self.log.now()
                progress(self)
        return True

    def read(self, timeout: float = 0.0) -> None:
        """Process the records that have arrived. If there are none, wait for at most `timeout` seconds for one."""
        for record in self.log.records_after(self.namespace, self._seq, timeout):
            self._seq = record.seq
            if record.namespace == self.namespace:
                self.uncertain_records += record.listed
                self._process(record)
                self._check(record.at)

    def drop_read(self) -> None:
        """Let the log drop the processed records if they have no other reader: the history of 10,000 pods would take 1
        GiB."""
        self.log.condense(self.namespace, self._seq)

    def _check(self, time: float) -> None:
        for name in [name for name, holds in self._pending.items() if holds(self)]:
            self.times[name] = time
            del self._pending[name]

    def _process(self, record: Record) -> None:
        if record.resource == PODS.plural:
            self._process_pod(record)
        elif record.resource in FOLLOWED_RESOURCES:
            self._process_object(record)

    def _process_pod(self, record: Record) -> None:
        times = self.pods.get(record.uid)
        if times is None:
            times = self.pods[record.uid] = PodTimes(record.at)
        if times.deleted is not None:
            return
        if record.kind == DELETED:
            times.deleted = record.at
            self.deleted += 1
            self.bound -= times.bound is not None
            self.ready -= times.is_ready
            self.terminating -= times.is_terminating
            return
        pod = _POD_DECODER.decode(record.raw)
        if times.ungated is None and not pod.spec.scheduling_gates:
            times.ungated = record.at
        if times.bound is None and pod.spec.node_name:
            times.bound = record.at
            self.bound += 1
        if times.running is None and pod.status.phase == "Running":
            times.running = record.at
        if times.ready is None and pod.ready:
            times.ready = record.at
        is_terminating = pod.metadata.deletion_timestamp is not None
        self.ready += pod.ready - times.is_ready
        self.terminating += is_terminating - times.is_terminating
        times.is_ready, times.is_terminating = pod.ready, is_terminating

    def _process_object(self, record: Record) -> None:
        key = (record.resource, record.name)
        is_set = record.resource == PODCLIQUESETS.plural
        if record.kind == DELETED:
            self.objects.pop(key, None)
            self.set_exists = self.set_exists and not is_set
            return
        if is_set:
            self.set_exists, self.status = True, _SET_DECODER.decode(record.raw).status
        self.objects[key] = ExistingObject(
            _ANY_DECODER.decode(record.raw).metadata.deletion_timestamp is not None, record
        )


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return the median, the 90th and 99th percentiles and the maximum (nearest rank); empty if there are no values."""
    if not seconds:
        return {}
    sorted_seconds = sorted(seconds)

    def rank(share: float) -> float:
        return round(sorted_seconds[min(len(sorted_seconds) - 1, max(0, -int(-share * len(sorted_seconds)) - 1))], 3)

    return {"p50": rank(0.5), "p90": rank(0.9), "p99": rank(0.99), "max": round(sorted_seconds[-1], 3)}
