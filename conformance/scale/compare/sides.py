"""The sides of a comparison: descriptors with their parameters, which are measured, or results, which are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError
from conformance.scale import results
from conformance.scale.results import Result

COMPARISON_FILES = ("comparison.json", "plan.json")
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


def is_stored(argument: str) -> bool:
    """Return whether a side is given as a result file or a folder with results, and not as a descriptor."""
    return argument.endswith(".json") or Path(argument).is_dir()


def load_stored(arguments: Sequence[str]) -> StoredSide:
    """Read the results of a side, in the order in which they were measured. Raises UsageError if a file is not a
    result."""
    paths = [path for name in arguments for path in _files(Path(name))]
    sorted_results = sorted(
        (results.read(path) for path in paths), key=lambda result: (result["startedAt"], result["run"])
    )
    return StoredSide(
        sorted_results,
        arguments[0] if len(arguments) == 1 else f"{len(sorted_results)} results ({Path(arguments[0]).name}, …)",
    )


def load_readable(arguments: Sequence[str]) -> tuple[list[Result], list[str]]:
    """Return the results in the given files and folders (which can be folders of comparisons), and the reasons why
    other files in the folders are left out. Raises UsageError for an explicitly given file that is not a result, and
    for a folder without files."""
    readable_results: list[Result] = []
    rejections: list[str] = []
    for location in map(Path, arguments):
        for path in _files(location):
            if location.is_dir() and (path.name in COMPARISON_FILES or path.name.startswith("warm-up-")):
                continue
            try:
                readable_results.append(results.read(path))
            except UsageError as error:
                if not location.is_dir():
                    raise
                rejections.append(str(error))
    return readable_results, rejections


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise UsageError("has no result", where=str(path), hint="give a folder with the *.json files of runs")
    return files
