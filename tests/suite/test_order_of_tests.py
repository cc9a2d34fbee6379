"""Tests of the order of tests, and of the names that select tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from conformance.suite.scenes.playing import decisive_first
from conformance.suite.scenes.repeated import named


def test_requirements_that_few_tests_judge_come_first() -> None:
    declared = {"a": ("INV-001",), "b": ("INV-001", "CORE-001"), "c": ("GANG-001",), "d": ("OTHER-1",)}
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in declared]
    judged = frozenset({"INV-001", "GANG-001", "CORE-001"})
    assert [item.nodeid for item in decisive_first(items, declared, judged)] == ["d", "b", "c", "a"]


def test_a_repeated_test_is_named_with_its_mark_or_without() -> None:
    names = {"a.py::t", "a.py::u[x]", "a.py::v[2 of 3]"}
    assert [
        test
        for test in ("a.py::t[1 of 3]", "a.py::u[x-3 of 3]", "a.py::v[2 of 3]", "a.py::v[1 of 3]")
        if named(test, 3, names)
    ] == ["a.py::t[1 of 3]", "a.py::u[x-3 of 3]", "a.py::v[2 of 3]"]


def test_a_file_or_a_function_names_all_its_tests() -> None:
    tests = ("a.py::t[x]", "a.py::t[y]", "a.py::u", "ab.py::t")
    assert [test for test in tests if named(test, 1, {"a.py"})] == ["a.py::t[x]", "a.py::t[y]", "a.py::u"]
    assert [test for test in tests if named(test, 1, {"a.py::t"})] == ["a.py::t[x]", "a.py::t[y]"]
    assert named("a.py::t[x-2 of 3]", 3, {"a.py::t"}) and not named("a.py::tt", 1, {"a.py::t"})
