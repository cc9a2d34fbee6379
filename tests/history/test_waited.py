"""Tests of the time between a breach and a deletion, by the timestamps in the objects. The scripted log starts at
2026-01-01T00:00:00Z."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.history.record import Record
from conformance.testing.disruption import termination_delay
from tests.history.scripted import Scripted
from tests.history.story import Story


def breach_and_deletion(transition: str, arrival: float, deletion: str, end: float) -> tuple[Record, Record]:
    """Record a breach and a deletion. `transition` and `deletion` are their timestamps (`MM:SS`); `arrival` and `end`
    are when their records arrive, in seconds after the start of the log."""
    story = Story(Scripted())
    condition = {"type": "MinAvailableBreached", "status": "True", "lastTransitionTime": timestamp(transition)}
    cause = story.record("podcliques", "a", {"status": {"conditions": [condition]}}, after=arrival)
    metadata: dict[str, Any] = {"deletionTimestamp": timestamp(deletion)} if deletion else {}
    return cause, story.record("podcliques", "a", {"metadata": metadata, "status": {}}, after=end - arrival)


def timestamp(minute: str) -> str:
    return f"2026-01-01T00:{minute}Z" if ":" in minute else minute


def test_a_late_record_of_a_breach_does_not_shorten_the_delay() -> None:
    assert termination_delay(*breach_and_deletion("00:10", 11.1, "00:16", 16.1), 9.2) == 6


def test_a_late_record_of_a_deletion_does_not_lengthen_the_delay() -> None:
    assert termination_delay(*breach_and_deletion("00:10", 10.1, "00:15", 19.0), 9.2) == 5


def test_a_breach_is_not_older_than_its_cause() -> None:
    """An operator gains nothing by reporting the time of an earlier breach."""
    assert termination_delay(*breach_and_deletion("00:04", 10.1, "00:15", 15.1), 9.9) == 6


@pytest.mark.parametrize("transition", ["", "soon"])
def test_without_stamps_arrivals_count(transition: str) -> None:
    assert termination_delay(*breach_and_deletion(transition, 10.1, "", 17.6), 9.2) == 7.5


def test_without_a_record_there_is_no_duration() -> None:
    cause, end = breach_and_deletion("00:10", 10.1, "00:16", 16.1)
    assert termination_delay(None, end, 0) == termination_delay(cause, None, 0) == -1
