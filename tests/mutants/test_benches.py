"""Tests that each requirement is proved on the right bench."""

from __future__ import annotations

from conformance.suite.registry import requirement
from mutants import trials


def test_ended_requirements_are_proved_on_their_release_line() -> None:
    ended_ids = {id for id, entry in requirement.load().requirements.items() if entry.until}
    assert ended_ids == trials.NAMES_REQUIREMENTS
    assert all(trials.bench([id]) is trials.NAMES_BENCH for id in ended_ids)
