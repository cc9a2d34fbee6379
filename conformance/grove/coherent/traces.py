"""The worked traces of the specification, from fixtures/coherent/traces.yaml.

A gang is written as `M1*@v1: F2 P[0,1]`: its name, `*` for an anchor, its generation, and its members.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import data, documents
from conformance.errors import UsageError
from conformance.grove.coherent.model import Component, Entry, Key, Layout

_GANG = re.compile(r"(?P<name>[\w-]+)(?P<anchor>\*?)@(?P<generation>\w+):(?P<members>.*)")
_MEMBER = re.compile(r"(?P<name>[A-Za-z]+)(?:(?P<count>\d+)|\[(?P<indices>[\d,]+)\])")


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


@dataclass(frozen=True)
class PlanTrace:
    """A worked plan: components, and the batches that the specification lists for them (COH-130 … COH-141)."""

    id: str
    components: tuple[Component, ...]
    batches: tuple[str, ...]


def folder() -> Path:
    """Return the folder of the traces."""
    return data.folder("fixtures") / "coherent"


def traces() -> list[Trace]:
    """Return all traces. Raises UsageError with file, line and field if the file is invalid."""
    document = documents.read(folder() / "traces.yaml", folder() / "traces.schema.json")
    return [_trace(entry) for entry in document.value["traces"]]


def plans() -> list[PlanTrace]:
    """Return the example plans of the specification. Raises UsageError with file, line and field if the file is
    invalid."""
    document = documents.read(folder() / "traces.yaml", folder() / "traces.schema.json")
    return [
        PlanTrace(entry["id"], _components(entry), tuple(entry["batches"]))
        for entry in document.value["plans"]
    ]  # fmt: skip


def check(path: Path) -> None:
    """Check a file of traces. Raises UsageError with file, line and field if the file is invalid."""
    document = documents.read(path, folder() / "traces.schema.json")
    for entry in document.value["traces"]:
        _trace(entry)


def layout(gangs: Sequence[str]) -> Layout:
    """Parse gangs in this notation. Raises UsageError if the notation is violated."""
    return tuple(_gang(gang) for gang in gangs)


def _trace(entry: Mapping[str, Any]) -> Trace:
    components = _components(entry)
    return Trace(
        entry["name"],
        tuple(entry["source"]),
        entry["about"],
        components,
        tuple(component.key for component in components if component.key.name in entry["changes"]),
        tuple(
            TraceWrite(
                layout(write["gangs"]),
                write.get("begins", ""),
                {component.key: write.get("unavailable", {}).get(component.key.name, 0) for component in components},
            )
            for write in entry["writes"]
        ),
        entry["whole"],
    )


def _components(entry: Mapping[str, Any]) -> tuple[Component, ...]:
    return (
        *(Component(Key("clique", name), *sizes) for name, sizes in entry.get("cliques", {}).items()),
        *(Component(Key("group", name), *sizes) for name, sizes in entry.get("groups", {}).items()),
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
