"""Tests that a comparison shows two runs side by side and marks their first deviation."""

from __future__ import annotations

import pytest

from conformance.errors import UsageError
from conformance.nemesis.corruption import corrupt
from conformance.nemesis.duration import parse_seconds
from conformance.nemesis.sides import ObjectChange, side_by_side


def changes_of_run(*texts: str) -> list[ObjectChange]:
    return [ObjectChange(float(time), text) for time, text in enumerate(texts)]


def test_the_first_change_of_only_one_run_is_the_deviation() -> None:
    rows = side_by_side(changes_of_run("a", "b", "c"), changes_of_run("a", "c", "d"))
    assert [(bool(row.without), bool(row.with_fault), row.first) for row in rows] == [
        (True, True, False), (True, False, True), (True, True, False), (False, True, False),
    ]  # fmt: skip


def test_another_order_is_not_a_deviation() -> None:
    rows = side_by_side(changes_of_run("a", "b", "c"), changes_of_run("b", "a", "d", "c"))
    assert [row.with_fault.text for row in rows if row.first and row.with_fault] == ["d"]
    assert sum(row.deviates for row in rows) == 1


def test_equal_runs_have_no_deviation() -> None:
    assert not any(row.first for row in side_by_side(changes_of_run("a", "b"), changes_of_run("a", "b")))


def test_a_duration_is_a_number_with_a_unit() -> None:
    assert (parse_seconds("90s", "--budget"), parse_seconds("1h30m", "--budget")) == (90, 5400)


@pytest.mark.parametrize("text", ["", "30", "m30", "30 m", "-1s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="for example"):
        parse_seconds(text, "--budget")


def test_a_corrupted_write_lacks_one_field() -> None:
    assert corrupt(b'{"metadata":{"labels":{"a":"1","b":"2"}}}') == b'{"metadata":{"labels":{"a":"1"}}}'
    assert corrupt(b'{"status":{"ready":true,"replicas":2}}') == b'{"status":{"ready":true}}'
    assert corrupt(b"k8s\x00") == b"k8s\x00"
