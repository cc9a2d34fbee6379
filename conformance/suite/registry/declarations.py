"""Find the tests of each requirement by parsing their decorators, because importing the tests takes seconds."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"
DECORATORS = frozenset({"requirement", "requirements", "invariants"})


@functools.cache
def tests(folder: Path = TESTS, containing: str = "") -> Mapping[str, list[str]]:
    """Return requirement id → its tests, as `conformance/tests/FILE.py::FUNCTION`. Tests that get their ids from data
    are not included. Only files that contain the text `containing` are parsed."""
    result: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        source = path.read_bytes()
        for node in ast.parse(source).body if containing.encode() in source else ():
            for name, id in _declarations(node):
                result.setdefault(id, []).append(f"conformance/tests/{path.relative_to(folder)}::{name}")
    return result


def of_requirement(id: str) -> list[str]:
    """Return the tests of one requirement (see `tests`)."""
    return tests(containing=id).get(id, [])


def _declarations(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield a pair of the name of the test that a statement defines and an id, for each id that the test declares."""
    match node:
        case ast.FunctionDef(name=name, decorator_list=decorators):
            calls: list[ast.expr] = [*decorators]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            calls = [call]
        case _:
            return
    for decorator in calls:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in DECORATORS:
            constants = (argument.value for argument in decorator.args if isinstance(argument, ast.Constant))
            yield from ((name, value) for value in constants if isinstance(value, str))
