"""The formats of YAML files, as types: a file is checked and converted in one step.

A mapping of a format is a `Format`, whose fields have the names, types and constraints of the file (`msgspec.Meta`);
its description appears in the hint of an error. Field names are camelCase in files. What no type can express is checked
by the module that reads the format.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from conformance import bounded, documents
from conformance.documents import Document

T = TypeVar("T")

Text = Annotated[str, Meta(min_length=1)]
"""A string that is not empty."""


class Format(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping of a file. A field with the default None may be absent, but not null."""


def read(path: Path, kind: type[T], *, max_bytes: int = bounded.MAX_BYTES) -> tuple[Document, T]:
    """Return a YAML file as a document, which knows the line of each value, and converted to its type.

    Raises UsageError like `documents.read`.
    """
    document = documents.read(path, schema(kind), max_bytes=max_bytes)
    return document, convert(document, kind)


def convert(document: Document, kind: type[T]) -> T:
    """Return a document that the schema of the type accepts as that type."""
    return msgspec.convert(document.value, kind)


def schema(kind: Any) -> str:
    """Return the JSON schema of a type as text."""
    return _schema(kind)


@functools.cache
def _schema(kind: Hashable) -> str:
    return json.dumps(_strict(msgspec.json.schema(kind)))


def _strict(rule: Any) -> Any:
    """Return a schema in which a field that may be absent may not be null, and a literal is a constant, and the
    keys of a mapping that are enumerated are fields. The type of a value is the first rule about it, because it makes
    the best message."""
    if isinstance(rule, list):
        return [_strict(entry) for entry in rule]
    if not isinstance(rule, dict):
        return rule
    strict = {name: _strict(value) for name, value in rule.items()}
    if "default" in strict and strict["default"] is None:
        choices = [choice for choice in strict.pop("anyOf") if choice != {"type": "null"}]
        strict |= choices[0] if len(choices) == 1 else {"anyOf": choices}
        strict.pop("default")
    if names := strict.get("propertyNames", {}).get("enum"):
        strict |= {"properties": dict.fromkeys(names, strict["additionalProperties"]), "additionalProperties": False}
        strict.pop("propertyNames")
    types = [_type(choice) for choice in strict.get("anyOf", ())]
    if types and None not in types:  # a union: a mistake is one in the choice that has the type of the value
        alternatives = zip(types, strict.pop("anyOf"), strict=True)
        strict["type"] = sorted(types, key=lambda name: name == "array")
        strict["allOf"] = [{"if": {"type": name}, "then": choice} for name, choice in alternatives]
    if isinstance(strict.get("enum"), list) and len(strict["enum"]) == 1:
        strict["const"] = strict.pop("enum")[0]
    first = ("$ref", "const", "type")
    return dict(sorted(strict.items(), key=lambda item: first.index(item[0]) if item[0] in first else len(first)))


def _type(rule: Mapping[str, Any]) -> str | None:
    """Return the type that a rule permits; None if it is a rule about several. A reference is to a mapping, and a
    literal is a text."""
    if "$ref" in rule:
        return "object"
    literal = "string" if rule.keys() & {"const", "enum"} else None
    return str(rule["type"]) if "type" in rule else literal
