"""The phases of a scale scenario: the change that each phase makes to the PodCliqueSet, and the condition that ends the
phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from conformance.documents import Document
from conformance.errors import UsageError

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


def phases_of(document: Document, entries: Sequence[Mapping[str, Any]]) -> tuple[LoadPhase, ...]:
    """Return the phases of a scenario. Raises UsageError if their order makes no sense."""
    result: list[LoadPhase] = []
    exists, replicas = False, 0
    for entry, entry_field in _expand(entries):
        action = _action(document, entry, entry_field)
        if (action == Action.CREATE) == exists:
            raise UsageError(
                f"the phase {entry['name']} {'creates a set that exists' if exists else 'comes before the creation'}",
                where=document.location("phases", *entry_field),
                hint="begin with create, and end with delete",
            )
        previous_replicas = replicas
        match action:
            case Action.CREATE:
                exists, replicas = True, document.value["replicas"]
            case Action.SCALE:
                replicas = entry["scale"]
            case Action.DELETE:
                exists, replicas = False, 0
            case _:
                pass
        result.append(
            LoadPhase(
                name=entry["name"],
                action=action,
                until=Until(entry.get("until", DEFAULT_UNTIL[action])),
                replicas=replicas,
                previous_replicas=previous_replicas,
                patch=tuple(entry.get("patch", ())),
                hold=float(entry.get("hold", 0.0)),
                unchanged=entry.get("unchanged", False),
                within=float(entry.get("within", TIME_LIMIT)),
                fits=_fits(document, entry, replicas, entry_field),
                upstream_names=entry.get("upstreamNames", {}),
            )
        )
    phase_names = [phase.name for phase in result]
    if duplicates := [name for name in phase_names if phase_names.count(name) > 1]:
        raise UsageError(
            f'duplicate phase "{duplicates[0]}"', where=document.location("phases"), hint="name each differently"
        )
    return tuple(result)


def _fits(
    document: Document, entry: Mapping[str, Any], replicas: int, entry_field: tuple[str | int, ...]
) -> int | None:
    fits: int | None = entry.get("fits")
    if fits is not None and fits > replicas:
        location = document.location("phases", *entry_field, "fits")
        raise UsageError(f"{fits} is more than the {replicas} replicas of the set", where=location, hint="give fewer")
    return fits


def _action(document: Document, entry: Mapping[str, Any], entry_field: tuple[str | int, ...]) -> Action:
    actions = [action for action in Action if action in entry]
    if len(actions) > 1:
        raise UsageError(
            f"the phase {entry['name']} has {' and '.join(actions)}",
            where=document.location("phases", *entry_field),
            hint="give one action",
        )
    return actions[0] if actions else Action.NOTHING


def _expand(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], tuple[str | int, ...]]]:
    """Yield the phases with their places in the file. Repeated phases are expanded."""
    for index, entry in enumerate(entries):
        if "repeat" not in entry:
            yield entry, (index,)
            continue
        for cycle in range(1, entry["repeat"] + 1):
            for position, phase in enumerate(entry["phases"]):
                yield {**phase, "name": f"{phase['name']}-c{cycle}"}, (index, "phases", position)


def _fill(value: Any, run: str) -> Any:
    if isinstance(value, str):
        return value.replace("${run}", run)
    if isinstance(value, Mapping):
        return {key: _fill(item, run) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, run) for item in value]
    return value
