"""How the core tests compare: many objects at once, shown where they differ."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import labels
from conformance.history.differences import differing
from conformance.suite.case import Case

COMMON = (labels.MANAGED_BY, labels.PART_OF, labels.COMPONENT, labels.NAME)
"""Labels of CORE-002; all others are of CORE-003."""


def same(case: Case, id: str, what: str, wanted: Mapping[str, object], seen: Mapping[str, object]) -> None:
    """Expects `seen` to equal `wanted`; a report shows only the entries that differ."""
    case.expect(id, what, *differing(wanted, seen))


def same_labels(
    case: Case, what: str, wanted: Mapping[str, Mapping[str, str]], seen: Mapping[str, Mapping[str, str]]
) -> None:
    """Expects each object to carry its labels; others are allowed beside them."""
    for id, common in (("CORE-002", True), ("CORE-003", False)):
        right = {found: {k: v for k, v in tags.items() if (k in COMMON) == common} for found, tags in wanted.items()}
        have = {found: {k: seen.get(found, {}).get(k) for k in tags} for found, tags in right.items()}
        same(case, id, what, right, have)
