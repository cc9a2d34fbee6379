"""The existing faults, as data (fixtures/nemesis/faults/faults.yaml)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance import data, documents
from conformance.errors import UsageError


@dataclass(frozen=True)
class Fault:
    """A disturbance of a write or an event.

    `point_kind` is the kind of point at which the fault strikes. `is_default`: the fault is tried even if it is not
    selected by name. `requires` is a feature without which the fault cannot be tried.
    """

    name: str
    text: str
    point_kind: str
    is_default: bool
    requires: str


def all_faults() -> list[Fault]:
    """Return all faults, in the order of the file."""
    folder = data.folder("fixtures") / "nemesis"
    document = documents.read(folder / "faults" / "faults.yaml", folder / "faults" / "faults.schema.json")
    return [
        Fault(name, entry["text"], entry["at"], entry.get("usual", True), entry.get("requires", ""))
        for name, entry in document.value["faults"].items()
    ]


def select(names: Sequence[str]) -> list[Fault]:
    """Return the faults with these names; if `names` is empty, return the usual faults. Raises UsageError for an
    unknown name."""
    by_name = {fault.name: fault for fault in all_faults()}
    for name in names:
        if name not in by_name:
            raise UsageError(f"unknown fault {name!r}", where="--fault", hint=documents.suggestion(name, list(by_name)))
    return [by_name[name] for name in names] if names else [fault for fault in by_name.values() if fault.is_default]
