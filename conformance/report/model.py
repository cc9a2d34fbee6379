"""From the events of a ledger to a verdict. Pure: the same events, registry and day give the same report.

The invariant: every requirement of the profiles in question has exactly one outcome, and nothing passes that was not
judged to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

from conformance.errors import Exit
from conformance.suite.ledger import (
    AnyEvent,
    Cause,
    Check,
    ExpectedFailure,
    HarnessFault,
    RunFinished,
    RunStarted,
    TestFinished,
    TestStarted,
    WorkerLost,
)
from conformance.suite.requirement import Level, Registry, Requirement
from conformance.suite.selection import Scope, scope


class Outcome(StrEnum):
    """What became of a requirement, the worst first."""

    FAILED = "failed"
    HARNESS_ERROR = "harness-error"
    BLOCKED = "blocked"
    STALE_EXPECTATION = "stale-expectation"
    NOT_RUN = "not-run"
    EXPECTED_FAILURE = "expected-failure"
    PASSED = "passed"
    NOT_CLAIMED = "not-claimed"


NOT_SELECTED = "not selected"
"""Why most have no outcome where a user named some."""

EXECUTED = frozenset({Outcome.PASSED, Outcome.FAILED, Outcome.EXPECTED_FAILURE, Outcome.STALE_EXPECTATION})


class Word(StrEnum):
    """The verdict on a profile, and on the whole run."""

    CONFORMANT = "conformant"
    EXCEPT_EXPECTED = "conformant-except-expected-failures"
    NOT_CONFORMANT = "not-conformant"
    INTERRUPTED = "interrupted"
    HARNESS_ERROR = "harness-error"
    UNKNOWN = "unknown"
    PARTIAL = "partial"
    STALE = "stale-expectation"


EXIT = {
    Word.CONFORMANT: Exit.CONFORMANT,
    Word.EXCEPT_EXPECTED: Exit.CONFORMANT,
    Word.NOT_CONFORMANT: Exit.NOT_CONFORMANT,
    Word.INTERRUPTED: Exit.INTERRUPTED,
    Word.HARNESS_ERROR: Exit.HARNESS,
    Word.UNKNOWN: Exit.NOTHING_RAN,
    Word.PARTIAL: Exit.PARTIAL,
    Word.STALE: Exit.STALE_EXPECTATION,
}

_GRAVITY = (
    Word.INTERRUPTED,
    Word.HARNESS_ERROR,
    Word.NOT_CONFORMANT,
    Word.UNKNOWN,
    Word.STALE,
    Word.PARTIAL,
    Word.EXCEPT_EXPECTED,
    Word.CONFORMANT,
)
"""Of several verdicts the first in this order is that of the run."""


@dataclass(frozen=True)
class Failure:
    """A check that did not pass. `at` in seconds of the test's history."""

    test: str
    what: str
    expected: object
    seen: object
    at: float | None
    bundle: str


@dataclass(frozen=True)
class Result:
    """What became of one requirement. `failures` also for expected ones; `reason` for what was not judged."""

    requirement: Requirement
    outcome: Outcome
    tests: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    checks: int = 0
    reason: str = ""
    cause: Cause = ""


@dataclass(frozen=True)
class Profile:
    name: str
    text: str
    verdict: Word
    counts: Mapping[Outcome, int]
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Report:
    """A judged run. `faults` are the harness errors, each once."""

    started: RunStarted
    finished: RunFinished | None
    verdict: Word
    profiles: tuple[Profile, ...]
    tests: tuple[TestFinished, ...]
    faults: tuple[str, ...]
    seconds: float

    @property
    def exit(self) -> Exit:
        return EXIT[self.verdict]

    @property
    def results(self) -> list[Result]:
        return sorted((r for p in self.profiles for r in p.results), key=lambda r: r.requirement.id)

    @property
    def counts(self) -> dict[Outcome, int]:
        tally = Counter(r.outcome for r in self.results)
        return {outcome: tally[outcome] for outcome in Outcome}

    @property
    def complete(self) -> bool:
        """Whether the run came to its end by itself."""
        return self.finished is not None and not self.finished.interrupted


