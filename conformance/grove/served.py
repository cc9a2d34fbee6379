"""The kinds of Grove as CRDs must serve them (docs/spec/api.md, sections 1 and 2), and functions that read CRDs in the
same form.

Pure; the data are in fixtures/api/kinds.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from conformance import data, documents, formats
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.grove.fields import Document, at, items, text, texts

VERSION = "v1alpha1"
_ALWAYS_COMPARED = ("is", "required", "default")
"""The properties that are compared for every field, even if the file does not list them."""


Fact = Annotated[str, Meta(pattern="^[A-Z]+-[0-9]+$")]


class FieldEntry(Format, frozen=True, kw_only=True, omit_defaults=True):
    """A field, as an entry of the file; in its path, [] stands for any item of a list. `additional_values` are values
    that the enum may also have, `keys` those of a list of type map ([] for other lists), `holds` is a length in
    characters that the field must accept, and `shape` names the shape with the inner fields."""

    fact: Fact
    at: Text
    type: Literal["object", "array", "string", "integer", "number", "boolean"] = msgspec.field(name="is")
    required: bool = False
    default: str | int | bool | None = None
    enum: list[str] | None = None
    additional_values: tuple[str, ...] = ()
    keys: list[str] | None = None
    format: str | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    holds: int | None = None
    min_items: int | None = None
    shape: str = ""

    @property
    def properties(self) -> dict[str, object]:
        """Return the properties of the schema, by keyword."""
        names = ("fact", "at", "shape", "additionalValues")
        return {keyword: value for keyword, value in msgspec.to_builtins(self).items() if keyword not in names}


class Columns(Format, frozen=True):
    """The printer columns of a kind: name, path, type, priority."""

    fact: Fact
    are: list[list[Any]]


class KindEntry(Format, frozen=True, kw_only=True):
    """A kind, as an entry of the file. Its name is plural.group; `scale` has the paths of spec, status, selector."""

    fact: Fact
    name: str
    kind: str
    short_names: list[str]
    cluster: bool = False
    scale: Annotated[list[str], Meta(min_length=3, max_length=3)] | None = None
    columns: Columns
    fields: list[FieldEntry]


Shapes = dict[str, list[FieldEntry]]


class KindList(Format, frozen=True, kw_only=True):
    """The format of a file of kinds."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["Kinds"]
    shapes: Shapes
    kinds: list[KindEntry]


@dataclass(frozen=True)
class Field:
    """A field, identified by its path, with the expected properties of its schema."""

    fact: str
    path: str
    expected_properties: Mapping[str, object]
    additional_values: Sequence[str] = ()
    """Values that the enum may have in addition to the documented ones; if it has one of them, that value may be the
    default."""


@dataclass(frozen=True)
class Kind:
    """A kind: the names in its CRD, its subresources, printer columns and fields."""

    fact: str
    name: str
    expected_names: Mapping[str, object]
    columns_fact: str
    columns: Sequence[Sequence[object]]
    fields: Sequence[Field]

    @property
    def short_names(self) -> Sequence[str]:
        """Return the short names of the kind."""
        names = self.expected_names["shortNames"]
        assert isinstance(names, list)
        return names


def kinds() -> list[Kind]:
    """Return the kinds of the fixture."""
    return read(data.folder("fixtures") / "api" / "kinds.yaml")


def read(path: Path) -> list[Kind]:
    """Read a file of kinds. Raises UsageError with file, line and field if the file is invalid."""
    document, file = formats.read(path, KindList)
    for field, text_ in document.strings():
        if field[-1] == "shape" and text_ not in file.shapes:
            hint = documents.suggestion(text_, file.shapes)
            raise UsageError(f"unknown shape {text_!r}", where=document.location(*field), hint=hint)
    return [_kind(entry, file.shapes) for entry in file.kinds]


def facts(all_kinds: Sequence[Kind]) -> set[str]:
    """Return the rows of the specification that the kinds cite."""
    return {fact for kind in all_kinds for fact in (kind.fact, kind.columns_fact, *(f.fact for f in kind.fields))}


