"""Compute the verdict from the events of a ledger. Pure: the same events, registry and date give the same report.

Invariants: every requirement of the selected profiles has exactly one outcome, and a requirement whose judgment was not
completed never passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

from conformance.errors import Exit
from conformance.evidence.values import one_line
from conformance.report import faults
from conformance.suite.outcomes.ledger import (
    AnyEvent,
    Cause,
    Check,
    Deviation,
    ExpectedFailure,
    RunFinished,
    RunStarted,
    ScenePlayed,
    TestFinished,
    TestStarted,
)
from conformance.suite.registry.requirement import Level, Registry, Requirement
from conformance.suite.registry.selection import INVARIANT, Selection, scope


class Outcome(StrEnum):
    """The outcome of a requirement, worst first."""

    FAILED = "failed"
    HARNESS_ERROR = "harness-error"
    BLOCKED = "blocked"
    STALE_EXPECTATION = "stale-expectation"
    NOT_RUN = "not-run"
    EXPECTED_FAILURE = "expected-failure"
    KNOWN_LIMIT = "known-limit"
    PASSED = "passed"
    NOT_CLAIMED = "not-claimed"


NOT_SELECTED = "not selected"
"""The reason of most requirements that were not run, if the user selected some."""
SKIPPED = "left out with --skip"
OTHER_SHARD = "none of its tests is in this shard"
UNSELECTED_REASONS = frozenset({NOT_SELECTED, SKIPPED, OTHER_SHARD})
"""Reasons why a requirement was not run that follow from the user's own selection: of ids and profiles, with `--skip`,
or with `--shard`."""
COUNTED_REASONS = UNSELECTED_REASONS - {SKIPPED}
"""The reasons of requirements for which only their number is shown."""

BLOCKED_SEPARATOR = "; blocked: "
"""The separator, in the reason of an expected failure, before the reason why the requirement could not be judged."""

EXECUTED_OUTCOMES = frozenset(
    {Outcome.PASSED, Outcome.FAILED, Outcome.EXPECTED_FAILURE, Outcome.KNOWN_LIMIT, Outcome.STALE_EXPECTATION}
)


class RunVerdict(StrEnum):
    """The verdict on a profile, and on the run."""

    CONFORMANT = "conformant"
    EXCEPT_EXPECTED = "conformant-except-expected-failures"
    NOT_CONFORMANT = "not-conformant"
    INTERRUPTED = "interrupted"
    HARNESS_ERROR = "harness-error"
    UNKNOWN = "unknown"
    PARTIAL = "partial"
    STALE = "stale-expectation"


NO_VERDICT = frozenset({RunVerdict.INTERRUPTED, RunVerdict.HARNESS_ERROR, RunVerdict.UNKNOWN})
"""The verdicts that say nothing about the implementation."""

EXIT_CODES = {
    RunVerdict.CONFORMANT: Exit.CONFORMANT,
    RunVerdict.EXCEPT_EXPECTED: Exit.CONFORMANT,
    RunVerdict.NOT_CONFORMANT: Exit.NOT_CONFORMANT,
    RunVerdict.INTERRUPTED: Exit.INTERRUPTED,
    RunVerdict.HARNESS_ERROR: Exit.HARNESS,
    RunVerdict.UNKNOWN: Exit.NOTHING_RAN,
    RunVerdict.PARTIAL: Exit.PARTIAL,
    RunVerdict.STALE: Exit.STALE_EXPECTATION,
}

_VERDICTS_BY_GRAVITY = (
    RunVerdict.NOT_CONFORMANT,
    RunVerdict.INTERRUPTED,
    RunVerdict.HARNESS_ERROR,
    RunVerdict.UNKNOWN,
    RunVerdict.STALE,
    RunVerdict.PARTIAL,
    RunVerdict.EXCEPT_EXPECTED,
    RunVerdict.CONFORMANT,
)
"""The verdict of the run is the first of these that occurs. A proven failure always decides: otherwise a failing
implementation could avoid a verdict by breaking the run."""


@dataclass(frozen=True)
class Failure:
    """A check that did not pass. `at` is in seconds of the test's history."""

    test: str
    what: str
    expected: object
    observed: object
    at: float | None
    bundle: str
    scene: str = ""
    """The scene that its test judges; empty if there is none."""
    deviation: Deviation | None = None
    removed: str = ""
    """The installed object that had been removed by then; empty if there is none."""

    @property
    def history(self) -> str:
        """Return the name of the history in which it was observed."""
        return self.scene or self.test