@dataclass
class _Test:
    """What the ledger says of one test."""

    ids: tuple[str, ...]
    started: TestStarted | None = None
    finished: TestFinished | None = None
    checks: dict[str, list[Check]] = field(default_factory=dict)


def judge(registry: Registry, events: Iterable[AnyEvent], today: date) -> Report:
    """Judges a run. `today` decides whether an expected failure has expired. Raises ValueError without a beginning."""
    listed = sorted(events, key=lambda e: e.wall)
    started = next((e for e in listed if isinstance(e, RunStarted)), None)
    if started is None:
        raise ValueError("the ledger has no run-started")
    finished = next((e for e in listed if isinstance(e, RunFinished)), None)
    tests = _tests(started, listed)
    interrupted = finished is None or finished.interrupted
    who = started.implementation
    chosen = scope(registry, started.profiles, started.ids, who.roles, who.features)
    expected = {e.id: e for e in who.expected_failures}
    profiles = []
    for name in chosen.profiles:
        entries = [r for r in registry.requirements.values() if r.profile == name]
        if not entries and not started.profiles:
            continue
        results = tuple(_expect(_result(e, chosen, tests, interrupted), expected.get(e.id), today) for e in entries)
        tally = Counter(r.outcome for r in results)
        counts = {outcome: tally[outcome] for outcome in Outcome}
        profiles.append(Profile(name, registry.profiles[name], _verdict(results), counts, results))
    faults = _faults(listed, tests, interrupted)
    return Report(
        started=started,
        finished=finished,
        verdict=_overall(profiles, faults, interrupted),
        profiles=tuple(profiles),
        tests=tuple(t.finished for _, t in sorted(tests.items()) if t.finished is not None),
        faults=faults,
        seconds=round(listed[-1].wall - started.wall, 3),
    )


def _tests(started: RunStarted, events: list[AnyEvent]) -> dict[str, _Test]:
    tests = {planned.test: _Test(planned.ids) for planned in started.plan}
    for event in events:
        match event:
            case TestStarted():
                tests.setdefault(event.test, _Test(event.ids)).started = event
            case TestFinished() if event.test in tests:
                tests[event.test].finished = event
            case Check() if event.test in tests:
                tests[event.test].checks.setdefault(event.id, []).append(event)
            case _:
                pass
    return tests


def _result(entry: Requirement, chosen: Scope, tests: Mapping[str, _Test], interrupted: bool) -> Result:
    """The outcome of a requirement over all tests that declare it: the worst."""
    if entry.id in chosen.unclaimed:
        return Result(entry, Outcome.NOT_CLAIMED, reason=chosen.unclaimed[entry.id])
    if entry.id not in chosen.judged:
        return Result(entry, Outcome.NOT_RUN, reason=NOT_SELECTED)
    parts = [
        _part(entry, name, test, interrupted)
        for name, test in sorted(tests.items())
        if entry.id in test.ids or entry.id in test.checks
    ]
    if not parts:
        return Result(entry, Outcome.NOT_RUN, reason="no test of this run judges it")
    order = list(Outcome)
    # Of two blocked parts the one for which the implementation is to blame tells more.
    worst = min(parts, key=lambda p: (order.index(p.outcome), p.cause != "implementation"))
    return replace(
        worst,
        tests=tuple(sorted(t for p in parts for t in p.tests)),
        failures=tuple(f for p in parts for f in p.failures),
        checks=sum(p.checks for p in parts),
    )


def _part(entry: Requirement, name: str, test: _Test, interrupted: bool) -> Result:
    """The outcome of a requirement in one test."""
    checks = test.checks.get(entry.id, [])
    end = test.finished
    bundle = end.bundle if end is not None else ""
    failures = tuple(Failure(name, c.what, c.expected, c.seen, c.at, bundle) for c in checks if c.outcome != "passed")
    base = Result(entry, Outcome.NOT_RUN, tests=(name,), failures=failures, checks=len(checks))
    if failures:
        return replace(base, outcome=Outcome.FAILED)
    if end is None or end.outcome == "interrupted":
        if interrupted:
            return replace(base, reason="the run was interrupted")
        if test.started is None:
            return replace(base, reason="the run ended before its test")
        return replace(base, outcome=Outcome.HARNESS_ERROR, reason=f"the worker was lost during {name}")
    if end.outcome == "harness-error":
        return replace(base, outcome=Outcome.HARNESS_ERROR, reason=end.reason)
    if end.outcome == "blocked":
        return replace(base, outcome=Outcome.BLOCKED, reason=end.reason, cause=end.cause)
    if checks:
        return replace(base, outcome=Outcome.PASSED)
    if end.outcome == "failed":
        first = next(c for c in _all_checks(test) if c.outcome != "passed")
        reason = f"not reached: {name} ended when {first.id} failed ({first.what})"
        return replace(base, outcome=Outcome.BLOCKED, reason=reason, cause="implementation")
    return replace(base, outcome=Outcome.HARNESS_ERROR, reason=f"{name} ended without an outcome for it")


