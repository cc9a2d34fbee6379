"""Tests of how two values are reduced to their differences."""

from __future__ import annotations

import pytest

from conformance.history.differences import reduced


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 2, "d": 4}}, ({"b": {"d": 3}}, {"b": {"d": 4}})),
        ({"a": 1}, {}, ({"a": 1}, {})),
        (["x", "y", "y"], ["y", "z"], (["x", "y"], ["z"])),
        (["x", "y"], ["y", "x"], (["x", "y"], ["y", "x"])),
        ("a", {"b": 1}, ("a", {"b": 1})),
        (3, 2, (3, 2)),
    ],
)
def test_equal_parts_are_omitted(expected: object, actual: object, difference: tuple[object, object]) -> None:
    assert reduced(expected, actual) == difference
