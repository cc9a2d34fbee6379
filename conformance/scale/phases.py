"""The phases of a scale scenario: the change that each phase makes to the PodCliqueSet, and the condition that ends the
phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, structs

from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format

TIME_LIMIT = 600.0
"""Seconds after which a phase that has not ended has failed."""
DEFAULT_PHASES: list[dict[str, Any]] = [{"name": "deploy", "create": {}}, {"name": "delete", "delete": {}}]
"""The phases of a scenario that does not list any."""


class Action(StrEnum):
    """The action of a phase on the PodCliqueSet."""

    CREATE = "create"
    SCALE = "scale"
    PATCH = "patch"
    DELETE = "delete"
    NOTHING = "nothing"


class Until(StrEnum):
    """The condition that ends a phase."""

    SETTLED = "settled"
    UPDATED = "updated"
    OBSERVED = "observed"
    GONE = "gone"


DEFAULT_UNTIL = {
    Action.CREATE: Until.SETTLED,
    Action.SCALE: Until.SETTLED,
    Action.PATCH: Until.UPDATED,
    Action.DELETE: Until.GONE,
    Action.NOTHING: Until.SETTLED,
}
"""The condition that ends a phase with this action, unless the phase names another condition."""


Empty = Annotated[dict[str, Any], Meta(max_length=0)]
Operation = Annotated[dict[str, Any], Meta(extra_json_schema={"required": ["op", "path"]})]
PhaseName = Annotated[str, Meta(pattern="^[a-z0-9-]+$")]


class PhaseEntry(Format, frozen=True, kw_only=True):
    """A phase, as an entry of a file. `patch` is a JSON Patch of the PodCliqueSet, and `hold` the seconds that the
    phase lasts beyond its end. `fits`: the phase is over when as many pods are Ready as so many replicas have."""

    name: PhaseName
    create: Empty | None = None
    scale: Annotated[int, Meta(ge=0, description="Set spec.replicas of the PodCliqueSet.")] | None = None
    patch: Annotated[list[Operation], Meta(min_length=1)] | None = None
    delete: Empty | None = None
    until: Until | None = None
    hold: Annotated[float, Meta(ge=0)] = 0.0
    unchanged: bool = False
    fits: Annotated[int, Meta(ge=1, description="The number of replicas that the nodes have room for.")] | None = None
    within: Annotated[float, Meta(gt=0, description="Time limit in seconds; 600 by default.")] = TIME_LIMIT
    upstream_names: dict[str, str] = msgspec.field(default_factory=dict)
    """Markers that Grove's own scale tests name differently in this phase: marker → name."""

    @property
    def actions(self) -> list[Action]:
        """Return the actions of the phase."""
        return [action for action in DEFAULT_UNTIL if getattr(self, action, None) is not None]


class PhaseOrCycle(PhaseEntry, frozen=True, kw_only=True):
    """A phase, or phases that happen `repeat` times, with -c1, -c2, … after their names."""

    name: PhaseName = ""
    repeat: Annotated[int, Meta(ge=1)] | None = None
    phases: Annotated[list[PhaseEntry], Meta(min_length=1)] | None = None


PHASE_OR_CYCLE = {
    "anyOf": [{"required": ["name"]}, {"required": ["repeat"]}],
    "dependentRequired": {"repeat": ["phases"], "phases": ["repeat"]},
}


@dataclass(frozen=True)
class LoadPhase:
    """One phase. `replicas` is the number of replicas that the set has, or is to reach, in the phase."""

    name: str
    action: Action
    until: Until
    replicas: int
    previous_replicas: int
    """The number of replicas before the phase."""
    patch: tuple[Mapping[str, Any], ...] = ()
    hold: float = 0.0
    unchanged: bool = False
    within: float = TIME_LIMIT
    fits: int | None = None
    """The number of replicas for which there is room; None if there is room for all."""
    upstream_names: Mapping[str, str] = field(default_factory=dict)

    def operations(self, run: str) -> list[dict[str, Any]]:
        """Return the JSON Patch with the id of the run filled in."""
        return [{key: _fill(value, run) for key, value in operation.items()} for operation in self.patch]


def phases_of(document: Document, entries: Sequence[PhaseOrCycle], initial_replicas: int) -> tuple[LoadPhase, ...]:
    """Return the phases of a scenario. Raises UsageError if their order makes no sense."""
    result: list[LoadPhase] = []
    exists, replicas = False, 0
    for entry, entry_field in _expand(document, entries):
        action = _action(document, entry, entry_field)
        if (action == Action.CREATE) == exists:
            raise UsageError(
                f"the phase {entry.name} {'creates a set that exists' if exists else 'comes before the creation'}",
                where=document.location("phases", *entry_field),
                hint="begin with create, and end with delete",
            )
        previous_replicas = replicas
        match action:
            case Action.CREATE:
                exists, replicas = True, initial_replicas
            case Action.SCALE:
                replicas = entry.scale or 0
            case Action.DELETE:
                exists, replicas = False, 0
            case _:
                pass
        if entry.fits is not None and entry.fits > replicas:
            problem = f"{entry.fits} is more than the {replicas} replicas of the set"
            raise UsageError(problem, where=document.location("phases", *entry_field, "fits"), hint="give fewer")
        result.append(
            LoadPhase(
                name=entry.name,
                action=action,
                until=entry.until or DEFAULT_UNTIL[action],
                replicas=replicas,
                previous_replicas=previous_replicas,
                patch=tuple(entry.patch or ()),
                hold=entry.hold,
                unchanged=entry.unchanged,
                within=entry.within,
                fits=entry.fits,
                upstream_names=entry.upstream_names,
            )
        )
    phase_names = [phase.name for phase in result]
    if duplicates := [name for name in phase_names if phase_names.count(name) > 1]:
        raise UsageError(
            f'duplicate phase "{duplicates[0]}"', where=document.location("phases"), hint="name each differently"
        )
    return tuple(result)


def _action(document: Document, entry: PhaseEntry, entry_field: tuple[str | int, ...]) -> Action:
    if len(entry.actions) > 1:
        raise UsageError(
            f"the phase {entry.name} has {' and '.join(entry.actions)}",
            where=document.location("phases", *entry_field),
            hint="give one action",
        )
    return entry.actions[0] if entry.actions else Action.NOTHING


def _expand(document: Document, entries: Sequence[PhaseOrCycle]) -> Iterator[tuple[PhaseEntry, tuple[str | int, ...]]]:
    """Yield the phases with their places in the file. Repeated phases are expanded."""
    for index, entry in enumerate(entries):
        if entry.repeat is None:
            yield entry, (index,)
            continue
        if entry != PhaseOrCycle(repeat=entry.repeat, phases=entry.phases):
            place = document.location("phases", index)
            raise UsageError("has fields of a phase beside repeat", where=place, hint="put them into its phases")
        for cycle in range(1, entry.repeat + 1):
            for position, phase in enumerate(entry.phases or ()):
                yield structs.replace(phase, name=f"{phase.name}-c{cycle}"), (index, "phases", position)


def _fill(value: Any, run: str) -> Any:
    if isinstance(value, str):
        return value.replace("${run}", run)
    if isinstance(value, Mapping):
        return {key: _fill(item, run) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, run) for item in value]
    return value
