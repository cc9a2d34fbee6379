"""The cost of an update, computed from the history of one trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.grove import updates
from conformance.grove.coherent.model import Component, Key, Layout
from conformance.history.record import Record
from conformance.invariants.coherent.state import CoherentState, ReplicaComponent


@dataclass(frozen=True)
class AvailabilityPoint:
    """The available members of each component and the number of whole serving units, from one time until the next
    point."""

    at: float
    available: Mapping[str, int]
    whole_units: int


@dataclass
class UpdateMeasurement:
    """The measurements of one update. Times are in seconds since the change of the set."""

    duration: float = 0.0
    points: list[AvailabilityPoint] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    """New Ready pods that were deleted during or after the update, but not by the operator, which does not delete new
    pods."""

    @property
    def lowest_available(self) -> dict[str, int]:
        """Return the lowest number of available members of each component."""
        names = self.points[0].available if self.points else ()
        return {name: min(point.available[name] for point in self.points) for name in names}

    @property
    def lowest_whole_units(self) -> int:
        """Return the lowest number of whole serving units."""
        return min((point.whole_units for point in self.points), default=0)

    @property
    def mean_whole_units(self) -> float:
        """Return the number of whole serving units, averaged over the duration of the update."""
        ends = [point.at for point in self.points[1:]] + [self.duration]
        total = sum(point.whole_units * max(0.0, end - point.at) for point, end in zip(self.points, ends, strict=True))
        return total / self.duration if self.duration else 0.0


class UpdateMeter:
    """Measures one update of replica 0 of a set. A serving unit consists of `minAvailable` members of every component,
    all of the same version."""

    def __init__(self, set_name: str, components: Sequence[Component], old_generation_hash: str) -> None:
        self._set, self._components, self._old_generation_hash = set_name, components, old_generation_hash
        self._state = CoherentState()

    def measure(self, records_before: Iterable[Record], records_during: Iterable[Record]) -> UpdateMeasurement:
        """Measure the update from its records and from the records before it. Both are in the order in which the API
        server wrote them."""
        for record in records_before:
            self._state.apply(record)
        measurement, start = UpdateMeasurement(), 0.0
        for record in records_during:
            start = start or record.at
            self._state.apply(record)
            seconds = round(max(0.0, record.at - start), 3)
            if pod := self._evicted_pod(record):
                measurement.evicted.append(pod)
            if not measurement.duration:
                self._add_point(measurement, seconds)
                measurement.duration = seconds if self._has_ended(record) else 0.0
        return measurement

    def _add_point(self, measurement: UpdateMeasurement, seconds: float) -> None:
        replica_components = {
            component: ReplicaComponent(self._set, 0, component.key) for component in self._components
        }
        available = {
            component.key.name: self._state.count_available(replica_component)
            for component, replica_component in replica_components.items()
        }
        whole_units = sum(
            min(
                self._state.count_available(replica_component, gangs) // component.minimum
                for component, replica_component in replica_components.items()
            )
            for gangs in self._gangs_by_version().values()
        )
        last_point = measurement.points[-1] if measurement.points else None
        if last_point is None or (last_point.available, last_point.whole_units) != (available, whole_units):
            measurement.points.append(AvailabilityPoint(seconds, available, whole_units))

    def _gangs_by_version(self) -> dict[str, set[str]]:
        """Return the gangs of each version."""
        gangs: dict[str, set[str]] = {}
        for gang in {pod.gang for pod in self._state.pods.values() if pod.component.set == self._set}:
            gangs.setdefault(self._generation_hash(gang), set()).add(gang)
        return gangs

    def _generation_hash(self, gang: str) -> str:
        return self._state.generation_hashes.get(self._state.key_of_gang(gang), self._old_generation_hash)

    def _evicted_pod(self, record: Record) -> str:
        pod, previous = self._state.pods.get(record.uid), self._state.previous_pod
        if record.resource != "pods" or pod is None or previous is None or pod.component.set != self._set:
            return ""
        is_new = self._generation_hash(pod.gang) != self._old_generation_hash
        return record.name if is_new and previous.ready and not previous.is_terminating and pod.is_terminating else ""

    def _has_ended(self, record: Record) -> bool:
        if record.resource != "podcliquesets" or record.name != self._set:
            return False
        return updates.generation_hash(record.object) not in ("", self._old_generation_hash) and updates.has_ended(
            record.object
        )


def members(pods: Iterable[str], set_name: str, components: Iterable[Component]) -> list[str]:
    """Return the members of components to which the pods with these names belong: `p[2]` for a replica of a
    scaling group, `pod` and the suffix of the pod's name for a standalone pod."""
    names: set[str] = set()
    for pod in pods:
        for component in components:
            prefix = f"{set_name}-0-{component.key.name}-"
            if not pod.startswith(prefix):
                continue
            suffix = pod.removeprefix(prefix)
            index = suffix.partition("-")[0]
            names.add(f"{component.key.name}[{index}]" if component.key.kind == "group" else f"pod {suffix}")
    return sorted(names)


def shared_gang_size(layout: Layout, key: Key, index: int) -> int:
    """Return the number of scaling-group replicas that share a replica's gang, including the replica itself. A
    preemption takes all of them, because without any one of them the gang is below its minimum."""
    return next(
        (sum(map(len, entry.groups.values())) for entry in layout if index in entry.groups.get(key.name, ())), 0
    )


def largest_shared_gang(layout: Layout, components: Iterable[Component]) -> int:
    """Return the size of the largest gang that a replica above the minimum shares. Such a replica had its own gang when
    the set was deployed."""
    return max(
        (
            shared_gang_size(layout, component.key, index)
            for component in components
            if component.key.kind == "group"
            for index in range(component.minimum, component.replicas)
        ),
        default=0,
    )


def orphans(before: Layout, after: Layout) -> list[str]:
    """Return the replicas that shared a gang with replicas of another scaling group before a scale-in, and no longer
    share it with any of them."""
    after_by_key = {entry.key: entry for entry in after}
    names = []
    for entry in before:
        entry_after = after_by_key.get(entry.key)
        partners = {group for group, replicas in entry.groups.items() if replicas}
        for group, replicas in entry_after.groups.items() if entry_after else ():
            lost_partners = (
                [name for name in partners - {group} if not entry_after.groups.get(name)] if entry_after else []
            )
            names += [f"{group}[{index}]" for index in replicas if lost_partners]
    return sorted(names)
