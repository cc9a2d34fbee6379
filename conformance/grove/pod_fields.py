"""Generate pod specs in which every field of the served schema is set, from the API server's OpenAPI document. Pure.

A field gets a value according to its type. `fixtures/pods/fields.yaml` lists the values of fields that Kubernetes
restricts, fields that exclude each other, and fields that are never set, with the reason. A field that a later version
of Kubernetes adds is therefore set without a change to this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from conformance import data, formats
from conformance.formats import Format, Text

Schema = Mapping[str, Any]
PodSpec = dict[str, Any]

ROOT = "PodSpec"
OBJECTS = "objects"
"""The entry in `alternatives` for a type of whose fields of object type only one can be set."""
BY_ITEM = "byItem"
"""The key of a value that depends on the index of the list item: item i gets the i-th entry, starting over at the end;
null omits the field."""
_QUANTITY, _INT_OR_STRING = "Quantity", "IntOrString"
_WORD = re.compile(r"\$\{(list|n|item|alternative|name)\}")
_MAX_DEPTH = 40


FieldName = Annotated[str, Meta(pattern=r"^[A-Za-z]+\.[A-Za-z]+$", description="Type.field or holder.field")]
Values = dict[FieldName, Any]
Exclusions = dict[FieldName, Text]
"""Field → why it is not set."""
Names = Annotated[list[str], Meta(min_length=1)]
Alternatives = dict[str, Literal["objects"] | Annotated[list[str | Names], Meta(min_length=2)]]


class TemplateEntry(Format, frozen=True):
    """The rules of one pod spec beside those of all. `only` are the alternatives of a type that it has."""

    name: Annotated[str, Meta(pattern="^[a-z-]+$")]
    excluded: Exclusions
    values: Values = msgspec.field(default_factory=dict)
    only: dict[str, Names] = msgspec.field(default_factory=dict)


class PodFields(Format, frozen=True):
    """The format of fields.yaml."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["PodFields"]
    alternatives: Alternatives
    values: Values
    excluded: Exclusions
    templates: Annotated[list[TemplateEntry], Meta(min_length=1)]


@dataclass(frozen=True)
class Template:
    """The rules of one pod spec. Keys of `values` and `excluded` are `Type.field`, or `holder.field` for the objects in
    one particular field or list. `alternatives` maps a type to those of its fields of which only one can be set, or to
    OBJECTS; fields that must be set together form one alternative. `permitted` maps a type to the alternatives that the
    template uses, if it does not use all of them."""

    name: str
    values: Mapping[str, Any]
    excluded: Mapping[str, str]
    alternatives: Mapping[str, str | Sequence[str | Sequence[str]]]
    permitted: Mapping[str, Sequence[str]]


def templates(path: Path | None = None) -> list[Template]:
    """Read the rules. Raises UsageError with file, line and field if the file is invalid."""
    _, file = formats.read(path or data.folder("fixtures") / "pods" / "fields.yaml", PodFields)
    return [
        Template(entry.name, file.values | entry.values, file.excluded | entry.excluded, file.alternatives, entry.only)
        for entry in file.templates
    ]


def pod_spec(schemas: Mapping[str, Schema], template: Template, name: str) -> PodSpec:
    """Return the pod spec of a template. `schemas` are `components.schemas` of the API server's OpenAPI document for
    core/v1. `name` is the name of the objects that must exist: a ServiceAccount, a PriorityClass and a RuntimeClass."""
    spec: PodSpec = _Generator(schemas, template, name).object(ROOT, _Place())
    return spec


@dataclass(frozen=True)
class _Place:
    """The position of a generated value. `field` is the innermost field, and `list` the innermost list of objects;
    `item` is the index in that list, and `number` combines it with the indices in the enclosing lists; `choice` is the
    number of the alternative that this item uses, and `alternative` the name of its field."""

    field: str = ""
    list: str = ""
    item: int = 0
    number: int = 0
    choice: int = 0
    alternative: str = ""
    depth: int = 0

    def inside(self, field: str) -> _Place:
        return replace(self, field=field, depth=self.depth + 1)

    def at(self, item: int) -> _Place:
        return replace(self, list=self.field, item=item, number=10 * self.number + item, choice=item)


