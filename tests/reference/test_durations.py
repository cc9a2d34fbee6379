"""Tests that durations are read and written as in Go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.grove.admission import durations as suite
from reference_impl.plan import durations


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("90m", "1h30m0s"),
        ("4h", "4h0m0s"),
        ("1.5h", "1h30m0s"),
        ("0", "0s"),
        ("-0s", "0s"),
        ("-1.5s", "-1.5s"),
        ("1500ms", "1.5s"),
        ("1500us", "1.5ms"),
        ("1us", "1µs"),
        ("100ns", "100ns"),
        ("1h1ns", "1h0m0.000000001s"),
        (".5s", "500ms"),
        ("1.s", "1s"),
        ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
    ],
)
def test_durations_are_formatted_like_in_go(given, written):
    assert durations.format_duration(durations.parse(given)) == written


@pytest.mark.parametrize("text", ["", "abc", "5", "1d", "s", ".s", "1h ", "--1s", "1h-1m", "3000000h", "٣s", "1" * 500])
def test_invalid_durations_are_rejected(text):
    with pytest.raises(ValueError, match="invalid duration"):
        durations.parse(text)


@given(st.integers(-durations.MAX_NANOSECONDS, durations.MAX_NANOSECONDS))
def test_a_formatted_duration_parses_to_the_same_value(nanoseconds):
    assert durations.parse(durations.format_duration(nanoseconds)) == nanoseconds


@given(st.integers(-(10**6), 10**6))
def test_the_suite_formats_whole_seconds_in_the_same_way(seconds):
    assert suite.normalized(f"{seconds}s") == durations.format_duration(seconds * 10**9)