def observed_names(crd: Document, kind: Kind) -> dict[str, object]:
    """Return the names and subresources of a CRD in the form of `Kind.expected_names`. Undocumented short names are
    left out, because the contract permits them."""
    names, version = at(crd, "spec", "names"), _version(crd)
    subresources = at(version, "subresources")
    scale = at(subresources, "scale")
    paths = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return {
        "kind": text(names, "kind"),
        "singular": text(names, "singular"),
        "listKind": text(names, "listKind"),
        "shortNames": [name for name in kind.short_names if name in texts(names, "shortNames")],
        "scope": text(crd, "spec", "scope"),
        "status": at(subresources, "status") is not None,
        "scale": [text(scale, path) for path in paths] if scale is not None else None,
    }


def columns(crd: Document, kind: Kind) -> list[list[object]]:
    """Return the printer columns of a CRD (name, path, type, priority) that have a documented name. A CRD may have
    other columns between them."""
    documented_names = {column[0] for column in kind.columns}
    matches = [c for c in items(_version(crd), "additionalPrinterColumns") if text(c, "name") in documented_names]
    return [[text(c, "name"), text(c, "jsonPath"), text(c, "type"), at(c, "priority") or 0] for c in matches]


def observed_properties(crd: Document, field: Field) -> dict[str, object]:
    """Return the properties of a field in a CRD, in the form of `Field.expected_properties`. The type is None if there
    is no such field."""
    parent, schema, name = None, at(_version(crd), "schema", "openAPIV3Schema"), ""
    for step in _steps(field.path):
        parent, name = schema, step
        schema = at(schema, "items") if step == "[]" else at(schema, "properties", step)
    properties: dict[str, object] = {
        "is": text(schema, "type"),
        "required": name in texts(parent, "required"),
        "default": at(schema, "default"),
        "enum": sorted(texts(schema, "enum")) or None,
        "keys": sorted(texts(schema, "x-kubernetes-list-map-keys")),
    }
    for keyword in ("format", "pattern", "minLength", "maxLength", "minItems"):
        properties[keyword] = at(schema, keyword)
    if field.additional_values and isinstance(properties["enum"], list):
        if properties["default"] in set(field.additional_values) & set(properties["enum"]):
            properties["default"] = field.expected_properties["default"]
        properties["enum"] = [value for value in properties["enum"] if value not in field.additional_values]
    if isinstance(required_length := field.expected_properties.get("holds"), int):
        # The documented limit is a defect (DFT-13): a higher limit, or none at all, is also correct.
        limit = at(schema, "maxLength")
        properties["holds"] = min(required_length, limit) if isinstance(limit, int) else required_length
    return {keyword: properties[keyword] for keyword in field.expected_properties}


def _kind(entry: KindEntry, shapes: Shapes) -> Kind:
    return Kind(
        fact=entry.fact,
        name=entry.name,
        expected_names={
            "kind": entry.kind,
            "singular": entry.kind.lower(),
            "listKind": f"{entry.kind}List",
            "shortNames": entry.short_names,
            "scope": "Cluster" if entry.cluster else "Namespaced",
            "status": True,
            "scale": entry.scale,
        },
        columns_fact=entry.columns.fact,
        columns=[[*column, 0][:4] for column in entry.columns.are],
        fields=list(_fields(entry.fields, shapes, "")),
    )


def _fields(entries: Sequence[FieldEntry], shapes: Shapes, parent_path: str) -> Iterator[Field]:
    for entry in entries:
        path = parent_path + ("." if parent_path and not entry.at.startswith("[") else "") + entry.at
        expected_properties = {**dict.fromkeys(_ALWAYS_COMPARED), "required": False, **entry.properties}
        for keyword, values in (("enum", entry.enum), ("keys", entry.keys)):
            if values is not None:
                expected_properties[keyword] = sorted(values)
        yield Field(entry.fact, path, expected_properties, entry.additional_values)
        if entry.shape:
            yield from _fields(shapes[entry.shape], shapes, path)


def _version(crd: Document) -> Mapping[str, Any]:
    versions = [v for v in items(crd, "spec", "versions") if text(v, "name") == VERSION and at(v, "served") is True]
    return versions[0] if versions else {}


def _steps(path: str) -> Iterator[str]:
    """Split a path: `a.b[].c` → a, b, [], c."""
    for step in path.split("."):
        yield from filter(None, (step.removesuffix("[]"), "[]" if step.endswith("[]") else ""))