@dataclass(frozen=True)
class Result:
    """The outcome of one requirement. `failures` includes expected ones; `reason` is for requirements that were not
    judged."""

    requirement: Requirement
    outcome: Outcome
    tests: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    checks: int = 0
    reason: str = ""
    cause: Cause = ""
    bundle: str = ""
    """Folder with the evidence for a blocked requirement, relative to the run's folder; empty if there is none."""
    ended_by: tuple[tuple[str, str], ...] = ()
    """Tests that ended early, each with the failed check that ended it; and scenes, each with the step that did not
    succeed."""


@dataclass(frozen=True)
class Profile:
    """The verdict on one profile and the results of its requirements."""

    name: str
    text: str
    verdict: RunVerdict
    counts: Mapping[Outcome, int]
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Report:
    """The result of a run. `faults` are the distinct harness errors."""

    started: RunStarted
    finished: RunFinished | None
    verdict: RunVerdict
    profiles: tuple[Profile, ...]
    tests: tuple[TestFinished, ...]
    faults: tuple[str, ...]
    seconds: float
    other_violations: tuple[Result, ...] = ()
    """The violated invariants of profiles that were not selected: the violations count, but their profiles have no
    verdict."""
    timed: tuple[ScenePlayed, ...] = ()
    """The scenes that have timing markers."""

    @property
    def exit(self) -> Exit:
        """Return the exit code. A run of selected requirements that all passed is partial, but successful. A run in
        which tests were run but no decisive requirement could be judged, for example because the cluster rejects all
        pods, is partial without a verdict."""
        if self.verdict is RunVerdict.PARTIAL and self.has_judged_selection:
            return Exit.CONFORMANT
        if self.verdict is RunVerdict.UNKNOWN and self.tests:
            return Exit.PARTIAL
        return EXIT_CODES[self.verdict]

    @property
    def has_judged_selection(self) -> bool:
        """Return whether everything that was selected has been judged, and nothing failed."""
        failing_outcomes = (Outcome.NOT_RUN, Outcome.BLOCKED, Outcome.FAILED)
        return all(
            r.reason in UNSELECTED_REASONS for p in self.profiles for r in p.results if r.outcome in failing_outcomes
        )

    def counts_against(self, result: Result) -> bool:
        """Return whether a requirement that failed makes the run fail. A requirement that does not decide makes the run
        fail only if it was selected and nothing else is wrong."""
        return result.requirement.decides or (
            self.verdict is RunVerdict.PARTIAL and result not in self.other_violations
        )

    @property
    def results(self) -> list[Result]:
        """Return the results of all profiles, and of violated invariants of other profiles, sorted by id."""
        return sorted(
            (*(r for p in self.profiles for r in p.results), *self.other_violations), key=lambda r: r.requirement.id
        )

    @property
    def counts(self) -> dict[Outcome, int]:
        """Return the number of requirements by outcome."""
        tally = Counter(r.outcome for r in self.results)
        return {outcome: tally[outcome] for outcome in Outcome}

    @property
    def compatibility(self) -> tuple[int, int]:
        """Return how many of the judged COMPAT requirements passed, and how many were judged. Requirements whose
        judgment the implementation prevents also count as judged."""
        return _count_passed(r for r in self.results if r.requirement.level is Level.COMPAT)

    @property
    def seeds(self) -> tuple[int, int]:
        """Return how many of the judged MUSTs of seed documents passed, and how many were judged. They do not decide
        the verdict, because upstream's contract does not contain them."""
        return _count_passed(r for r in self.results if r.requirement.level is Level.MUST and r.requirement.seed)

    @property
    def complete(self) -> bool:
        """Return whether the run ended without being interrupted or killed."""
        return self.finished is not None and not self.finished.interrupted


@dataclass
class _Test:
    """The events of one test in the ledger."""

    ids: tuple[str, ...]
    started: TestStarted | None = None
    finished: TestFinished | None = None
    checks: dict[str, list[Check]] = field(default_factory=dict)


