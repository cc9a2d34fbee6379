"""The points at which a fault can strike: each write of a role, and each watch event that the role receives, counted
within a step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from msgspec import Meta, structs

from conformance.formats import Format
from conformance.nemesis import names
from conformance.nemesis.proxy.calls import Call
from conformance.nemesis.proxy.events import WatchEvent

WRITE, EVENT = "write", "event"


@dataclass(frozen=True, order=True)
class FaultPoint:
    """One write of the role in a step, or one watch event that the role receives. `occurrence` counts equal points,
    from 1. `what` is the verb of a write or the type of an event; `name` has `*` for generated parts. `fields` are the
    fields that a merge patch sets. They describe what a plan covers, but do not identify the write: in another run, the
    write may set more fields."""

    step: str
    kind: str
    what: str
    resource: str
    subresource: str = ""
    name: str = ""
    occurrence: int = 1
    fields: tuple[str, ...] = field(default=(), compare=False)

    @property
    def coverage(self) -> tuple[str, str, str, str, str]:
        """Return the properties that a plan at this point covers."""
        return self.step, self.kind, self.what, self.resource, self.subresource

    def __str__(self) -> str:
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        times = f", time {self.occurrence}" if self.occurrence > 1 else ""
        event_or_verb = f"event {self.what}" if self.kind == EVENT else self.what
        return f"{event_or_verb} {resource} {self.name}{times} (step {self.step})"


class PointFormat(Format, frozen=True):
    """A point in a file."""

    step: str
    kind: Literal["write", "event"]
    what: str
    resource: str
    subresource: str = ""
    name: str = ""
    occurrence: Annotated[int, Meta(ge=1)] = 1
    fields: tuple[str, ...] = ()

    def point(self) -> FaultPoint:
        """Return the point."""
        return FaultPoint(**structs.asdict(self))


@dataclass(frozen=True)
class FaultPlan:
    """One fault at one point of a scenario."""

    scenario: str
    fault: str
    point: FaultPoint

    def __str__(self) -> str:
        return f"{self.scenario}: {self.fault} at {self.point}"


class PointCounter:
    """Assigns points to the writes and events of a step."""

    def __init__(self, step: str, namespace: str) -> None:
        self._step, self._namespace = step, namespace
        self._counts: Counter[FaultPoint] = Counter()

    def write_point(self, call: Call, name: str, fields: tuple[str, ...] = ()) -> FaultPoint:
        """Return the point of a write. `name` is the name of the object, which the path of a creation does not
        contain."""
        return replace(self._next(WRITE, call.verb, call.resource, call.subresource, name), fields=fields)

    def event_point(self, resource: str, event: WatchEvent) -> FaultPoint:
        """Return the point of an event."""
        return self._next(EVENT, event.type, resource, "", event.name)

    def _next(self, kind: str, event_or_verb: str, resource: str, subresource: str, name: str) -> FaultPoint:
        uncounted = FaultPoint(
            self._step, kind, event_or_verb, resource, subresource, names.stable_name(name, self._namespace)
        )
        self._counts[uncounted] += 1
        return FaultPoint(
            uncounted.step, kind, event_or_verb, resource, subresource, uncounted.name, self._counts[uncounted]
        )
