"""Comparisons of many objects at once: expected and observed values by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from conformance.grove.fields import Document
from conformance.suite.outcomes.checks import ABSENT, Absent

T = TypeVar("T")

Comparison = tuple[dict[str, object], dict[str, object]]
"""Expected and observed values by name: the arguments of `Recorded.same`."""


def value_or_absent(document: Document | None, value: T) -> T | Absent:
    """Return a value read from an object, or ABSENT if there is no such object."""
    return ABSENT if document is None else value


def values_of_expected_keys(
    expected: Mapping[str, Mapping[str, str]], observed: Mapping[str, Mapping[str, str] | Absent]
) -> dict[str, dict[str, str | None] | Absent]:
    """Return each object's values of the expected labels or annotations, by name."""
    return {
        name: ABSENT if values is ABSENT else {key: values.get(key) for key in expected[name]}
        for name, values in observed.items()
    }
