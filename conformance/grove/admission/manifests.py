"""Read manifests with the verdict that admission must give, from fixtures/admission/*.yaml.

A manifest is either complete (`manifest`), or one of `bases` with some fields set or dropped. `${binding}` and
`${other}` stand for the ClusterTopologyBindings of the test (levels zone, rack, host), and `${scheduler}` for an
enabled scheduler.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import data, documents
from conformance.documents import Document, Field
from conformance.errors import UsageError

SCHEMA = "manifests.schema.json"
ACCEPTED = "accepted"
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[\"([^\"]*)\"\]")


@dataclass(frozen=True)
class Error:
    """An expected error of a rejection: part of the field's path, and the kind of error (empty for any kind)."""

    at: str
    kind: str = ""


@dataclass(frozen=True)
class Manifest:
    """One manifest."""

    name: str
    requirement: str
    rules: tuple[str, ...]
    object: Mapping[str, Any]
    stored: Mapping[str, Any] | None
    """The stored object that `object` replaces; None if `object` is created."""
    verdict: str
    """`accepted`, `refused`, or `either`."""
    errors: tuple[Error, ...]
    """Expected errors. Whether the manifest counts as rejected does not depend on them, see
    `conformance.tests.admission.judging`."""
    defaults: Mapping[str, Any]
    """Fields by path that the accepted object must have. Durations are compared by value, not by notation."""
    written: Mapping[str, str]
    """Path → duration, in the exact notation that the accepted object must have."""
    absent: tuple[str, ...]
    warnings: tuple[str, ...]
    """A part of the text of each expected warning."""
    silent: tuple[str, ...]
    """Texts that no warning may contain."""
    needs: frozenset[str]
    lacks: frozenset[str]
    bare: bool
    """Whether the manifest is sent without the labels and annotations that the descriptor adds, because its rule is
    about labels or annotations."""

    def applies(self, features: Collection[str]) -> bool:
        """Return whether the manifest applies to an implementation that claims these features."""
        return self.needs <= set(features) and self.lacks.isdisjoint(features)


def folder() -> Path:
    """Return the folder of the manifests."""
    return data.folder("fixtures") / "admission"


@functools.cache
def load(place: Path | None = None) -> tuple[Manifest, ...]:
    """Return all manifests, ordered by file name and line. Raises UsageError if a file is invalid."""
    return tuple(manifest for path in sorted((place or folder()).glob("*.yaml")) for manifest in read(path))


def read(path: Path) -> list[Manifest]:
    """Return the manifests of a file. Raises UsageError if an entry violates the schema or does not fit the file's
    bases."""
    document = documents.read(path, folder() / SCHEMA)
    manifests = [_manifest(document, i, entry) for i, entry in enumerate(document.value["manifests"])]
    for i, manifest in enumerate(manifests):
        if manifest.name in {earlier.name for earlier in manifests[:i]}:
            place = document.location("manifests", i, "name")
            raise UsageError(f"{manifest.name} is a duplicate", where=place, hint="give one another name")
    return manifests


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """Return a value in which each `${word}` is replaced."""
    if isinstance(value, Mapping):
        return {key: filled(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, words) for item in value]
    if not isinstance(value, str):
        return value
    for word, text in words.items():
        value = value.replace(f"${{{word}}}", text)
    return value


def at(value: Any, path: str) -> Any:
    """Return the field at a path such as `spec.template.cliques[0].name`; None if there is none."""
    for step in _steps(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, Sequence) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _manifest(document: Document, index: int, entry: Mapping[str, Any]) -> Manifest:
    field: Field = ("manifests", index)
    stored = None
    if "stored" in entry:
        stored = _object(document, (*field, "stored"), {"base": entry.get("base"), **entry["stored"]})
    return Manifest(
        name=entry["name"],
        requirement=entry["requirement"],
        rules=tuple(entry["rules"]),
        object=_object(document, field, entry),
        stored=stored,
        verdict=entry["verdict"],
        errors=tuple(Error(error["at"], error.get("kind", "")) for error in entry.get("errors", ())),
        defaults=entry.get("defaults", {}),
        written=entry.get("written", {}),
        absent=tuple(entry.get("absent", ())),
        warnings=tuple(entry.get("warnings", ())),
        silent=tuple(entry.get("silent", ())),
        needs=frozenset(entry.get("needs", ())),
        lacks=frozenset(entry.get("lacks", ())),
        bare=entry.get("bare", False),
    )


def _object(document: Document, field: Field, entry: Mapping[str, Any]) -> dict[str, Any]:
    if "manifest" in entry:
        return dict(entry["manifest"])
    bases = document.value.get("bases", {})
    if entry.get("base") not in bases:
        hint = documents.suggestion(str(entry.get("base")), bases)
        raise UsageError(f"unknown base {entry.get('base')!r}", where=document.location(*field), hint=hint)
    manifest: dict[str, Any] = filled(bases[entry["base"]], {})
    try:
        for path, value in entry.get("set", {}).items():
            _put(manifest, list(_steps(path)), value)
        for path in entry.get("drop", ()):
            *parents, last_step = _steps(path)
            del _walk(manifest, parents)[last_step]
    except (KeyError, IndexError, TypeError):
        hint = "give paths into the base"
        raise UsageError("a path of set or drop does not fit", where=document.location(*field), hint=hint) from None
    return manifest


def _steps(path: str) -> Iterator[str | int]:
    for name, index, quoted in _STEP.findall(path):
        yield int(index) if index else quoted or name


def _walk(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _put(target: Any, path: list[str | int], value: Any) -> None:
    """Set a field. An index one past the end of a list appends; missing objects on the way are created."""
    *parents, last_step = path
    for step in parents:
        if isinstance(target, dict) and step not in target:
            target[step] = {}
        target = target[step]
    if isinstance(target, list) and last_step == len(target):
        target.append(value)
    else:
        target[last_step] = filled(value, {})
