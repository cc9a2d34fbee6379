"""The sides of a comparison: descriptors with their parameters, which are measured, or results, which are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError
from conformance.scale import results
from conformance.scale.results import Result


@dataclass(frozen=True)
class Measured:
    """A side that is measured: a descriptor and the values of its parameters."""

    implementation: str
    settings: Mapping[str, str]
    name: str

    def arguments(self) -> list[str]:
        """Return the options of `grove-conformance scale` for this side."""
        options = [f"--set={name}={value}" for name, value in self.settings.items()]
        return ["--implementation", self.implementation, *options]


@dataclass(frozen=True)
class Stored:
    """A side that was measured before."""

    results: Sequence[Result]
    name: str


def is_stored(given: str) -> bool:
    """Return whether a side is a result file or a folder with results, rather than a descriptor."""
    return given.endswith(".json") or Path(given).is_dir()


def stored(given: Sequence[str]) -> Stored:
    """Read the results of a side, in the order in which they were measured. Raises UsageError."""
    paths = [path for each in given for path in _files(Path(each))]
    found = sorted((results.read(path) for path in paths), key=lambda result: (result["startedAt"], result["run"]))
    return Stored(found, ", ".join(given))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.json"))
    if not found:
        raise UsageError("has no result", where=str(path), hint="give a folder with the *.json files of runs")
    return found
