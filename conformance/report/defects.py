"""The defects of upstream that the specification lists: what a failure may look like."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from conformance import specification
from conformance.specification import Row
from conformance.suite.registry import coverage

_FACTS = ("what upstream does", "fact", "what", "rule", "formula", "what was seen")
"""Headings of the columns that say what is wrong."""


@functools.cache
def known() -> Mapping[str, Row]:
    """Return the rows of all defects."""
    listed = {id for kinds in coverage.rows().binding.values() for id in kinds.get("defect", ())}
    return {id: row for id, row in specification.load().items() if id in listed}


def fact(row: Row) -> str:
    """Return what a row says, without its marks and sources."""
    told = [value for heading, value in row.cells if heading.lower() in _FACTS] or [value for _, value in row.cells]
    return max(told, key=len).replace("*", "").replace("`", "")
