"""The state of a namespace as text that is equal in two runs of the same scenario: without generated names, times,
uids, versions and nodes."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import yaml

from conformance.history.view import View
from conformance.nemesis import names

IGNORED = frozenset({"events", "leases"})
VARYING_FIELDS = frozenset(
    {
        *("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink", "generateName"),
        *("nodeName", "podIP", "podIPs", "hostIP", "hostIPs", "clusterIP", "clusterIPs", "message", "containerID"),
    }
)
"""Fields that do not describe the state, or whose values are not guaranteed; a message, for example, is for people."""
EMPTY_VALUES: tuple[Any, ...] = (None, {}, [])
"""Values that mean the same as a missing field."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
Form = Mapping[str, tuple[str, ...]]
"""Maps `resource/name`, with a stable name, to the objects of that name as sorted JSON."""


def normal_form(view: View, namespace: str) -> dict[str, tuple[str, ...]]:
    """Return the normal form of a state."""
    stable_names = {
        name: names.stable_name(name, namespace) for resource in view.resources() for name in view.names(resource)
    }
    objects: dict[str, list[str]] = defaultdict(list)
    for resource in view.resources():
        if resource in IGNORED:
            continue
        for item in view.list(resource):
            if item["metadata"].get("namespace") != namespace:
                continue
            cleaned_item = _Normalizer(namespace, stable_names).normalize(item)
            objects[f"{resource}/{stable_names[item['metadata']['name']]}"].append(
                orjson.dumps(cleaned_item, option=orjson.OPT_SORT_KEYS).decode()
            )
    return {name: tuple(sorted(forms)) for name, forms in objects.items()}


class _Normalizer:
    """Normalizes one object: drops fields that vary between runs, times and empty values, and replaces generated names
    by stable ones."""

    def __init__(self, namespace: str, stable_names: Mapping[str, str]) -> None:
        self._namespace, self._stable_names = namespace, stable_names

    def normalize(self, value: Any) -> Any:
        match value:
            case dict():
                cleaned = {
                    self._stable_text(key): self.normalize(item)
                    for key, item in value.items()
                    if key not in VARYING_FIELDS and not (isinstance(item, str) and _TIME.fullmatch(item))
                }
                return {key: item for key, item in cleaned.items() if item not in EMPTY_VALUES}
            case list():
                return _sorted_items([self.normalize(item) for item in value])
            case str():
                return self._stable_text(value)
            case _:
                return value

    def _stable_text(self, text: str) -> str:
        if text in self._stable_names:
            return self._stable_names[text]
        return names.without_namespace(names.without_times(text), self._namespace)


def _sorted_items(items: list[Any]) -> list[Any]:
    """Return objects or strings in an order that does not depend on the order in which they were given."""
    return sorted(items, key=_canonical) if all(isinstance(item, dict | str) for item in items) else items


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def varying_paths(forms: Iterable[Form]) -> frozenset[str]:
    """Return the paths whose values differ between runs without a fault: these paths do not show anything about a
    fault."""
    first_values, *other_values = [_values_by_path(form) for form in forms]
    paths: set[str] = set()
    for other_run in other_values:
        for path in first_values.keys() | other_run.keys():
            if first_values.get(path) != other_run.get(path):
                resource, _, inner = path.partition(":")
                paths.add(f"{resource.partition('/')[0]}:{inner}")
    return frozenset(paths)


def _values_by_path(form: Form) -> dict[str, list[str]]:
    """Map `resource/name:path` to the values at that path, sorted."""
    values_by_path: dict[str, list[str]] = defaultdict(list)

    def walk(key: str, value: Any, path: str) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                walk(key, item, f"{path}.{name}" if path else name)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for item in value:
                walk(key, item, path)
        else:
            values_by_path[f"{key}:{path}"].append(_canonical(value).decode())

    for key, objects in form.items():
        for text in objects:
            walk(key, orjson.loads(text), "")
    return {path: sorted(values) for path, values in values_by_path.items()}


def difference(expected: Form, actual: Form, limit: int = 60) -> list[str]:
    """Return the lines of a diff: `-` is from a run without the fault, `+` from this run."""
    lines: list[str] = []
    for name in sorted(expected.keys() | actual.keys()):
        before, after = expected.get(name, ()), actual.get(name, ())
        if before == after:
            continue
        lines.append(f"{name}: {len(before)} object(s) without the fault, {len(after)} with it")
        old, new = ([line for text in texts for line in _yaml(text)] for texts in _unequal_texts(before, after))
        lines += [
            line for line in difflib.unified_diff(old, new, lineterm="", n=1) if not line.startswith(("---", "+++"))
        ]
    return lines if len(lines) <= limit else [*lines[:limit], f"… {len(lines) - limit} more lines"]


def _unequal_texts(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Leave out the objects that occur on both sides."""
    old, new = list(before), list(after)
    for text in before:
        if text in new:
            old.remove(text)
            new.remove(text)
    return old, new


def _yaml(text: str) -> list[str]:
    return yaml.safe_dump(orjson.loads(text), default_flow_style=False).splitlines()


def without_paths(form: Form, masked: frozenset[str]) -> Form:
    """Leave masked paths out of a form."""
    return {
        key: tuple(
            sorted(_canonical(_strip(orjson.loads(text), key.partition("/")[0], "", masked)).decode() for text in texts)
        )
        for key, texts in form.items()
    }


def _strip(value: Any, resource: str, path: str, masked: frozenset[str]) -> Any:
    if isinstance(value, dict):
        inner = {key: (f"{path}.{key}" if path else key) for key in value}
        return {
            key: _strip(item, resource, inner[key], masked)
            for key, item in value.items()
            if f"{resource}:{inner[key]}" not in masked
        }
    if isinstance(value, list):
        return _sorted_items([_strip(item, resource, path, masked) for item in value])
    return value