class _Generator:
    def __init__(self, schemas: Mapping[str, Schema], template: Template, name: str) -> None:
        self._schemas, self._template, self._name = schemas, template, name

    @cached_property
    def _types(self) -> dict[str, Schema]:
        return {name.rpartition(".")[2]: schema for name, schema in self._schemas.items() if is_of_pods(name)}

    def object(self, type_name: str, place: _Place) -> Any:
        """Return a value of a type."""
        if type_name == _QUANTITY:
            return "1"
        if type_name == _INT_OR_STRING:
            return _number(place)
        schema = self._types[type_name]
        if "properties" not in schema:
            return self._scalar(schema, place)
        chosen_fields, choice = self._choice(type_name, place)
        if chosen_fields:
            place = replace(place, alternative=chosen_fields[0].lower() + (f"-{choice}" if choice else ""))
        value: dict[str, Any] = {}
        for field, field_schema in self._fields(type_name, chosen_fields, place):
            number = choice if field in chosen_fields else place.choice
            generated = self._value(type_name, field, field_schema, replace(place, choice=number))
            if generated is not None:
                value[field] = generated
        return value

    def _choice(self, type_name: str, place: _Place) -> tuple[Sequence[str], int]:
        """Return the alternative that an object uses, and the number of the choice within that alternative."""
        groups = self._alternatives(type_name, place)
        counts = [self._count_of(type_name, group, place) for group in groups]
        choice = place.choice % sum(counts) if counts else 0
        for group, count in zip(groups, counts, strict=True):
            if choice < count:
                return group, choice
            choice -= count
        return (), 0

    def _fields(self, type_name: str, chosen_fields: Sequence[str], place: _Place) -> Iterator[tuple[str, Schema]]:
        """Yield the fields of the chosen alternative, and the fields of the type that can be set alongside it."""
        properties = self._types[type_name]["properties"]
        alternatives = {field for group in self._groups(type_name) for field in group}
        for field, schema in properties.items():
            if field in chosen_fields or (field not in alternatives and not self._is_excluded(type_name, field, place)):
                yield field, schema

    def _groups(self, type_name: str) -> list[tuple[str, ...]]:
        """Return the groups of fields of a type, of which only one group can be set."""
        rule = self._template.alternatives.get(type_name, ())
        properties = self._types[type_name]["properties"]
        if rule == OBJECTS:
            return [(field,) for field, schema in properties.items() if self._is_object(schema)]
        groups = [(alternative,) if isinstance(alternative, str) else tuple(alternative) for alternative in rule]
        served_groups = [tuple(field for field in group if field in properties) for group in groups]
        return [group for group in served_groups if group]

    def _alternatives(self, type_name: str, place: _Place) -> list[tuple[str, ...]]:
        """Return the groups of alternatives that the template permits."""
        permitted = self._template.permitted.get(type_name)
        return [
            group
            for group in self._groups(type_name)
            if (permitted is None or group[0] in permitted)
            and not any(self._is_excluded(type_name, field, place) for field in group)
        ]

    def _count_of(self, type_name: str, group: Sequence[str], place: _Place) -> int:
        properties = self._types[type_name]["properties"]
        return max(self._count(properties[field], place.inside(field)) for field in group)

    def _count(self, schema: Schema, place: _Place) -> int:
        """Return how many alternatives a value has, not counting alternatives in lists inside it."""
        type_name = _reference(schema)
        if not type_name or type_name in (_QUANTITY, _INT_OR_STRING) or place.depth > _MAX_DEPTH:
            return 1
        if "properties" not in self._types[type_name]:
            return 1
        alternatives = [
            self._count(schema, place.inside(field))
            for field, schema in self._fields(type_name, (), place)
            if not any(key in self._template.values for key in _keys(type_name, field, place))
        ]
        return max(
            1,
            *alternatives,
            sum(self._count_of(type_name, group, place) for group in self._alternatives(type_name, place)),
        )

    def _is_excluded(self, type_name: str, field: str, place: _Place) -> bool:
        return any(key in self._template.excluded for key in _keys(type_name, field, place))

    def _value(self, type_name: str, field: str, schema: Schema, place: _Place) -> Any:
        for key in _keys(type_name, field, place):
            if key in self._template.values:
                return self._filled(self._template.values[key], place)
        return self._by_type(schema, place.inside(field))

    def _by_type(self, schema: Schema, place: _Place) -> Any:
        if type_name := _reference(schema):
            return self.object(type_name, place)
        match schema.get("type"):
            case "array":
                items = schema["items"]
                if not self._is_object(items):
                    return [self._scalar(items, replace(place, item=n, number=n)) for n in range(2)]
                return [self._by_type(items, place.at(n)) for n in range(max(2, self._count(items, place)))]
            case "object":
                field_schema = schema.get("additionalProperties", {"type": "string"})
                return {"example.com/key": self._by_type(field_schema, place)}
        return self._scalar(schema, place)

    def _is_object(self, schema: Schema) -> bool:
        """Return whether the values of a schema are objects with fields."""
        type_name = _reference(schema)
        return type_name not in ("", _QUANTITY, _INT_OR_STRING) and "properties" in self._types[type_name]

    def _scalar(self, schema: Schema, place: _Place) -> Any:
        if choices := [choice for choice in schema.get("enum", ()) if choice]:
            return choices[place.item % len(choices)]
        match schema.get("type"):
            case "integer" | "number":
                return _number(place)
            case "boolean":
                return True
        return f"{place.field.lower()}-{place.number}"

    def _filled(self, value: Any, place: _Place) -> Any:
        """Return a value from the table with its placeholders and BY_ITEM resolved."""
        if isinstance(value, Mapping):
            if BY_ITEM in value:
                return self._filled(value[BY_ITEM][place.item % len(value[BY_ITEM])], place)
            return {key: self._filled(item, place) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, place) for item in value]
        if not isinstance(value, str):
            return value
        words = {
            "list": place.list.lower(),
            "n": place.number,
            "item": place.item,
            "alternative": place.alternative,
            "name": self._name,
        }
        return _WORD.sub(lambda match: str(words[match[1]]), value)


def _number(place: _Place) -> int:
    return 1 + place.number % 100


def _keys(type_name: str, field: str, place: _Place) -> tuple[str, ...]:
    """Return the keys of a field in the table: the key with the field or list that holds the object takes precedence
    over the key with the type."""
    return (f"{place.field}.{field}", f"{type_name}.{field}")


def is_of_pods(name: str) -> bool:
    """Return whether a type belongs to core/v1 or to the API machinery, where names are unique without their
    package."""
    return ".api.core.v1." in name or ".apimachinery." in name


def _reference(schema: Schema) -> str:
    """Return the name of the type that a schema refers to, without its package; empty if it refers to none."""
    references = [schema, *schema.get("allOf", ())]
    return next((str(reference["$ref"]).rpartition(".")[2] for reference in references if "$ref" in reference), "")
