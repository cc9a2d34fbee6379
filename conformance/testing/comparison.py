"""What comparisons of many objects at once compare: expected and observed values by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from conformance.grove.fields import Document
from conformance.suite.outcomes.checks import ABSENT, Absent

T = TypeVar("T")

Comparison = tuple[dict[str, object], dict[str, object]]
"""Expected and observed values by name: the arguments of `Recorded.same`."""


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
