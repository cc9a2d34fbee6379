"""Tests that each requirement is proved on the right bench."""

from __future__ import annotations

from conformance.suite.registry import requirement
from mutants import trials


def test_requirements_that_have_ended_are_proved_on_the_line_that_they_hold_for() -> None:
    ended_ids = {id for id, entry in requirement.load().requirements.items() if entry.until}
    assert ended_ids == trials.OF_NAMES
    assert all(trials.bench([id]) is trials.NAMES for id in ended_ids)
