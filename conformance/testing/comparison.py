"""Comparisons of many objects at once, reported by their differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from conformance.grove.fields import Document
from conformance.history.differences import differing
from conformance.suite.case import Case
from conformance.suite.checks import ABSENT, Absent

T = TypeVar("T")

Comparison = tuple[dict[str, object], dict[str, object]]
"""Expected and observed values by name: the arguments of `same`."""


def same(case: Case, id: str, what: str, wanted: Mapping[str, object], seen: Mapping[str, object]) -> None:
    """Expect `seen` to equal `wanted`. A report shows only the entries that differ."""
    case.expect(id, what, *differing(wanted, seen))


def of(found: Document | None, seen: T) -> T | Absent:
    """Return a value read from an object, or ABSENT if there is no such object."""
    return ABSENT if found is None else seen


def carried(
    wanted: Mapping[str, Mapping[str, str]], seen: Mapping[str, Mapping[str, str] | Absent]
) -> dict[str, dict[str, str | None] | Absent]:
    """Return what each object has of the labels or annotations that it must have."""
    return {
        found: ABSENT if have is ABSENT else {key: have.get(key) for key in wanted[found]}
        for found, have in seen.items()
    }
