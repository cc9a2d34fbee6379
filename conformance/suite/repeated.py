"""Names of tests that run several times (`--repeat N`): each repetition is a test of its own, with a mark in its
name."""

from __future__ import annotations

from collections.abc import Container


def marks(count: int) -> list[str]:
    """Return the marks of the repetitions of a test, in their order."""
    return [f"{number} of {count}" for number in range(1, count + 1)]


def unmarked(test: str, count: int) -> str:
    """Return a test's name without its mark, for `a.py::t[x-3 of 20]` and `a.py::t[3 of 20]`."""
    if count == 1:
        return test
    head, bracket, inside = test.removesuffix("]").partition("[")
    given = inside.rpartition("-")[0] if inside.endswith(f" of {count}") else inside
    return f"{head}[{given}]" if bracket and given else head


def named(test: str, count: int, names: Container[str]) -> bool:
    """Whether `names` has a test: by its own name, or without its mark, which means all its repetitions."""
    return test in names or unmarked(test, count) in names
