"""Read manifests with the verdict that admission must give, from fixtures/admission/*.yaml.

A manifest is either complete (`manifest`), or one of `bases` with some fields set or dropped. `${binding}` and
`${other}` stand for the ClusterTopologyBindings of the test (levels zone, rack, host), and `${scheduler}` for an
enabled scheduler.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field, structs

from conformance import data, documents, formats
from conformance.errors import UsageError
from conformance.formats import Format, Text

ACCEPTED = "accepted"
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[\"([^\"]*)\"\]")


Bases = Mapping[str, Mapping[str, Any]]
Texts = tuple[Text, ...]
Feature = Literal["topology", "mnnvl", "kai", "authorizer", "workload-api-mapping"]


class Error(Format, frozen=True):
    """An expected error of a rejection: part of the field's path without indices, and the kind of error (empty for any
    kind)."""

    at: Text
    kind: Literal["", "Required", "Invalid", "Duplicate", "NotFound", "NotSupported", "Forbidden", "TooLong"] = ""


class Change(Format, frozen=True, kw_only=True):
    """A complete object, or a base in which fields are set or dropped by path."""

    base: Annotated[str, Meta(description="name of a base")] = ""
    set: dict[str, Any] = field(default_factory=dict)
    drop: Texts = ()
    manifest: dict[str, Any] | None = None


class ManifestEntry(Change, frozen=True, kw_only=True):
    """A manifest with the verdict that admission must give, as an entry of a file."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9-]+$", description="a unique name in kebab-case")]
    requirement: Annotated[str, Meta(pattern="^[A-Z]+-[0-9]{3}$", description="the requirement that it tests")]
    rules: Annotated[tuple[str, ...], Meta(min_length=1, description="rows of the specification")]
    stored: Change | None = None
    """The stored object that the manifest replaces; empty for the base itself."""
    verdict: Literal["accepted", "refused", "either"]
    errors: tuple[Error, ...] = ()
    """Expected errors. Whether the manifest counts as rejected does not depend on them, see
    `conformance.tests.admission.judging`."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Fields by path that the accepted object must have. Durations are compared by value, not by notation."""
    written: dict[str, str] = field(default_factory=dict)
    """Path → duration, in the exact notation that the accepted object must have."""
    absent: Texts = ()
    warnings: Texts = ()
    """A part of the text of each expected warning."""
    silent: Texts = ()
    """Texts that no warning may contain."""
    needs: frozenset[Feature] = frozenset()
    lacks: frozenset[Feature] = frozenset()
    bare: bool = False
    """Whether the manifest is sent without the labels and annotations that the descriptor adds, because its rule is
    about labels or annotations."""

    def applies(self, features: Collection[str]) -> bool:
        """Return whether the manifest applies to an implementation that claims these features."""
        return self.needs <= set(features) and self.lacks.isdisjoint(features)


class Manifest(ManifestEntry, frozen=True, kw_only=True):
    """One manifest: the object that is sent, and the stored object that it replaces (None if it is created)."""

    object: Mapping[str, Any]
    stored_object: Mapping[str, Any] | None


class ManifestList(Format, frozen=True, kw_only=True):
    """The format of a file of manifests. `bases` are accepted manifests from which others are derived."""

    about: Annotated[Text, Meta(description="what the file is about, in a sentence")]
    bases: dict[
        str,
        Annotated[dict[str, Any], Meta(extra_json_schema={"required": ["apiVersion", "kind", "metadata", "spec"]})],
    ] = field(default_factory=dict)
    manifests: Annotated[
        list[
            Annotated[
                ManifestEntry, Meta(extra_json_schema={"oneOf": [{"required": ["base"]}, {"required": ["manifest"]}]})
            ]
        ],
        Meta(min_length=1),
    ]


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
    document, file = formats.read(path, ManifestList)
    manifests: dict[str, Manifest] = {}
    for i, entry in enumerate(file.manifests):
        if entry.name in manifests:
            place = document.location("manifests", i, "name")
            raise UsageError(f"{entry.name} is a duplicate", where=place, hint="give one another name")
        manifests[entry.name] = _manifest(file.bases, entry, document.location("manifests", i))
    return list(manifests.values())


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


def _manifest(bases: Bases, entry: ManifestEntry, place: str) -> Manifest:
    stored_object = None
    if entry.stored:
        change = structs.replace(entry.stored, base=entry.stored.base or entry.base)
        stored_object = _object(bases, change, f"{place}.stored")
    return Manifest(object=_object(bases, entry, place), stored_object=stored_object, **structs.asdict(entry))


def _object(bases: Bases, change: Change, place: str) -> dict[str, Any]:
    if change.manifest is not None:
        return dict(change.manifest)
    if change.base not in bases:
        hint = documents.suggestion(change.base, bases)
        raise UsageError(f"unknown base {change.base!r}", where=place, hint=hint)
    manifest: dict[str, Any] = filled(bases[change.base], {})
    try:
        for path, value in change.set.items():
            _put(manifest, list(_steps(path)), value)
        for path in change.drop:
            *parents, last_step = _steps(path)
            del _walk(manifest, parents)[last_step]
    except (KeyError, IndexError, TypeError):
        hint = "give paths into the base"
        raise UsageError("a path of set or drop does not fit", where=place, hint=hint) from None
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
