"""YAML files of this project and of its users: read, checked against a JSON schema, every error one line.

An error names file, line and field, and says how to mend it. Knows nothing of what the files mean.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from conformance.errors import UsageError

Field = tuple[str | int, ...]
"""The way to a value inside a document: keys and list indices."""


class Document:
    """One parsed YAML file: its `data` and the line of every field."""

    def __init__(self, path: Path, data: Any, lines: Mapping[Field, int]) -> None:
        self.path, self.data, self._lines = path, data, lines

    def where(self, field: Iterable[str | int] = ()) -> str:
        """`file:line` of a field (of its nearest parent, when the field itself is absent)."""
        at = tuple(field)
        while at and at not in self._lines:
            at = at[:-1]
        return f"{self.path}:{self._lines.get(at, 1)}"

    def error(self, what: str, field: Iterable[str | int] = (), *, mend: str = "") -> UsageError:
        """An error at a field, for checks that a schema cannot express."""
        at = tuple(field)
        return UsageError(f"{spell(at)}: {what}" if at else what, where=self.where(at), mend=mend)


def spell(field: Iterable[str | int]) -> str:
    """`('processes', 'operator', 'argv', 0)` as `processes.operator.argv[0]`."""
    text = ""
    for part in field:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def load(path: Path, schema: Path | None = None) -> Document:
    """Reads one YAML document and checks it. Raises UsageError: no file, not YAML, a key twice, against the schema."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise UsageError("no such file", where=str(path), mend="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "is not UTF-8 text"
        raise UsageError(f"cannot be read: {reason}", where=str(path)) from None
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise UsageError(f"is not YAML: {getattr(error, 'problem', None) or error}", where=where) from None
    lines: dict[Field, int] = {}
    if node is not None:
        _index(node, (), lines, path)
    document = Document(path, yaml.load(text, Loader=yaml.CSafeLoader), lines)
    if schema is not None:
        check(document, schema)
    return document


def check(document: Document, schema: Path) -> None:
    """Checks a document against a JSON schema file; raises UsageError for the first error in the file's order."""
    errors = sorted(_validator(schema).iter_errors(document.data), key=lambda e: [str(p) for p in e.absolute_path])
    if errors:
        worst = min(errors, key=lambda e: int(document.where(e.absolute_path).rsplit(":", 1)[1]))
        raise _explain(document, worst)


def suggest(word: str, known: Iterable[str]) -> str:
    """`did you mean …?` or the list of what is known: the usual end of an error about an unknown name."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    listed = ", ".join(names) if names else "none"
    return f"did you mean {close[0]!r}? known: {listed}" if close else f"known: {listed}"


@cache
def _validator(schema: Path) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(schema.read_text("utf-8")))


def _index(node: yaml.Node, at: Field, lines: dict[Field, int], path: Path) -> None:
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise UsageError(
                    f"{spell((*at, name))}: stands here twice",
                    where=f"{path}:{key.start_mark.line + 1}",
                    mend="remove one of the two",
                )
            seen.add(name)
            lines[(*at, name)] = key.start_mark.line + 1
            _index(value, (*at, name), lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _index(value, (*at, number), lines, path)


def _explain(document: Document, error: jsonschema.ValidationError) -> UsageError:
    """Our own words for the schema errors that people make; the validator's for the rest."""
    at = tuple(error.absolute_path)
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    wanted: Any = error.validator_value
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known: Sequence[str] = list(schema.get("properties", {}))
        unknown = [key for key in error.instance if key not in known]
        if unknown:
            return document.error("unknown field", (*at, unknown[0]), mend=suggest(str(unknown[0]), known))
    if error.validator == "required" and isinstance(error.instance, Mapping):
        missing = [key for key in wanted if key not in error.instance]
        about = schema.get("properties", {}).get(missing[0], {}).get("description", "")
        mend = f"add `{missing[0]}:`" + (f" ({about})" if about else "")
        return document.error("is missing", (*at, missing[0]), mend=mend)
    if error.validator == "enum":
        return document.error(
            f"{error.instance!r} is not allowed", at, mend=suggest(str(error.instance), map(str, wanted))
        )
    if error.validator == "const":
        return document.error(f"{error.instance!r} is not allowed", at, mend=f"write {wanted!r}")
    if error.validator == "type":
        return document.error(f"must be of type {wanted}, is {_kind(error.instance)}", at)
    about = str(schema.get("description", ""))
    return document.error(error.message, at, mend=about)


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return names.get(type(value), type(value).__name__)
