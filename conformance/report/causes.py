"""Failures grouped by cause; causes ranked by how many requirements they hold up. Pure.

A failed wait reports the nearest miss. Waits of different tests whose nearest misses say the same about other objects
have one cause, and so do comparisons of the same name with the same differences. Requirements that were not judged
because such a failure ended their test are held up by its cause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from conformance.evidence.values import brief
from conformance.history.differences import reduced
from conformance.implementation.output import TAIL
from conformance.report.model import Failure, Outcome, Report, Result
from conformance.suite.requirement import Level

NEAREST, IN_VAIN = "nearest: ", "not seen within "
_MASKS = (
    (re.escape(TAIL) + ".*", TAIL),  # the end of a log
    (r"\"[^\"]*\"|'[^']*'", "…"),  # quoted values
    (r"\{[^{}]*\}|\[[^\[\]]*\]", "…"),  # and collections of them
    (r"(?<=[a-z]/)[a-z0-9][a-z0-9.-]*", "…"),  # podcliques/NAME
    (r"\b[a-z][a-z0-9]*(-[a-z0-9]+)*-[0-9][a-z0-9-]*", "…"),  # NAME-0-…
    (r"\d+(\.\d+)?|\bNone\b", "#"),
    (r"…(, …)+", "…"),
)
"""Names and numbers that differ between tests and say nothing about the cause."""


@dataclass
class Cause:
    """What made requirements fail and kept others from being judged."""

    failures: list[Failure] = field(default_factory=list)
    """The distinct failures; several requirements may share one."""
    failed: list[Result] = field(default_factory=list)
    held_up: list[Result] = field(default_factory=list)

    @property
    def results(self) -> list[Result]:
        """Return the results that failed or were held up."""
        return [*self.failed, *self.held_up]

    @property
    def tests(self) -> list[str]:
        """Return the tests in which the failures occurred."""
        return sorted({failure.test for failure in self.failures})

    @property
    def title(self) -> str:
        """Return the cause as one line."""
        return nearest(self.failures[0].seen) or self.failures[0].what

    @property
    def weight(self) -> tuple[int, int]:
        """Return the numbers of MUST requirements and of all requirements, for ranking."""
        return sum(result.requirement.level is Level.MUST for result in self.results), len(self.results)


def of(report: Report) -> list[Cause]:
    """Return the causes of all unexpected failures; the one that holds up most is first."""
    found: dict[str, Cause] = {}
    ended: dict[tuple[str, str], Cause] = {}
    for result in report.results:
        if result.outcome not in (Outcome.FAILED, Outcome.STALE_EXPECTATION):
            continue
        for failure in result.failures:
            cause = found.setdefault(signature(failure), Cause())
            _add(cause.failed, result)
            if not any(replace(failure, at=None) == replace(known, at=None) for known in cause.failures):
                cause.failures.append(failure)
            ended[failure.test, f"{result.requirement.id} failed ({failure.what})"] = cause
            if failure.scene:
                ended[failure.scene, failure.what] = cause
    for result in report.results:
        if result.outcome is Outcome.BLOCKED:
            for by in result.ended_by:
                if (holder := ended.get(by)) is not None:
                    _add(holder.held_up, result)
    return sorted(found.values(), key=lambda cause: cause.weight, reverse=True)


def nearest(seen: object) -> str:
    """Return the nearest miss of a wait that timed out, or what ended it (a process that died); empty if it is not a
    wait."""
    lines = seen.splitlines() if isinstance(seen, str) else []
    begin = next((number for number, line in enumerate(lines) if line.startswith(IN_VAIN)), None)
    if begin:
        return lines[0]
    return next((line.removeprefix(NEAREST) for line in lines if line.startswith(NEAREST)), "")


def signature(failure: Failure) -> str:
    """Return a text that is the same for failures with the same cause, as far as their texts tell."""
    if unmet := nearest(failure.seen):
        return _masked(unmet)
    expected, seen = reduced(failure.expected, failure.seen)
    if isinstance(expected, Mapping) and isinstance(seen, Mapping):
        return f"{_masked(failure.what)}: {_masked_leaves(expected)} {_masked_leaves(seen)}"
    first = seen.partition("\n")[0] if isinstance(seen, str) else brief(seen)
    return f"{_masked(failure.what)}: {_masked(first)}"


def _masked(text: str) -> str:
    """Return the distinct statements of a text, without names and numbers."""
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return "; ".join(sorted(set(text.split("; "))))


def _masked_leaves(value: object) -> str:
    """Return what differs: the leaves of a mapping of objects, whichever objects these are."""
    if isinstance(value, Mapping):
        return " ".join(sorted({f"{_masked(str(key))}={_masked_leaves(inner)}" for key, inner in value.items()}))
    return _masked(brief(value))


def _add(results: list[Result], result: Result) -> None:
    if all(known.requirement.id != result.requirement.id for known in results):
        results.append(result)
