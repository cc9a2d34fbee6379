"""Tests that an upstream defect is quoted by one sentence, which can be understood without the sentences around it."""

from __future__ import annotations

import re

import pytest

from conformance.report import defects
from conformance.suite.registry import requirement

DEPENDENT_START = re.compile(
    r"(It|Its|Both|This|These|That|They|Their|Such|Consequences?|(For|In|With) (this|the same))\b"
)
"""Starts of sentences that refer to an earlier sentence."""


def quoted() -> list[str]:
    """Return the ids of the defects that requirements cite, which reports of failures quote."""
    cited_rows = {row for entry in requirement.load().requirements.values() for row in entry.source}
    return sorted(cited_rows & set(defects.rows()))


@pytest.mark.parametrize("id", quoted())
def test_the_sentence_is_self_contained(id: str) -> None:
    sentence = defects.fact(defects.rows()[id])
    assert len(sentence) <= 320
    assert not DEPENDENT_START.match(sentence)
    assert sentence[-1] not in ":;,…"
    assert not re.match(r"[a-z]+\s", sentence)


def test_a_sentence_ends_where_the_next_one_begins() -> None:
    assert defects.fact(defects.rows()["CHG-DF20"]).endswith('gets the template "worker" if that is listed first')
    assert "e.g. a.b" in defects.fact(defects.rows()["DFT-14"])
