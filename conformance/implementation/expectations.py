"""A file of expected failures, separate from a descriptor: for a descriptor that belongs to another team, or for a list
that is generated repeatedly. `report baseline` writes such a file, and `run --baseline` reads it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta

from conformance import documents, formats
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.implementation.descriptor import Descriptor
from conformance.implementation.fields import ExpectedFailure
from conformance.suggestions import explain_missing

OPTION = "--baseline"


class Baseline(Format, frozen=True):
    """Expected failures of an implementation, beside its descriptor."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["ExpectedFailures"]
    implementation: Annotated[Text, Meta(description="the name in its descriptor")]
    expected_failures: list[ExpectedFailure]


def read(path: Path, option: str = OPTION) -> tuple[Document, Baseline]:
    """Return a file of expected failures, as a document and converted. Raises UsageError if the file is missing or
    invalid."""
    if not path.is_file():
        problem, suggestion = ("is a folder", "") if path.is_dir() else explain_missing(path)
        hint = suggestion or "`report baseline RUN --to FILE` writes one"
        raise UsageError(problem, where=f"{option} {documents.display_path(path)}", hint=hint)
    document, baseline = formats.read(path, Baseline)
    require_distinct(document, baseline.expected_failures)
    return document, baseline


def require_distinct(document: Document, entries: Iterable[ExpectedFailure]) -> None:
    """Raise UsageError if a file names a requirement twice."""
    ids: set[str] = set()
    for number, entry in enumerate(entries):
        if entry.id in ids:
            location = document.location("expectedFailures", number)
            raise UsageError(f"{entry.id} is a duplicate", where=location, hint="keep one of them")
        ids.add(entry.id)


def with_baseline(judged: Descriptor, baseline: Baseline, path: Path) -> Descriptor:
    """Return a descriptor with additional expected failures, which replace the descriptor's own entries for the same
    requirements. Raises UsageError if the baseline is for another implementation."""
    if baseline.implementation != judged.name:
        problem = f"has the failures of {baseline.implementation}, not of {judged.name}"
        hint = "give the file of this implementation, or correct its name there"
        raise UsageError(problem, where=f"{OPTION} {documents.display_path(path)}", hint=hint)
    ids = {entry.id for entry in baseline.expected_failures}
    own_entries = (entry for entry in judged.expected_failures if entry.id not in ids)
    return msgspec.structs.replace(judged, expected_failures=(*own_entries, *baseline.expected_failures))


def text(implementation: str, entries: Iterable[ExpectedFailure]) -> str:
    """Return a file of expected failures as YAML."""
    baseline = Baseline(
        "conformance.grove.io/v1alpha1", "ExpectedFailures", implementation, sorted(entries, key=lambda entry: entry.id)
    )
    content = msgspec.to_builtins(baseline)
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=116)
