"""Readers of YAML data files. Each error is reported on one line with the file, line and field (docs/design.md, section
"Errors").

A document is checked against a JSON schema and keeps the line of every field, so that checks that a schema cannot
express report errors just as precisely.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from conformance import bounded, data, document_cache
from conformance.document_cache import Field as Field
from conformance.errors import UsageError
from conformance.suggestions import suggestion as suggestion

if TYPE_CHECKING:
    import jsonschema


_MAX_INTEGER_BITS = 63
"""Maximum number of bits of an integer, without its sign, in Kubernetes' JSON and in our encoder's."""


@dataclass(frozen=True)
class Document:
    """A YAML file with one document whose root is a mapping."""

    path: Path
    value: Mapping[str, Any]
    lines: Mapping[Field, int]
    """Line (from 1) at which each value starts; for the value of a key, the line of the key."""

    def location(self, *field: str | int) -> str:
        """Return `file:line: field`. If the file does not contain the field, the line is that of the nearest enclosing
        value."""
        known_field = field
        while known_field and known_field not in self.lines:
            known_field = known_field[:-1]
        position = f"{display_path(self.path)}:{self.lines.get(known_field, 1)}"
        return f"{position}: {field_text(field)}" if field else position

    def strings(self, *parent: str | int) -> Iterator[tuple[Field, str]]:
        """Yield every string below a field, together with the string's own field, in file order."""
        value: Any = self.value
        for step in parent:
            value = value.get(step) if isinstance(value, Mapping) else value[step]
        yield from _strings(value, parent)


def read(path: Path, schema: Path | str, *, max_bytes: int = bounded.MAX_BYTES) -> Document:
    """Read `path` and check it against a JSON schema: a file, or its text. A data file of this project is read and
    checked only once; the result is cached.

    Raises UsageError if the file is unreadable, is not YAML, has a duplicate key, or violates the schema (the first
    violation by line).
    """
    text, rules = _text(path, max_bytes), _rules(schema)
    key = document_cache.key(text, rules) if path.is_relative_to(data.PROJECT) else ""
    if key and (entry := document_cache.load(key)):
        return Document(path, entry.value, dict(entry.lines))
    document = _parse(path, text)
    _check(document, rules)
    if key:
        document_cache.save(key, document.value, document.lines)
    return document


def parse(path: Path) -> Document:
    """Read a YAML file without a schema. Raises UsageError if the file is unreadable or invalid, or if its root is not
    a mapping."""
    return _parse(path, _text(path))


def parse_report(path: Path, text: str) -> Any:
    """Return the value of YAML text that the suite itself has written, as JSON values; its root need not be a mapping.
    Raises UsageError if the text is invalid."""
    return _value(path, text, {}, bounded.MAX_REPORT_VALUES, by_suite=True)


def parse_all(path: Path, text: str) -> list[Any]:
    """Return the non-empty documents of a YAML file whose content is `text`. Raises UsageError if the text is
    invalid."""
    values: list[Any] = []
    loader = bounded.LOADER(text)
    try:
        bounded.check_depth(text, display_path(path))
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # check_node has just found it
            bounded.check(node, display_path(path))
            values += filter(None, [loader.construct_document(node)])
        orjson.dumps(values)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(
            f"is not YAML: {error.problem}", where=f"{display_path(path)}:{line}", hint="fix the syntax there"
        ) from error
    except yaml.YAMLError as error:
        raise UsageError(
            f"is not YAML: {error}".splitlines()[0], where=display_path(path), hint="fix the syntax"
        ) from error
    except (
        bounded.CONSTRUCTOR_ERRORS
    ) as error:  # an invalid date, a number with thousands of digits, a key that is not a string
        raise UsageError(f"cannot be read: {error}", where=display_path(path), hint="put it in quotes") from error
    finally:
        loader.dispose()
    return values


def _text(path: Path, max_bytes: int = bounded.MAX_BYTES) -> str:
    return bounded.text(path, max_bytes, display_path(path))


