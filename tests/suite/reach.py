"""The names that the code of a scene may use, found by following names through the modules of the conformance tests. If
in doubt, a name is included."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

PACKAGES = ("conformance.tests.", "conformance.testing.")


def names(scene: type) -> frozenset[tuple[str, ...]]:
    """Return the names that each reachable function uses, as one tuple per function."""
    visited: set[types.CodeType] = set()
    used: set[tuple[str, ...]] = set()
    queue: list[Any] = [
        member for scene_class in scene.__mro__ if _of_suite(scene_class) for member in vars(scene_class).values()
    ]
    while queue:
        for function in _functions(queue.pop()):
            for code in _nested_code(function.__code__):
                if code in visited:
                    continue
                visited.add(code)
                used.add(code.co_names)
                queue += _referenced_values(function, code)
    return frozenset(used)


def _referenced_values(function: types.FunctionType, code: types.CodeType) -> Iterator[Any]:
    """Yield the values to which the names of a function may refer: its globals, and the attributes of modules."""
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType) and value.__name__.startswith(PACKAGES):
            yield from (getattr(value, other) for other in code.co_names if hasattr(value, other))
        elif value is not None:
            yield value


def _functions(value: Any) -> Iterator[types.FunctionType]:
    if isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, property | functools.cached_property):
        value = value.fget if isinstance(value, property) else value.func
    value = getattr(value, "__func__", getattr(value, "__wrapped__", value))
    if isinstance(value, types.FunctionType) and value.__module__.startswith(PACKAGES):
        yield value
    elif isinstance(value, type) and _of_suite(value):
        for member in vars(value).values():
            yield from _functions(member)


def _of_suite(checked_class: type) -> bool:
    return checked_class.__module__.startswith(PACKAGES)


def _nested_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested_code(constant)
