"""Find the waits of a requirement's tests by parsing their source, because importing the tests takes seconds.

A scene waits for its steps (`env.wait_for`, `env.settle`, `env.settled`), and a test waits for its checks
(`run.until`). The limit of a wait is an argument of the call, possibly a constant, or the default of the method.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.suite.registry import declarations

PACKAGE = Path(__file__).resolve().parents[2]
WAIT_METHODS: Mapping[str, tuple[int, int, float]] = {
    "wait_for": (0, 2, 60),
    "settle": (0, 2, 30),
    "settled": (0, 2, 30),
    "until": (1, 3, 60),
}
"""Method → the positions of the arguments with the step and with the limit, and the default limit."""


@dataclass(frozen=True)
class Wait:
    """A step that a scene or test waits for, and its limit in seconds at time scale 1: a number, or the expression that
    computes it."""

    step: str
    seconds: float | str


@dataclass(frozen=True)
class _Module:
    """The top level of a module: its functions, classes and constants, and the origins of its imported names."""

    body: Mapping[str, ast.stmt]
    constants: Mapping[str, ast.expr]
    imported: Mapping[str, tuple[str, str]]


def in_words(waits: Iterable[Wait]) -> str:
    """Return waits as one line, grouped by limit."""
    steps: dict[float | str, list[str]] = {}
    for wait in waits:
        steps.setdefault(wait.seconds, []).append(f"“{wait.step}”")
    ordered = sorted(steps.items(), key=lambda item: (isinstance(item[0], str), item[0]))
    return "; ".join(f"{_seconds(limit)} for {', '.join(step_names)}" for limit, step_names in ordered)


def _seconds(limit: float | str) -> str:
    return f"{limit:g} s" if isinstance(limit, float) else f"`{limit}` s"


def of_requirement(id: str) -> list[Wait]:
    """Return the distinct waits on which a requirement depends: the waits for the steps that its tests name or, if they
    name none, all waits of their scenes."""
    waits: dict[Wait, None] = {}
    for test in declarations.of_requirement(id):
        path, _, name = test.partition("::")
        waits |= dict.fromkeys(_waits_of_test(path.removesuffix(".py").replace("/", "."), name))
    return list(waits)


@functools.cache
def of_scene(module: str, name: str) -> tuple[Wait, ...]:
    """Return the distinct waits of a scene or other class."""
    return tuple(dict.fromkeys(_waits(module, name, frozenset())))


def _waits_of_test(module: str, name: str) -> Iterator[Wait]:
    node = _module(module).body.get(name)
    if node is None:
        return
    named_steps = {_words(module, part) for part in ast.walk(node) if isinstance(part, ast.expr)}
    waits = list(dict.fromkeys(wait for scene in _scenes(node) for wait in of_scene(module, scene)))
    yield from [wait for wait in waits if wait.step in named_steps] or waits
    yield from _calls(module, node, frozenset())


def _scenes(node: ast.stmt) -> Iterator[str]:
    """Yield the names of the scenes that a test takes: `Recorded[…]`, or the first argument of `invariants`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and ast.unparse(part.value).endswith("Recorded"):
            yield from map(ast.unparse, _members(part.slice))
        elif isinstance(part, ast.Call) and ast.unparse(part.func) == "invariants" and part.args:
            yield from (ast.unparse(argument) for argument in getattr(part.args[0], "elts", [part.args[0]]))


def _members(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the types of a union."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _members(node.left)
        yield from _members(node.right)
    else:
        yield node


def _waits(module: str, name: str, visited: frozenset[tuple[str, str]]) -> Iterator[Wait]:
    """Yield the waits of a class and its bases, or of a function, and of all functions to which it passes its
    environment."""
    module, name = _origin(module, name)
    node = _module(module).body.get(name)
    if node is None or (module, name) in visited:
        return
    visited |= {(module, name)}
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        yield from _waits(module, ast.unparse(base), visited)
    for member in _members(node.value) if isinstance(node, ast.Assign) else ():
        if isinstance(member, ast.Name):
            yield from _waits(module, member.id, visited)
    yield from _calls(module, node, visited)


def _calls(module: str, node: ast.stmt, visited: frozenset[tuple[str, str]]) -> Iterator[Wait]:
    for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr in WAIT_METHODS and len(call.args) >= 2:
            yield _wait(module, call)
        elif any(isinstance(argument, ast.Name) and argument.id == "env" for argument in call.args):
            yield from _waits(module, ast.unparse(call.func), visited)


def _wait(module: str, call: ast.Call) -> Wait:
    step_position, position, default_limit = WAIT_METHODS[call.func.attr]  # type: ignore[attr-defined]
    limit_argument = next((word.value for word in call.keywords if word.arg == "timeout"), None)
    limit_argument = limit_argument or (call.args[position] if len(call.args) > position else None)
    step = call.args[step_position] if len(call.args) > step_position else call.args[0]
    limit = default_limit if limit_argument is None else _number(module, limit_argument)
    return Wait(
        _words(module, step) or "further steps",
        ast.unparse(limit_argument) if limit_argument is not None and limit is None else float(limit or 0),
    )


def _words(module: str, node: ast.expr) -> str:
    """Return the text of a string expression, with `{…}` for each interpolated value; empty if the expression is not a
    string."""
    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_words(module, part) or "{…}" for part in values)
        case ast.Name() | ast.Attribute():
            return _words(*constant) if (constant := _constant(module, node)) else ""
    return ""


def _number(module: str, node: ast.expr) -> float | None:
    """Return the value of a number, a constant, or a product or sum of these; None for any other expression."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add() as op, right=right):
            left_value, right_value = _number(module, left), _number(module, right)
            if left_value is None or right_value is None:
                return None
            return left_value * right_value if isinstance(op, ast.Mult) else left_value + right_value
        case ast.Name() | ast.Attribute():
            return _number(*constant) if (constant := _constant(module, node)) else None
    return None


def _constant(module: str, node: ast.expr) -> tuple[str, ast.expr] | None:
    """Return the module that defines a constant, and the constant's value."""
    defining_module, name = _origin(module, ast.unparse(node))
    value = _module(defining_module).constants.get(name)
    return (defining_module, value) if value is not None else None


def _origin(module: str, name: str) -> tuple[str, str]:
    """Return the module that defines a name, and the name in that module."""
    first_name, _, attribute_path = name.partition(".")
    imported = _module(module).imported.get(first_name)
    if imported is None:
        return module, name
    defining_module, original = imported
    if not attribute_path:
        return (
            _origin(defining_module, original)
            if defining_module.startswith("conformance.") and defining_module != module
            else (defining_module, original)
        )
    return f"{defining_module}.{original}", attribute_path


@functools.cache
def _module(name: str) -> _Module:
    path = PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
    if not name.startswith("conformance.") or not path.is_file():
        return _Module({}, {}, {})
    body: dict[str, ast.stmt] = {}
    constants: dict[str, ast.expr] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in ast.parse(path.read_bytes()).body:
        match node:
            case ast.FunctionDef(name=defined_name) | ast.ClassDef(name=defined_name):
                body[defined_name] = node
            case ast.Assign(targets=[ast.Name(id=defined_name)], value=value):
                body[defined_name], constants[defined_name] = node, value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                constants |= {ast.unparse(element): value for element, value in zip(targets, values, strict=False)}
            case ast.AnnAssign(target=ast.Name(id=defined_name), value=ast.expr() as value):
                constants[defined_name] = value
            case ast.ImportFrom(module=str() as defining_module, names=names):
                imported |= {alias.asname or alias.name: (defining_module, alias.name) for alias in names}
    return _Module(body, constants, imported)
