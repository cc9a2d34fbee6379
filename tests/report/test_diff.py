"""Tests of the line-by-line difference between the expected and the observed value."""

from __future__ import annotations

from conformance.report import diff
from conformance.report.diff import DiffLine


def test_differences_have_context() -> None:
    assert diff.diff_lines({"a": 1, "b": 2}, {"a": 1, "b": 3}, 60) == [
        DiffLine(" ", "{"),
        DiffLine(" ", '  "a": 1,'),
        DiffLine("-", '  "b": 2'),
        DiffLine("+", '  "b": 3'),
        DiffLine(" ", "}"),
    ]


def test_long_equal_parts_are_omitted() -> None:
    names = [f"pod-{number}" for number in range(40)]
    lines = diff.diff_lines(names, [*names[:-1], "other"], 60)
    assert [line.sign for line in lines] == [" ", " ", " ", "-", "+", " "]
    lines = diff.diff_lines(names, ["first", *names[1:-1], "other"], 60)
    assert lines.count(DiffLine("…", "")) == 1 and lines[0] == DiffLine(" ", "[")


def test_only_the_differences_of_huge_values_are_compared() -> None:
    pods = {f"pod-{number}": {"node": "n", "ready": True} for number in range(5000)}
    lines = diff.diff_lines(pods, pods | {"pod-7": {"node": "m", "ready": True}}, 60)
    assert [line for line in lines if line.sign in "-+"] == [
        DiffLine("-", '    "node": "n"'),
        DiffLine("+", '    "node": "m"'),
    ]


def test_more_lines_than_fit_are_counted() -> None:
    assert diff.plain_lines("a\nb\nc\nd", 2)[-2:] == [DiffLine(" ", "b"), DiffLine("…", "2 more lines in report.yaml")]
    assert len(diff.plain_lines("a\nb\nc", 2)) == 3, "a line that says that there is one more saves none"
    [line] = diff.plain_lines("x" * 1000, 2)
    assert len(line.text) == diff.MAX_WIDTH and line.text.endswith("…")