def _parse(path: Path, text: str) -> Document:
    lines: dict[Field, int] = {}
    value = _value(path, text, lines, bounded.MAX_VALUES)
    if not isinstance(value, dict):
        raise UsageError(
            f"holds {_type_name(value)}", where=f"{display_path(path)}:1", hint="its root must be a mapping"
        )
    return Document(path, value, lines)


def _value(path: Path, text: str, lines: dict[Field, int], limit: int, *, by_suite: bool = False) -> Any:
    loader = yaml.CSafeLoader(text)
    try:
        bounded.check_depth(text, display_path(path), limit)
        node = loader.get_single_node()
        if node is not None:
            bounded.check(node, display_path(path), limit)
        return None if node is None else _construct(loader, node, (), lines, path, by_suite)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or error.context or "not YAML"
        raise UsageError(
            f"is not YAML: {problem}", where=f"{display_path(path)}:{line}", hint="fix the syntax there"
        ) from error
    except yaml.YAMLError as error:
        raise UsageError(
            f"is not YAML: {error}".splitlines()[0], where=display_path(path), hint="fix the syntax"
        ) from error
    finally:
        loader.dispose()


def check(document: Document, schema: Path | str) -> None:
    """Raise UsageError with the first violation, by line, of a JSON schema: a file, or its text. Missing fields are
    reported last, because a missing field is often a misspelled one that is reported as unknown."""
    _check(document, _rules(schema))


def _rules(schema: Path | str) -> str:
    return schema if isinstance(schema, str) else schema.read_text("utf-8")


def _check(document: Document, rules: str) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(rules), format_checker=jsonschema.FormatChecker())
    errors = [_deepest(error) for error in validator.iter_errors(document.value)]
    if errors:
        complaints = [(error.validator in _MISSING_FIELD_RULES, *_complaint(document, error)) for error in errors]
        _, _, field, problem, hint = min(complaints, key=lambda complaint: complaint[:2])
        raise UsageError(problem, where=document.location(*field), hint=hint)


