"""Expectations: what this process did and its cache does not show yet."""

from __future__ import annotations

import pytest

from kube import expectations
from kube.expectations import Expectations


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(expectations, "time", made)
    return made


def test_a_creation_is_expected_until_it_is_seen() -> None:
    expected = Expectations[str]()
    assert expected.met("set")
    expected.created("set", "u1")
    expected.created("set", "u2")
    assert not expected.met("set")
    expected.saw_creation("set", "u1")
    expected.saw_creation("other", "u2")
    assert not expected.met("set")
    assert expected.met("other")
    expected.saw_creation("set", "u2")
    assert expected.met("set")


def test_a_deletion_is_expected_until_it_is_seen() -> None:
    expected = Expectations[str]()
    expected.deleted("set", "u1")
    expected.saw_creation("set", "u1")
    assert not expected.met("set")
    expected.saw_deletion("set", "u1")
    assert expected.met("set")


def test_a_deletion_seen_ends_the_wait_for_the_creation() -> None:
    expected = Expectations[str]()
    expected.created("set", "u1")
    expected.saw_deletion("set", "u1")
    assert expected.met("set")


def test_an_event_that_comes_before_the_answer_to_the_write_counts() -> None:
    expected = Expectations[str]()
    expected.saw_creation("set", "u1")
    expected.created("set", "u1")
    assert expected.met("set")
    expected.saw_deletion("set", "u2")
    expected.created("set", "u2")
    expected.deleted("set", "u2")
    assert expected.met("set")


def test_what_never_comes_is_given_up_after_the_patience(clock: Clock) -> None:
    expected = Expectations[str](patience=60.0)
    expected.created("set", "u1")
    clock.seconds += 30
    expected.deleted("set", "u2")
    clock.seconds += 30
    assert not expected.met("set")
    clock.seconds += 29
    assert not expected.met("set")
    clock.seconds += 2
    assert expected.met("set")


def test_sightings_are_not_kept_for_ever(clock: Clock) -> None:
    expected = Expectations[str](patience=60.0)
    for number in range(1000):
        expected.saw_deletion("set", f"u{number}")
        clock.seconds += 1
    assert len(expected._creations._seen) <= 62
    assert len(expected._deletions._seen) <= 62


def test_forget_drops_what_was_expected_of_a_key() -> None:
    expected = Expectations[str]()
    for key in ("set", "other"):
        expected.created(key, "u1")
        expected.deleted(key, "u2")
    expected.forget("set")
    assert expected.met("set")
    assert not expected.met("other")
