"""A test function judges one requirement."""

from __future__ import annotations

import ast
from pathlib import Path

from conformance.suite.settings import TESTS


def several(source: str) -> list[int]:
    """The lines on which a module declares several requirements at once, and not by parameters of a test."""
    calls = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "requirements"
    ]
    return [call.lineno for call in calls if len(call.args) != 1 or isinstance(call.args[0], ast.Starred)]


def where(path: Path) -> list[str]:
    """The places at which a module declares several requirements at once."""
    return [f"{path.relative_to(TESTS).as_posix()}:{line}" for line in several(path.read_text("utf-8"))]


def test_a_test_judges_one_requirement() -> None:
    """No conformance test declares several requirements that are spanned by no parameter."""
    assert [place for path in sorted(TESTS.rglob("test_*.py")) for place in where(path)] == []


def test_several_requirements_are_found() -> None:
    """A list of ids, also a starred one, is found; one id in a parameter is not."""
    one = "@pytest.mark.parametrize('id', [pytest.param(id, marks=requirements(id)) for id in IDS])\ndef test(id): ..."
    assert several(one) == several("@requirements('A-001')\ndef test(): ...") == []
    assert several("@requirements('A-001', 'A-002')\ndef test(): ...") == [1]
    assert several("\n@requirements(*IDS)\ndef test(): ...") == [2]
