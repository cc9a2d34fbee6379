"""A file of expected failures, separate from a descriptor: for a descriptor that belongs to another team, or for a list
that is generated repeatedly. `report baseline` writes such a file, and `run --baseline` reads it."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

from conformance import data, documents
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.implementation.descriptor import Descriptor, ExpectedFailure
from conformance.suggestions import explain_missing

API_VERSION, KIND = "conformance.grove.io/v1alpha1", "ExpectedFailures"
OPTION = "--baseline"


@dataclasses.dataclass(frozen=True)
class Baseline:
    """The expected failures that were read from a file."""

    document: Document
    implementation: str
    entries: tuple[ExpectedFailure, ...]


def read(path: Path, option: str = OPTION) -> Baseline:
    """Read a file of expected failures. Raises UsageError if the file is missing or invalid."""
    if not path.is_file():
        problem, suggestion = ("is a folder", "") if path.is_dir() else explain_missing(path)
        hint = suggestion or "`report baseline RUN --to FILE` writes one"
        raise UsageError(problem, where=f"{option} {documents.display_path(path)}", hint=hint)
    folder = data.folder("fixtures") / "implementations"
    document = documents.read(path, folder / "expected-failures.schema.json")
    entries = msgspec.convert(document.value["expectedFailures"], tuple[ExpectedFailure, ...])
    ids: set[str] = set()
    for number, entry in enumerate(entries):
        if entry.id in ids:
            location = document.location("expectedFailures", number)
            raise UsageError(f"{entry.id} is a duplicate", where=location, hint="keep one of them")
        ids.add(entry.id)
    return Baseline(document, document.value["implementation"], entries)


def with_baseline(judged: Descriptor, baseline: Baseline, option: str = OPTION) -> Descriptor:
    """Return a descriptor with additional expected failures, which replace the descriptor's own entries for the same
    requirements. Raises UsageError if the baseline is for another implementation."""
    if baseline.implementation != judged.name:
        problem = f"has the failures of {baseline.implementation}, not of {judged.name}"
        hint = "give the file of this implementation, or correct its name there"
        raise UsageError(problem, where=f"{option} {documents.display_path(baseline.document.path)}", hint=hint)
    ids = {entry.id for entry in baseline.entries}
    own_entries = (entry for entry in judged.expected_failures if entry.id not in ids)
    return dataclasses.replace(judged, expected_failures=(*own_entries, *baseline.entries))


def text(implementation: str, entries: Iterable[ExpectedFailure]) -> str:
    """Return a file of expected failures as YAML."""
    failures = [
        {name: _plain(value) for name, value in msgspec.structs.asdict(entry).items() if value is not None}
        for entry in sorted(entries, key=lambda entry: entry.id)
    ]
    content = {"apiVersion": API_VERSION, "kind": KIND, "implementation": implementation, "expectedFailures": failures}
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=116)


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime.date) else value