def display_path(path: Path) -> str:
    """Return a path for display: relative to the current folder if it lies below it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def field_text(field: Iterable[str | int]) -> str:
    """Return a field as text: `processes.operator.argv[0]`."""
    text = ""
    for step in field:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _construct(
    loader: yaml.CSafeLoader, node: yaml.Node, field: Field, lines: dict[Field, int], path: Path, by_suite: bool
) -> Any:
    lines.setdefault(field, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        _reject_duplicate_keys(node, field, path)
        loader.flatten_mapping(node)
        result = {}
        for key_node, value_node in node.value:
            key = _scalar(loader, key_node, field, path, by_suite)
            if not isinstance(key, str):
                location = f"{display_path(path)}:{key_node.start_mark.line + 1}: {field_text(field)}".removesuffix(
                    ": "
                )
                key_text = f"the key {key!r}" if isinstance(key_node, yaml.ScalarNode) else "a key"
                raise UsageError(f"{key_text} is not text", where=location, hint="put it in quotes")
            lines[(*field, key)] = key_node.start_mark.line + 1
            result[key] = _construct(loader, value_node, (*field, key), lines, path, by_suite)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [
            _construct(loader, item, (*field, index), lines, path, by_suite) for index, item in enumerate(node.value)
        ]
    return _scalar(loader, node, field, path, by_suite)


def _scalar(loader: yaml.CSafeLoader, node: yaml.Node, field: Field, path: Path, by_suite: bool) -> Any:
    """Return a scalar. Raises UsageError for a value that JSON cannot represent and, unless the suite wrote the file,
    for a string with a NUL character, which can be neither a file name nor an argument."""

    def usage_error(problem: str, hint: str) -> UsageError:
        location = f"{display_path(path)}:{node.start_mark.line + 1}: {field_text(field)}".removesuffix(": ")
        return UsageError(problem, where=location, hint=hint)

    try:
        value = loader.construct_object(node)
    except bounded.CONSTRUCTOR_ERRORS as error:  # an invalid date, a number with thousands of digits
        raise usage_error(f"cannot be read: {error}", "fix the value, or put it in quotes") from error
    if isinstance(value, str) and "\0" in value and not by_suite:
        raise usage_error("holds a NUL character", "remove it")
    if isinstance(value, float) and not math.isfinite(value):
        raise usage_error(f"is not a finite number: {value}", "give a number")
    if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
        raise usage_error(f"has more than {_MAX_INTEGER_BITS} bits", "give a smaller number, or put it in quotes")
    if isinstance(node, yaml.ScalarNode) and not isinstance(value, str | float | int | datetime.date | None):
        raise usage_error(f"is a {node.tag.rpartition(':')[2]}", "give text")
    # A schema knows only JSON: for YAML, `expires: 2027-01-31` is a date; here it is text.
    return value.isoformat() if isinstance(value, datetime.date) else value


def _reject_duplicate_keys(node: yaml.MappingNode, parent: Field, path: Path) -> None:
    keys: set[str] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            continue  # `_construct` rejects the key
        if key_node.value in keys and key_node.tag != "tag:yaml.org,2002:merge":
            field = field_text((*parent, key_node.value))
            location = f"{display_path(path)}:{key_node.start_mark.line + 1}: {field}"
            raise UsageError("duplicate key", where=location, hint="keep one of them")
        keys.add(key_node.value)


def _strings(value: Any, field: Field) -> Iterator[tuple[Field, str]]:
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(item, (*field, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*field, index))


def _deepest(error: jsonschema.ValidationError) -> jsonschema.ValidationError:
    """Return the error in the branch of an `anyOf`/`oneOf` that came closest to matching, because it names the actual
    mistake."""
    while error.context:
        error = max(error.context, key=lambda e: (len(e.absolute_path), e.validator not in ("type", "const")))
    return error


def _complaint(document: Document, error: jsonschema.ValidationError) -> tuple[int, Field, str, str]:
    """Return the line, the field, the problem, and a hint."""
    field: Field = tuple(error.absolute_path)
    problem, hint = _problem_and_hint(error)
    if error.validator == "additionalProperties":
        schema: Any = error.schema
        properties = schema.get("properties", {})
        instance: Any = error.instance
        unknown = next(key for key in instance if key not in properties)
        field, problem, hint = (*field, unknown), "unknown field", suggestion(unknown, properties)
    ancestor = field
    while ancestor and ancestor not in document.lines:
        ancestor = ancestor[:-1]
    return document.lines.get(ancestor, 1), field, problem, hint


def _problem_and_hint(error: jsonschema.ValidationError) -> tuple[str, str]:
    schema: Any = error.schema
    value: Any = error.instance
    rule: Any = error.validator_value
    hint = schema.get("description", "")
    match error.validator:
        case "required":
            missing_field = next(name for name in rule if name not in value)
            property_schema = schema.get("properties", {}).get(missing_field)
            # a schema may also be `true`
            description = property_schema.get("description", "") if isinstance(property_schema, dict) else ""
            return (
                f'the field "{missing_field}" is missing',
                f"add it ({description.rstrip('.')})" if description else "add it",
            )
        case "dependentRequired":
            name, missing_field = next(
                (name, needed) for name in rule if name in value for needed in rule[name] if needed not in value
            )
            return f'the field "{missing_field}" is missing', f"add it: {name} needs it"
        case "enum":
            return f"{json.dumps(value)} is not known here", suggestion(str(value), map(str, rule))
        case "const":
            return f"{json.dumps(value)} is wrong", f"write {json.dumps(rule)}"
        case "type":
            names = [rule] if isinstance(rule, str) else list(rule)
            types = " or ".join(_TYPES.get(name, name) for name in names)
            return f"holds {_type_name(value)}", f"give {types}"
        case "minItems" | "minLength" | "minProperties":
            return "is empty", hint or "give at least one"
        case "propertyNames" | "pattern":
            return f"{json.dumps(value)} has the wrong form", hint or f"it must match {rule}"
        case _:
            return error.message.splitlines()[0], hint or "fix the value"


_MISSING_FIELD_RULES = ("required", "dependentRequired")
"""Schema rules about missing fields. They are reported last, because a misspelled field, which often breaks them, is
the better message."""
_TYPES = {
    "string": "a text",
    "object": "a mapping",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "a mapping"
