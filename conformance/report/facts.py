"""The facts of a failed check as text, identical on the terminal, in JUnit, in Allure and on the page. Pure."""

from __future__ import annotations

import msgspec

from conformance.evidence.values import one_line
from conformance.history.differences import reduced
from conformance.report import causes
from conformance.report.model import Failure

SHORT_LINES = 2
"""Maximum number of lines of a value in short form, in which a value that is not a string takes one line."""


def labeled_facts(failure: Failure, limit: int) -> list[tuple[str, str]]:
    """Return labels and texts: the test, the check, the expected value, the observed value, and the time. Mappings and
    lists are reduced to their differences; a value has at most `limit` lines."""
    expected, observed = reduced(failure.expected, failure.observed)
    facts = [("test", failure.test)]
    if failure.expected != failure.what:
        facts.append(("check", failure.what))
        if failure.expected is not None:
            facts.append(("expected", value(expected, limit)))
    facts.append(("seen", value(observed, limit)))
    if failure.at is not None:
        facts.append(("at", moment(failure)))
    return facts


def moment(failure: Failure) -> str:
    """Return the time and the record at which a check first failed; empty if it has no time."""
    if failure.at is None:
        return ""
    record = f", {failure.deviation.object} (revision {failure.deviation.revision})" if failure.deviation else ""
    return f"{failure.at:.3f} s of the history{record}"


def sentence(description: str, expected: object, observed: object) -> str:
    """Return a failed check as one line. For a wait that timed out, the line has the nearest miss; for an invariant,
    its own text."""
    if is_violation(description, observed):
        return one_line(str(observed), 360)
    short_expected, short_observed = reduced(expected, observed)
    observed_text = one_line(causes.nearest_miss(observed) or short_observed, 240)
    if expected in (None, description):
        return f"{description}: {observed_text}"
    return f"{description}: expected {one_line(short_expected, 120)}, seen {observed_text}"


def is_violation(description: str, observed: object) -> bool:
    """Return whether `observed` is the text of a violated invariant."""
    return isinstance(observed, str) and f"broken: {description}" in observed


def duration(seconds: float) -> str:
    """Return a duration in human-readable form: `45 s`, `17 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def value(item: object, limit: int) -> str:
    """Return a value in at most `limit` lines."""
    if limit == SHORT_LINES and not isinstance(item, str):
        return one_line(item)
    lines = text(item).splitlines() or [""]
    if len(lines) > limit:
        lines = [*lines[:limit], f"… {len(lines) - limit} more lines in the report"]
    return "\n".join(lines)


def text(item: object) -> str:
    """Return a value as text: a string unchanged, other values as JSON with one field per line."""
    return item if isinstance(item, str) else msgspec.json.format(msgspec.json.encode(item), indent=2).decode()
