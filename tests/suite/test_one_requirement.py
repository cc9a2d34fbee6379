"""A test function judges one requirement. Modules with functions that judge several are listed, until converted."""

from __future__ import annotations

import ast
from pathlib import Path

from conformance.suite.settings import TESTS

LISTED = {
    "upgrade/test_earlier_versions.py",
    "upgrade/test_foreign_hashes.py",
}
"""Modules with test functions that judge several requirements. This list only shrinks."""


def several(path: Path) -> bool:
    """Whether a test function of a module declares several requirements that are spanned by no parameter."""
    marks = [
        mark
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for mark in (node.decorator_list if isinstance(node, ast.FunctionDef) else ())
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "requirements"
    ]
    return any(len(mark.args) > 1 or isinstance(mark.args[0], ast.Starred) for mark in marks)


def modules() -> set[str]:
    """The modules with tests that judge several requirements."""
    return {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py") if several(path)}


def test_a_test_judges_one_requirement() -> None:
    """Only the modules that are listed have tests with several requirements, and each listed one still has."""
    assert sorted(modules()) == sorted(LISTED)
