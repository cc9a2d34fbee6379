"""Tests that each conformance test judges one requirement, and does not restate it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from conformance.suite.registry.declarations import TESTS


def lines_with_several(source: str) -> list[int]:
    """Return the lines on which a module declares several requirements at once, not through parameters of a test."""
    calls = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "requirements"
    ]
    return [call.lineno for call in calls if len(call.args) != 1 or isinstance(call.args[0], ast.Starred)]


def places_in(path: Path) -> list[str]:
    """Return the places at which a module declares several requirements at once."""
    return [f"{path.relative_to(TESTS).as_posix()}:{line}" for line in lines_with_several(path.read_text("utf-8"))]


def test_a_test_judges_one_requirement() -> None:
    """A conformance test declares several requirements only through its parameters."""
    assert [place for path in sorted(TESTS.rglob("test_*.py")) for place in places_in(path)] == []


def test_several_requirements_are_found() -> None:
    """Several ids and starred lists of ids are found; a single id in a parameter is not."""
    one = "@pytest.mark.parametrize('id', [pytest.param(id, marks=requirements(id)) for id in IDS])\ndef test(id): ..."
    assert lines_with_several(one) == lines_with_several("@requirements('A-001')\ndef test(): ...") == []
    assert lines_with_several("@requirements('A-001', 'A-002')\ndef test(): ...") == [1]
    assert lines_with_several("\n@requirements(*IDS)\ndef test(): ...") == [2]


def lines_that_restate(source: str) -> list[int]:
    """Return the lines of the tests of a module whose docstrings state a requirement."""
    tests = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return [test.lineno for test in tests if re.search(r"\b(MUST|SHOULD|MAY)\b", ast.get_docstring(test) or "")]


def test_requirements_are_stated_only_in_the_registry() -> None:
    """A second copy of a requirement would drift from the first one."""
    places = [(path, lines_that_restate(path.read_text("utf-8"))) for path in sorted(TESTS.rglob("test_*.py"))]
    assert [f"{path.relative_to(TESTS).as_posix()}:{line}" for path, lines in places for line in lines] == []


def test_a_restated_requirement_is_found() -> None:
    """The word must in lower case does not state a requirement."""
    one = 'def test_a(run):\n    """A pod MUST wait."""\n\n\ndef test_b(run):\n    """It must be Ready for that."""\n'
    assert lines_that_restate(one) == [1]
