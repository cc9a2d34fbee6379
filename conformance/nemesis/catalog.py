"""The existing faults, as data (fixtures/nemesis/faults/faults.yaml)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from conformance import data, documents, formats
from conformance.errors import UsageError
from conformance.formats import Format


class Fault(Format, frozen=True):
    """A disturbance of a write or an event, at which it strikes (`at`). A fault that is not `usual` is tried only if it
    is selected by name. `requires` is a feature without which the fault cannot be tried."""

    name: str
    at: Literal["write", "event"]
    text: str
    usual: bool = True
    requires: str = ""


class FaultList(Format, frozen=True):
    """The format of faults.yaml."""

    faults: list[Fault]


def all_faults() -> list[Fault]:
    """Return all faults, in the order of the file."""
    _, file = formats.read(data.folder("fixtures") / "nemesis" / "faults" / "faults.yaml", FaultList)
    return file.faults


def select(names: Sequence[str]) -> list[Fault]:
    """Return the faults with these names; if `names` is empty, return the usual faults. Raises UsageError for an
    unknown name."""
    by_name = {fault.name: fault for fault in all_faults()}
    for name in names:
        if name not in by_name:
            raise UsageError(f"unknown fault {name!r}", where="--fault", hint=documents.suggestion(name, list(by_name)))
    return [by_name[name] for name in names] if names else [fault for fault in by_name.values() if fault.usual]
