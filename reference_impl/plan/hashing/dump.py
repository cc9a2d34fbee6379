"""The text of a pod template that Grove's operators hash: every field of every Go struct, set or not, on one line (spec
HASH-030 to HASH-052).

A printer is built once for each struct and each version of the Kubernetes libraries. It writes the text in pieces. The
text between two set fields is a single piece that is built once, so that pieces repeat (see `fnv`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kube.gotypes import LIBRARIES, Types, pod_template_types
from reference_impl.plan.hashing import quantity

NEWEST = LIBRARIES[-1]
PINNED = LIBRARIES[0]
"""The library version with which upstream computes its canonical hash."""
_NIL = "<nil>"
_ZERO_TIME = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


@dataclass
class Text:
    """A dump that is being written. `foreign` counts the fields that are set but that the library does not have; they
    are omitted."""

    pieces: list[str] = field(default_factory=list)
    foreign: int = 0


Print = Callable[[Any, Text], None]


@dataclass(frozen=True)
class _Printer:
    """Prints values of one type. `zero` is the text of an absent value."""

    zero: str
    write: Print


@dataclass(frozen=True)
class _Leaf:
    """A field with a JSON name, or such a field of an embedded struct. An `optional` field is omitted unless it is
    set."""

    json: str
    head: str
    printer: _Printer
    tail: str = ""
    optional: bool = False

    @property
    def zero(self) -> str:
        return "" if self.optional else self.head + self.printer.zero + self.tail


def template(
    labels: object, annotations: object, spec: Mapping[str, Any], library: str, *, later: bool = False
) -> Text:
    """Return the dump of a pod template by one version of the libraries. With `later`, fields of later versions are
    included if they are set. A change to such a field is therefore noticed, while its introduction changes no hash."""
    text = Text(["(*v1.PodTemplateSpec)"])
    metadata = {"labels": labels, "annotations": annotations}
    _printer_factory(library, later).struct("v1.PodTemplateSpec").write({"metadata": metadata, "spec": spec}, text)
    return text


@cache
def _printer_factory(library: str, later: bool) -> _PrinterFactory:
    return _PrinterFactory(pod_template_types(), library, later)


class _PrinterFactory:
    """Builds and keeps the printers for one version of the libraries."""

    def __init__(self, types: Types, library: str, later: bool) -> None:
        self._types, self._library = types, library
        self._later = LIBRARIES[LIBRARIES.index(library) + 1 :] if later else ()
        self._printers: dict[str, _Printer] = {}
        self._cached_printers: dict[str, _Printer] = {}

    def struct(self, name: str) -> _Printer:
        if name not in self._printers:
            self._printers[name] = _struct(self._leaves(name, "{"))
        return self._printers[name]

    def _leaves(self, struct: str, opening: str) -> list[_Leaf]:
        result: list[_Leaf] = []
        for struct_field in self._types.structs[struct]:
            supported = not struct_field.libraries or self._library in struct_field.libraries
            if not supported and not set(struct_field.libraries) & set(self._later):
                continue
            head = f"{' ' if result else opening}{struct_field.name}:({struct_field.type})"
            if struct_field.embedded and not struct_field.json:
                inner_leaves = self._leaves(struct_field.type, head + "{")
                last_leaf = inner_leaves[-1]
                assert not last_leaf.optional, f"{struct}.{struct_field.name} must end with a field of all versions"
                result += [
                    *inner_leaves[:-1],
                    _Leaf(last_leaf.json, last_leaf.head, last_leaf.printer, last_leaf.tail + "}"),
                ]
            else:
                result.append(_Leaf(struct_field.json, head, self._printer(struct_field.type), optional=not supported))
        return result

    def _printer(self, type_name: str) -> _Printer:
        match type_name:
            case "string" | "bool":
                return _SCALARS[type_name]
            case "resource.Quantity":
                return _Printer(quantity.ABSENT, lambda value, text: text.pieces.append(quantity.dump(value)))
            case "intstr.IntOrString":
                return _Printer(_int_or_string(0), lambda value, text: text.pieces.append(_int_or_string(value)))
            case "v1.Time" | "v1.FieldsV1":  # never set in a template
                return _Printer(_ZERO_TIME, lambda _, text: text.pieces.append(_ZERO_TIME))
        if type_name.startswith("*"):
            return self._pointer(type_name[1:])
        if type_name.startswith("[]"):
            return self._slice(type_name[2:])
        if type_name.startswith("map["):
            return self._map(type_name.partition("]")[2])
        if underlying := self._types.kinds.get(type_name):
            return self._printer(underlying)
        if type_name in self._types.structs:
            return self.struct(type_name)
        assert type_name.startswith(("int", "uint")), type_name
        return _SCALARS["int"]

    def _pointer(self, target: str) -> _Printer:
        def write(value: Any, text: Text) -> None:
            self._printer_of(target).write(value, text)

        return _Printer(_NIL, write)

    def _printer_of(self, target: str) -> _Printer:
        """Return a printer that is built on first use, because structs contain themselves through pointers and
        lists."""
        if target not in self._cached_printers:
            self._cached_printers[target] = self._printer(target)
        return self._cached_printers[target]

    def _slice(self, element: str) -> _Printer:
        def write(value: Any, text: Text) -> None:
            printer = self._printer_of(element)
            pieces = text.pieces
            pieces.append("[")
            for number, item in enumerate(value):
                if number:
                    pieces.append(" ")
                if item is None:
                    pieces.append(printer.zero)
                else:
                    printer.write(item, text)
            pieces.append("]")

        return _Printer(_NIL, write)

    def _map(self, element: str) -> _Printer:
        def write(value: Any, text: Text) -> None:
            printer = self._printer_of(element)
            pieces = text.pieces
            gap = "map["
            for key in sorted(value):
                pieces.append(f"{gap}{key}:")
                gap = " "
                if value[key] is None:
                    pieces.append(printer.zero)
                else:
                    printer.write(value[key], text)
            pieces.append("]" if value else "map[]")

        return _Printer(_NIL, write)


def _struct(leaves: list[_Leaf]) -> _Printer:
    positions = {leaf.json: number for number, leaf in enumerate(leaves)}
    runs: dict[tuple[int, int], str] = {}

    def between(start: int, end: int) -> str:
        """Return the text of the fields from `start` up to `end`, none of which is set."""
        run = runs.get((start, end))
        if run is None:
            run = runs[start, end] = "".join(leaf.zero for leaf in leaves[start:end])
        return run

    def write(value: Any, text: Text) -> None:
        pieces, position = text.pieces, 0
        numbers = []
        for name, member in value.items():
            if member is not None:
                number = positions.get(name)
                if number is None:
                    text.foreign += 1
                else:
                    numbers.append(number)
        numbers.sort()
        for number in numbers:
            leaf = leaves[number]
            pieces.append(between(position, number) + leaf.head)
            leaf.printer.write(value[leaf.json], text)
            if leaf.tail:
                pieces.append(leaf.tail)
            position = number + 1
        pieces.append(between(position, len(leaves)) + "}")

    return _Printer(between(0, len(leaves)) + "}", write)


def _int_or_string(value: object) -> str:
    number, string = (0, value) if isinstance(value, str) else (value, "")
    return f"{{Type:(intstr.Type){int(isinstance(value, str))} IntVal:(int32){number} StrVal:(string){string}}}"


def _write_text(value: Any, text: Text) -> None:
    text.pieces.append(str(value))


def _write_bool(value: Any, text: Text) -> None:
    text.pieces.append("true" if value else "false")


_SCALARS = {
    "string": _Printer("", _write_text),
    "bool": _Printer("false", _write_bool),
    "int": _Printer("0", _write_text),
}
