"""The upstream defects that the specification lists. Reports show which defect a failure resembles."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from conformance import specification
from conformance.specification import Row
from conformance.suite.registry import coverage

_FACTS = ("what upstream does", "fact", "what", "rule", "formula", "what was seen")
"""Headings of the columns that describe a defect."""
_SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)\.\s+(?=[^a-z])")
"""A pattern for the end of a sentence."""
_PLAIN = re.compile(r"[a-z]+(?=[\s,])")
"""A pattern for a plain word, as opposed to the name of a field."""


@functools.cache
def rows() -> Mapping[str, Row]:
    """Return the rows of all defects."""
    defect_ids = {id for kinds in coverage.rows().binding.values() for id in kinds.get("defect", ())}
    return {id: row for id, row in specification.load().items() if id in defect_ids}


def fact(row: Row) -> str:
    """Return the first sentence of a row, without marks and sources, as a description of the defect."""
    cells = [value for heading, value in row.cells if heading.lower() in _FACTS] or [value for _, value in row.cells]
    text = max(cells, key=len).replace("*", "").replace("`", "")
    first_sentence = _SENTENCE.split(text, maxsplit=1)[0].rstrip(".")
    return first_sentence[:1].upper() + first_sentence[1:] if _PLAIN.match(first_sentence) else first_sentence
