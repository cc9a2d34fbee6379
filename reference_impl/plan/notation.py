"""The notation of the quantities in a PodCliqueSet. Template hashes depend on the notation (HASH-068), although it has
no meaning.

The defaulting webhook writes quantities as upstream's webhook does (HASH-085), but on every request (HASH-087). In an
update, a quantity that equals the stored quantity keeps the stored notation. A template therefore does not change when
its manifest is applied again, before or after an upgrade, or with the same amounts in another notation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube.gotypes import pod_template_types
from reference_impl.plan import quantities

Operation = dict[str, Any]
_POD_SPEC = "v1.PodSpec"
_METRIC_TARGETS = ("value", "averageValue")


@dataclass(frozen=True)
class _Value:
    """A value in a set, with its JSON pointer and with an identity that uses the names of list items, so that it does
    not depend on their order."""

    pointer: str
    identity: str
    value: Any

    def child(self, key: str | int, item: Any) -> _Value:
        """Return a member of a mapping or an item of a list."""
        name = item.get("name", key) if isinstance(key, int) and isinstance(item, Mapping) else key
        step = str(key).replace("~", "~0").replace("/", "~1")
        return _Value(f"{self.pointer}/{step}", f"{self.identity}/{name}", item)


def patch(pcs: Any, stored: Any) -> Iterator[Operation]:
    """Yield the JSON patch operations that normalize the notation of a set's quantities. `stored` is the stored set, or
    None on create."""
    stored_values = {value.identity: value.value for value in _quantities(stored)}
    for value in _quantities(pcs):
        notation = _notation(value.value, stored_values.get(value.identity), is_stored=value.identity in stored_values)
        if notation == value.value:
            continue
        if notation is None:
            yield {"op": "remove", "path": value.pointer}
        else:
            yield {"op": "add", "path": value.pointer, "value": notation}


def _notation(value: Any, stored: Any, *, is_stored: bool) -> Any:
    quantity = _parse(value)
    if quantity is None:  # the schema rejects it
        return value
    stored_quantity = _parse(stored) if is_stored else None
    return (
        stored
        if stored_quantity is not None and stored_quantity.nanos == quantity.nanos
        else quantities.format_quantity(quantity)
    )


def _parse(value: Any) -> quantities.Quantity | None:
    return quantities.parse_json(0 if value is None else value)


def _quantities(pcs: Any) -> Iterator[_Value]:
    template = _value_at(_Value("", "", pcs), "spec", "template")
    for clique in _items(_value_at(template, "cliques")):
        yield from _typed_quantities(_POD_SPEC, _value_at(clique, "spec", "podSpec"))
        yield from _metric_quantities(_value_at(clique, "spec", "autoScalingConfig", "metrics"))
    for group in _items(_value_at(template, "podCliqueScalingGroups")):
        yield from _metric_quantities(_value_at(group, "scaleConfig", "metrics"))


def _metric_quantities(metrics: _Value) -> Iterator[_Value]:
    for metric in _items(metrics):
        for source in _members(metric):
            target = _value_at(source, "target")
            yield from (value for key in _METRIC_TARGETS if (value := _value_at(target, key)).value is not None)


def _typed_quantities(type_name: str, value: _Value) -> Iterator[_Value]:
    """Yield the quantities in a value of a Go type."""
    types = pod_template_types()
    type_name = types.kinds.get(type_name, type_name)
    if type_name.startswith("*"):
        yield from _typed_quantities(type_name[1:], value)
    elif type_name == "resource.Quantity":
        if value.value is not None:
            yield value
    elif type_name.startswith("[]"):
        for item in _items(value):
            yield from _typed_quantities(type_name[2:], item)
    elif type_name.startswith("map["):
        for member in _members(value):
            yield from _typed_quantities(type_name.partition("]")[2], member)
    elif type_name in types.structs and isinstance(value.value, Mapping):
        for field in types.structs[type_name]:
            inner = value if field.embedded and not field.json else _value_at(value, field.json)
            if field.type == "resource.Quantity":
                yield inner  # not a pointer, so Go writes 0 if it is absent
            elif inner.value is not None:
                yield from _typed_quantities(field.type, inner)


def _value_at(value: _Value, *path: str) -> _Value:
    for key in path:
        value = value.child(key, value.value.get(key) if isinstance(value.value, Mapping) else None)
    return value


def _members(value: _Value) -> Iterator[_Value]:
    for key, member in value.value.items() if isinstance(value.value, Mapping) else ():
        yield value.child(str(key), member)


def _items(value: _Value) -> Iterator[_Value]:
    for number, item in enumerate(value.value if isinstance(value.value, list) else ()):
        yield value.child(number, item)
