"""The sides of a comparison: descriptors with their parameters, which are measured, or results, which are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError
from conformance.scale import results
from conformance.scale.results import Result

OF_COMPARISONS = ("comparison.json", "plan.json")
"""Files in the folder of a comparison that are not results."""


@dataclass(frozen=True)
class MeasuredSide:
    """A side that is measured: a descriptor and the values of its parameters."""

    implementation: str
    settings: Mapping[str, str]
    name: str

    def arguments(self) -> list[str]:
        """Return the options of `grove-conformance scale` for this side."""
        options = [f"--set={name}={value}" for name, value in self.settings.items()]
        return ["--implementation", self.implementation, *options]


@dataclass(frozen=True)
class StoredSide:
    """A side that has already been measured."""

    results: Sequence[Result]
    name: str


def is_stored(given: str) -> bool:
    """Return whether a side is given as a result file or a folder with results, and not as a descriptor."""
    return given.endswith(".json") or Path(given).is_dir()


def stored(given: Sequence[str]) -> StoredSide:
    """Read the results of a side, in the order in which they were measured. Raises UsageError if a file is not a
    result."""
    paths = [path for name in given for path in _files(Path(name))]
    results_ = sorted((results.read(path) for path in paths), key=lambda result: (result["startedAt"], result["run"]))
    return StoredSide(results_, given[0] if len(given) == 1 else f"{len(results_)} results ({Path(given[0]).name}, …)")


def readable(given: Sequence[str]) -> tuple[list[Result], list[str]]:
    """Return the results in the given files and folders (which can be folders of comparisons), and the reasons why
    other files in the folders are left out. Raises UsageError for an explicitly given file that is not a result, and
    for a folder without files."""
    results_: list[Result] = []
    left_out: list[str] = []
    for place in map(Path, given):
        for path in _files(place):
            if place.is_dir() and (path.name in OF_COMPARISONS or path.name.startswith("warm-up-")):
                continue
            try:
                results_.append(results.read(path))
            except UsageError as error:
                if not place.is_dir():
                    raise
                left_out.append(str(error))
    return results_, left_out


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise UsageError("has no result", where=str(path), hint="give a folder with the *.json files of runs")
    return files
