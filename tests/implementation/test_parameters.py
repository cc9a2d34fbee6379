"""Tests of parsing `--set NAME=VALUE`."""

from __future__ import annotations

import pytest

from conformance.errors import UsageError
from conformance.implementation.parameters import assignments


def test_values_may_contain_equals_signs_and_be_empty() -> None:
    assert assignments(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["binary"], "--set: 'binary' is not NAME=VALUE — for example: --set binary=./operator"),
        (["=x"], "--set: '=x' is not NAME=VALUE — for example: --set binary=./operator"),
        (["a=1", "a=2"], '--set: "a" is given twice — give it once'),
    ],
)
def test_a_malformed_assignment_is_reported(options: list[str], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        assignments(options)
    assert str(caught.value) == expected
