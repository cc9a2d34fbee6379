"""The worked traces of the specification, from fixtures/coherent/traces.yaml.

A gang is written as `M1*@v1: F2 P[0,1]`: its name, `*` for an anchor, its generation, and its members.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msgspec import field

from conformance import data, formats
from conformance.errors import UsageError
from conformance.formats import Format
from conformance.grove.coherent.model import Component, Entry, Key, Layout

_GANG = re.compile(r"(?P<name>[\w-]+)(?P<anchor>\*?)@(?P<generation>\w+):(?P<members>.*)")
_MEMBER = re.compile(r"(?P<name>[A-Za-z]+)(?:(?P<count>\d+)|\[(?P<indices>[\d,]+)\])")


Sizes = dict[str, tuple[int, int, int]]
"""Name → replicas, minAvailable, maxUnavailable."""


class SizedComponents(Format, frozen=True, kw_only=True):
    """The components of a set replica."""

    cliques: Sizes = field(default_factory=dict)
    groups: Sizes = field(default_factory=dict)

    @property
    def components(self) -> tuple[Component, ...]:
        """Return the cliques and then the scaling groups."""
        return (
            *(Component(Key("clique", name), *sizes) for name, sizes in self.cliques.items()),
            *(Component(Key("group", name), *sizes) for name, sizes in self.groups.items()),
        )


class PlanTrace(SizedComponents, frozen=True, kw_only=True):
    """A worked plan: components, and the batches that the specification lists for them (COH-130 … COH-141)."""

    id: str
    batches: tuple[str, ...]


class WriteEntry(Format, frozen=True, kw_only=True):
    """A write of the map, as an entry of the file. `begins` is the generation of the update that begins with it."""

    begins: str = ""
    unavailable: dict[str, int] = field(default_factory=dict)
    gangs: list[str]


class TraceEntry(SizedComponents, frozen=True, kw_only=True):
    """A trace, as an entry of the file. `changes` are the components in the scope of the updates."""

    name: str
    source: tuple[str, ...]
    about: str
    changes: list[str]
    whole: bool
    writes: list[WriteEntry]


class TraceList(Format, frozen=True):
    """The format of a file of plans and traces."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["CoherentTraces"]
    plans: list[PlanTrace]
    traces: list[TraceEntry]


@dataclass(frozen=True)
class TraceWrite:
    """One write of the map. `start_generation`: the generation of the update that starts with the write, if any;
    `unavailable`: the numbers of members of the batch that were already unavailable."""

    layout: Layout
    start_generation: str
    unavailable: Mapping[Key, int]


@dataclass(frozen=True)
class Trace:
    """A trace of one set replica: its components, the components that its updates change, and its successive
    layouts."""

    name: str
    source: tuple[str, ...]
    about: str
    components: tuple[Component, ...]
    changed: tuple[Key, ...]
    writes: tuple[TraceWrite, ...]
    whole: bool
    """Whether the trace shows every sub-step of an update in which nothing fails."""

    @property
    def in_scope(self) -> list[Component]:
        """Return the components that the updates of the trace change."""
        return [component for component in self.components if component.key in self.changed]


def traces(path: Path | None = None) -> list[Trace]:
    """Return all traces of a file. Raises UsageError with file, line and field if the file is invalid."""
    return [_trace(entry) for entry in _read(path).traces]


def plans() -> list[PlanTrace]:
    """Return the example plans of the specification. Raises UsageError with file, line and field if the file is
    invalid."""
    return _read().plans


def _read(path: Path | None = None) -> TraceList:
    return formats.read(path or data.folder("fixtures") / "coherent" / "traces.yaml", TraceList)[1]


def layout(gangs: Sequence[str]) -> Layout:
    """Parse gangs in this notation. Raises UsageError if the notation is violated."""
    return tuple(_gang(gang) for gang in gangs)


def _trace(entry: TraceEntry) -> Trace:
    components = entry.components
    return Trace(
        entry.name,
        entry.source,
        entry.about,
        components,
        tuple(component.key for component in components if component.key.name in entry.changes),
        tuple(
            TraceWrite(
                layout(write.gangs),
                write.begins,
                {component.key: write.unavailable.get(component.key.name, 0) for component in components},
            )
            for write in entry.writes
        ),
        entry.whole,
    )


def _gang(text: str) -> Entry:
    match = _GANG.fullmatch(text)
    members = match["members"].split() if match else []
    matches = [_MEMBER.fullmatch(member) for member in members]
    if match is None or None in matches:
        raise UsageError(f"invalid gang {text!r}", hint="write it as M1*@v1: F2 P[0,1]")
    cliques = {part["name"]: int(part["count"]) for part in matches if part and part["count"]}
    groups = {
        part["name"]: tuple(int(index) for index in part["indices"].split(","))
        for part in matches
        if part and part["indices"]
    }
    anchor = bool(match["anchor"])
    return Entry(match["name"], match["generation"], cliques, groups, anchor, not anchor)