def judge(registry: Registry, events: Iterable[AnyEvent], today: date) -> Report:
    """Judge a run. `today` decides whether an expected failure has expired. Raises ValueError if the ledger has no
    RunStarted event."""
    sorted_events = sorted(events, key=lambda e: e.wall)
    started = next((e for e in sorted_events if isinstance(e, RunStarted)), None)
    if started is None:
        raise ValueError("the ledger has no run-started")
    finished = next((e for e in sorted_events if isinstance(e, RunFinished)), None)
    tests = _tests(started, sorted_events)
    interrupted = finished is None or finished.interrupted
    implementation = started.implementation
    selected = scope(
        registry,
        started.profiles,
        started.ids,
        implementation.roles,
        implementation.features,
        started.environment.get("kubernetes", ""),
        implementation.release,
        skip=started.skip,
    )
    failed = (id for test in tests.values() for id, checks in test.checks.items() if _failed(checks))
    selection = selected.with_violated(registry, failed)
    unplanned_reason = OTHER_SHARD if started.shard else "no test of this run judges it"
    expected = {e.id: e for e in implementation.expected_failures}

    def results_of(entries: Iterable[Requirement]) -> tuple[Result, ...]:
        judged = (_result(e, selection, tests, interrupted, unplanned_reason) for e in entries)
        return tuple(_expect(result, expected.get(result.requirement.id), today) for result in judged)

    requirements = registry.requirements.values()
    other_violations = results_of(
        r for r in requirements if r.id in selection.judged and r.profile not in selection.profiles
    )
    profiles = []
    for name in selection.profiles:
        entries = [r for r in requirements if r.profile == name]
        if not entries and not started.profiles:
            continue
        results = results_of(entries)
        tally = Counter(r.outcome for r in results)
        counts = {outcome: tally[outcome] for outcome in Outcome}
        profiles.append(Profile(name, registry.profiles[name], _verdict(results), counts, results))
    harness_errors = faults.harness_errors(sorted_events, interrupted)
    return Report(
        started=started,
        finished=finished,
        verdict=_overall_verdict(
            profiles,
            other_violations,
            faults.harness_errors(faults.decisive_events(sorted_events), interrupted),
            interrupted,
        ),
        profiles=tuple(profiles),
        other_violations=other_violations,
        tests=tuple(t.finished for _, t in sorted(tests.items()) if t.finished is not None),
        faults=harness_errors,
        seconds=round(sorted_events[-1].wall - started.wall, 3),
        timed=tuple(event for event in sorted_events if isinstance(event, ScenePlayed) and event.markers),
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


def _result(
    entry: Requirement, selection: Selection, tests: Mapping[str, _Test], interrupted: bool, unplanned_reason: str
) -> Result:
    """Return the outcome of a requirement: the worst outcome in all tests that declare it. `unplanned_reason` is the
    reason if no test of the run declares it."""
    if entry.id in selection.unclaimed:
        return Result(entry, Outcome.NOT_CLAIMED, reason=selection.unclaimed[entry.id])
    if entry.id not in selection.judged:
        return Result(entry, Outcome.NOT_RUN, reason=SKIPPED if entry.id in selection.skipped else NOT_SELECTED)
    parts = [
        _test_result(entry, name, test, interrupted)
        for name, test in sorted(tests.items())
        if entry.id in test.ids or entry.id in test.checks
    ]
    if not parts:
        return Result(entry, Outcome.NOT_RUN, reason=unplanned_reason)
    if entry.id.startswith(INVARIANT):
        # Every test judges invariants, so a test that ended early does not invalidate the results of other tests.
        parts = [part for part in parts if part.outcome is not Outcome.BLOCKED] or parts
    worst_part = min(parts, key=_gravity)
    return replace(
        worst_part,
        tests=tuple(sorted(t for p in parts for t in p.tests)),
        failures=tuple(f for p in parts for f in p.failures),
        checks=sum(p.checks for p in parts),
        ended_by=tuple(end_keys for p in parts for end_keys in p.ended_by),
    )


def _test_result(entry: Requirement, name: str, test: _Test, interrupted: bool) -> Result:
    """Return the outcome of a requirement in one test."""
    checks = test.checks.get(entry.id, [])
    end = test.finished
    bundle = end.bundle if end is not None else ""
    scene = end.scene if end is not None else ""
    failed = _failed(checks)
    removed = end.removed if end is not None else ""
    failures = tuple(
        Failure(name, c.what, c.expected, c.seen, c.at, bundle, scene, c.deviation, removed) for c in failed
    )
    base_result = Result(entry, Outcome.NOT_RUN, tests=(name,), failures=failures, checks=len(checks))
    if failures:
        return replace(base_result, outcome=Outcome.FAILED)
    if end is None or end.outcome == "interrupted":
        if interrupted:
            return replace(base_result, reason="the run was interrupted")
        if test.started is None:
            return replace(base_result, reason="the run ended before its test")
        return replace(base_result, outcome=Outcome.HARNESS_ERROR, reason=f"the worker was lost during {name}")
    if end.outcome == "harness-error":
        return replace(base_result, outcome=Outcome.HARNESS_ERROR, reason=end.reason)
    if undetermined := next((c for c in checks if c.outcome == "unknown"), None):
        reason = f"{undetermined.what}: {one_line(undetermined.seen)}"
        return replace(base_result, outcome=Outcome.BLOCKED, reason=reason, cause="implementation")
    # A test that ended early may not have reached the decisive check, even if its earlier checks passed.
    ended_early = end.outcome == "blocked" or bool(end.ended_by)
    if end.outcome != "passed" and (ended_early or not checks):
        base_result = replace(base_result, outcome=Outcome.BLOCKED)
        if end.outcome == "blocked":
            end_keys = ((scene, end.ended_by),) if end.ended_by else ()
            return replace(base_result, reason=end.reason, cause=end.cause, bundle=bundle, ended_by=end_keys)
        check = end.ended_by or _first_failure(test)
        reason = f"not judged to its end: {name} ended when {check}"
        return replace(base_result, reason=reason, cause="implementation", ended_by=((name, check),))
    if checks:
        return replace(base_result, outcome=Outcome.PASSED)
    return replace(base_result, outcome=Outcome.HARNESS_ERROR, reason=f"{name} ended without an outcome for it")


def _gravity(part: Result) -> tuple[bool, bool, int]:
    """Return a sort key that puts the worst part first. Requirements that the implementation blocks are its fault, even
    if the harness has failed in other tests."""
    return part.outcome is not Outcome.FAILED, not _is_at_fault(part), list(Outcome).index(part.outcome)


def _is_at_fault(result: Result) -> bool:
    """Return whether the implementation makes a requirement fail, or prevents its judgment."""
    is_blocked = result.outcome is Outcome.BLOCKED and result.cause == "implementation"
    return is_blocked or result.outcome is Outcome.FAILED


def _failed(checks: Iterable[Check]) -> list[Check]:
    return [check for check in checks if check.outcome == "failed"]


def _first_failure(test: _Test) -> str:
    failed = (c for checks in test.checks.values() for c in checks if c.outcome != "passed")
    first_check = min(failed, key=lambda c: c.wall)
    return f"{first_check.id} failed ({first_check.what})"


def _expect(result: Result, expected: ExpectedFailure | None, today: date) -> Result:
    """Replace the outcome by known-limit, expected-failure or stale-expectation where one applies."""
    if result.outcome is Outcome.FAILED and result.requirement.limit is not None:
        return replace(result, outcome=Outcome.KNOWN_LIMIT, reason=str(result.requirement.limit))
    if expected is None or not (_is_at_fault(result) or result.outcome is Outcome.PASSED):
        return result
    if result.outcome is Outcome.PASSED:
        return replace(result, outcome=Outcome.STALE_EXPECTATION, reason="passes although it is expected to fail")
    if expected.expires and date.fromisoformat(expected.expires) <= today:
        if result.outcome is Outcome.BLOCKED:
            return result
        reason = f"still fails, and the expectation expired on {expected.expires}"
        return replace(result, outcome=Outcome.STALE_EXPECTATION, reason=reason)
    held_up = f"{BLOCKED_SEPARATOR}{result.reason}" if result.outcome is Outcome.BLOCKED else ""
    return replace(result, outcome=Outcome.EXPECTED_FAILURE, reason=expected.reason + held_up)


def _verdict(results: Iterable[Result]) -> RunVerdict:
    """Return the verdict on a profile from the MUST requirements of upstream's contract that the implementation claims.
    If none of them was run, the verdict is PARTIAL if all selected requirements were judged, or if only seed
    requirements are claimed and were judged; otherwise UNKNOWN."""
    all_results = list(results)
    claimed_results = [r for r in all_results if r.outcome is not Outcome.NOT_CLAIMED]
    must_results = [r for r in claimed_results if r.requirement.decides]
    outcomes = {r.outcome for r in must_results}
    if any(map(_is_at_fault, must_results)):
        return RunVerdict.NOT_CONFORMANT
    if Outcome.HARNESS_ERROR in outcomes:
        return RunVerdict.HARNESS_ERROR
    if outcomes.isdisjoint(EXECUTED_OUTCOMES):
        judged = _are_all_selected_judged(all_results) or (
            not must_results and any(map(_is_judged_seed, claimed_results))
        )
        return RunVerdict.PARTIAL if judged else RunVerdict.UNKNOWN
    if Outcome.STALE_EXPECTATION in outcomes:
        return RunVerdict.STALE
    if outcomes & {Outcome.NOT_RUN, Outcome.BLOCKED}:
        return RunVerdict.PARTIAL
    return RunVerdict.EXCEPT_EXPECTED if Outcome.EXPECTED_FAILURE in outcomes else RunVerdict.CONFORMANT


def _are_all_selected_judged(results: list[Result]) -> bool:
    """Return whether only some requirements were selected, and all of these were judged."""
    left_out_results = [r for r in results if r.reason in UNSELECTED_REASONS]
    selected = [r for r in results if r not in left_out_results and r.outcome is not Outcome.NOT_CLAIMED]
    return bool(left_out_results) and bool(selected) and all(r.outcome in EXECUTED_OUTCOMES for r in selected)


def _overall_verdict(
    profiles: Sequence[Profile], other_violations: Sequence[Result], harness_errors: tuple[str, ...], interrupted: bool
) -> RunVerdict:
    # A profile without claimed and selected requirements does not count; if the user left some of its requirements out,
    # the run is at most partial. A profile with only seed requirements does not count if there are other profiles.
    counted_profiles = [p for p in profiles if not all(map(_is_unselected, p.results))]
    words = [p.verdict for p in counted_profiles if not _has_only_seeds(p)] or [p.verdict for p in counted_profiles]
    absent_results = (r for p in profiles if all(map(_is_unselected, p.results)) for r in p.results)
    if words and any(r.reason in UNSELECTED_REASONS for r in absent_results):
        words.append(RunVerdict.PARTIAL)
    if any(_is_at_fault(result) and result.requirement.decides for result in other_violations):
        words.append(RunVerdict.NOT_CONFORMANT)
    if any(result.outcome is Outcome.EXPECTED_FAILURE and result.requirement.decides for result in other_violations):
        words.append(RunVerdict.EXCEPT_EXPECTED)
    if interrupted:
        words.append(RunVerdict.INTERRUPTED)
    if harness_errors:
        words.append(RunVerdict.HARNESS_ERROR)
    judged = (*(r for p in profiles for r in p.results), *other_violations)
    if any(r.outcome is Outcome.STALE_EXPECTATION for r in judged):
        words.append(RunVerdict.STALE)
    return min(words, key=_VERDICTS_BY_GRAVITY.index, default=RunVerdict.UNKNOWN)


def _has_only_seeds(profile: Profile) -> bool:
    """Return whether an implementation claims no decisive requirement of a profile, and at least one seed requirement
    of the profile was judged."""
    claimed_results = [r for r in profile.results if r.outcome is not Outcome.NOT_CLAIMED]
    return not any(r.requirement.decides for r in claimed_results) and any(map(_is_judged_seed, claimed_results))


def _is_judged_seed(result: Result) -> bool:
    entry = result.requirement
    return entry.level is Level.MUST and bool(entry.seed) and _is_judged(result)


def _is_judged(result: Result) -> bool:
    """Return whether a requirement was judged, or the implementation prevented its judgment."""
    return result.outcome in EXECUTED_OUTCOMES or _is_at_fault(result)


def _count_passed(results: Iterable[Result]) -> tuple[int, int]:
    judged = [result for result in results if _is_judged(result)]
    return sum(result.outcome is Outcome.PASSED for result in judged), len(judged)


def _is_unselected(result: Result) -> bool:
    return result.outcome is Outcome.NOT_CLAIMED or result.reason in UNSELECTED_REASONS