def _all_checks(test: _Test) -> list[Check]:
    return sorted((c for checks in test.checks.values() for c in checks), key=lambda c: c.wall)


def _expect(result: Result, expected: ExpectedFailure | None, today: date) -> Result:
    """Applies an entry of the descriptor's expected failures."""
    if expected is None or result.outcome not in (Outcome.FAILED, Outcome.PASSED):
        return result
    if result.outcome is Outcome.PASSED:
        return replace(result, outcome=Outcome.STALE_EXPECTATION, reason="passes, though it is expected to fail")
    if expected.expires and date.fromisoformat(expected.expires) <= today:
        reason = f"still fails, and the expectation expired on {expected.expires}"
        return replace(result, outcome=Outcome.STALE_EXPECTATION, reason=reason)
    return replace(result, outcome=Outcome.EXPECTED_FAILURE, reason=expected.reason)


def _verdict(results: Iterable[Result]) -> Word:
    """The verdict on a profile: its MUSTs that the implementation claims. None executed is no success."""
    must = [r for r in results if r.requirement.level is Level.MUST and r.outcome is not Outcome.NOT_CLAIMED]
    outcomes = {r.outcome for r in must}
    if Outcome.HARNESS_ERROR in outcomes:
        return Word.HARNESS_ERROR
    if Outcome.FAILED in outcomes or any(r.outcome is Outcome.BLOCKED and r.cause == "implementation" for r in must):
        return Word.NOT_CONFORMANT
    if outcomes.isdisjoint(EXECUTED):
        return Word.UNKNOWN
    if Outcome.STALE_EXPECTATION in outcomes:
        return Word.STALE
    if outcomes & {Outcome.NOT_RUN, Outcome.BLOCKED}:
        return Word.PARTIAL
    return Word.EXCEPT_EXPECTED if Outcome.EXPECTED_FAILURE in outcomes else Word.CONFORMANT


def _overall(profiles: Iterable[Profile], faults: tuple[str, ...], interrupted: bool) -> Word:
    if interrupted:
        return Word.INTERRUPTED
    # A profile of which nothing is claimed says nothing, unless all are so.
    words = [p.verdict for p in profiles if set(_nonzero(p.counts)) != {Outcome.NOT_CLAIMED}]
    if faults:
        words.append(Word.HARNESS_ERROR)
    if any(p.counts[Outcome.STALE_EXPECTATION] for p in profiles):
        words.append(Word.STALE)
    return min(words, key=_GRAVITY.index, default=Word.UNKNOWN)


def _nonzero(counts: Mapping[Outcome, int]) -> list[Outcome]:
    return [outcome for outcome, number in counts.items() if number]


_BROKEN = (3, 4)
"""pytest's exit statuses for an internal error and for wrong usage: both are our own mistakes."""


def _faults(events: list[AnyEvent], tests: Mapping[str, _Test], interrupted: bool) -> tuple[str, ...]:
    """Harness errors in the order of their first appearance, each once."""
    found: dict[str, None] = {}
    for event in events:
        if isinstance(event, HarnessFault):
            found[event.what] = None
        elif isinstance(event, WorkerLost) and not interrupted:
            torn = [
                n for n, t in sorted(tests.items()) if t.started and t.started.worker == event.worker and not t.finished
            ]
            during = f" during {torn[0]}" if torn else ""
            found[f"worker {event.worker} died{during}"] = None
        elif isinstance(event, RunFinished) and event.status in _BROKEN and not found:
            found[f"pytest ended with status {event.status}"] = None
    return tuple(found)
