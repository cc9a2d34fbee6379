"""Names of tests: the names that `--test` accepts, and the marks of tests that run several times (`--repeat N`), in
which case each repetition is a separate test."""

from __future__ import annotations

from collections.abc import Container


def marks(count: int) -> list[str]:
    """Return the marks of the repetitions of a test, in their order."""
    return [f"{number} of {count}" for number in range(1, count + 1)]


def without_mark(test: str, count: int) -> str:
    """Return a test's name without its mark, for `a.py::t[x-3 of 20]` and `a.py::t[3 of 20]`."""
    if count == 1:
        return test
    head, bracket, brackets = test.removesuffix("]").partition("[")
    parameters = brackets.rpartition("-")[0] if brackets.endswith(f" of {count}") else brackets
    return f"{head}[{parameters}]" if bracket and parameters else head


def names_of(test: str, count: int) -> list[str]:
    """Return the names that select a test: its own name, its name without the mark (for all its repetitions), its
    function, and its file."""
    unmarked_name = without_mark(test, count)
    function = unmarked_name.partition("[")[0]
    return list(dict.fromkeys((test, unmarked_name, function, function.partition("::")[0])))


def named(test: str, count: int, names: Container[str]) -> bool:
    """Return whether `names` contains one of the names of a test."""
    return any(name in names for name in names_of(test, count))
