"""The symbol of each outcome, and its color on a page and on a terminal. The outcome itself is the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from conformance.report.model import Outcome


class Mark(NamedTuple):
    """A symbol with its colors. `kind`: the CSS class for the color: good, bad, unsure or none. `style`: the style for
    rich."""

    symbol: str
    kind: str
    style: str


MARKS: Mapping[Outcome, Mark] = {
    Outcome.FAILED: Mark("✗", "bad", "bold red"),
    Outcome.HARNESS_ERROR: Mark("!", "unsure", "bold magenta"),
    Outcome.BLOCKED: Mark("▪", "unsure", "yellow"),
    Outcome.STALE_EXPECTATION: Mark("≠", "unsure", "yellow"),
    Outcome.NOT_RUN: Mark("·", "none", "dim"),
    Outcome.EXPECTED_FAILURE: Mark("~", "unsure", "yellow"),
    Outcome.KNOWN_LIMIT: Mark("≈", "unsure", "yellow"),
    Outcome.PASSED: Mark("✓", "good", "green"),
    Outcome.NOT_CLAIMED: Mark("–", "none", "dim"),
}
