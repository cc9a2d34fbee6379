"""Which tests judge which requirement, read from their decorators: to import them takes pytest seconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.suite.settings import TESTS

DECORATORS = frozenset({"requirement", "requirements", "invariants"})


def tests(folder: Path = TESTS) -> Mapping[str, list[str]]:
    """Return requirement id → its tests, as `conformance/tests/FILE.py::FUNCTION`. Tests that get their ids from data
    are not among them."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.FunctionDef):
                for id in _declared(node):
                    found.setdefault(id, []).append(f"conformance/tests/{path.relative_to(folder)}::{node.name}")
    return found


def _declared(test: ast.FunctionDef) -> Iterator[str]:
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in DECORATORS:
            constants = (arg.value for arg in decorator.args if isinstance(arg, ast.Constant))
            yield from (value for value in constants if isinstance(value, str))
