"""A test function judges one requirement."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from conformance.suite.registry.declarations import TESTS


def several(source: str) -> list[int]:
    """The lines on which a module declares several requirements at once, and not by parameters of a test."""
    calls = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "requirements"
    ]
    return [call.lineno for call in calls if len(call.args) != 1 or isinstance(call.args[0], ast.Starred)]


def places_in(path: Path) -> list[str]:
    """The places at which a module declares several requirements at once."""
    return [f"{path.relative_to(TESTS).as_posix()}:{line}" for line in several(path.read_text("utf-8"))]


def test_a_test_judges_one_requirement() -> None:
    """No conformance test declares several requirements that are spanned by no parameter."""
    assert [place for path in sorted(TESTS.rglob("test_*.py")) for place in places_in(path)] == []


def test_several_requirements_are_found() -> None:
    """A list of ids, also a starred one, is found; one id in a parameter is not."""
    one = "@pytest.mark.parametrize('id', [pytest.param(id, marks=requirements(id)) for id in IDS])\ndef test(id): ..."
    assert several(one) == several("@requirements('A-001')\ndef test(): ...") == []
    assert several("@requirements('A-001', 'A-002')\ndef test(): ...") == [1]
    assert several("\n@requirements(*IDS)\ndef test(): ...") == [2]


def restated(source: str) -> list[int]:
    """The lines of the tests of a module whose docstrings say what a requirement says."""
    tests = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return [test.lineno for test in tests if re.search(r"\b(MUST|SHOULD|MAY)\b", ast.get_docstring(test) or "")]


def test_what_is_required_stands_in_the_registry_alone() -> None:
    """A second sentence drifts from the first one."""
    places = [(path, restated(path.read_text("utf-8"))) for path in sorted(TESTS.rglob("test_*.py"))]
    assert [f"{path.relative_to(TESTS).as_posix()}:{line}" for path, lines in places for line in lines] == []


def test_a_restated_requirement_is_found() -> None:
    """Lower-case words are no requirements."""
    one = 'def test_a(run):\n    """A pod MUST wait."""\n\n\ndef test_b(run):\n    """It must be Ready for that."""\n'
    assert restated(one) == [1]
