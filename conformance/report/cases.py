"""The results of a run as test cases, for JUnit and Allure. Pure.

Each requirement is one case, even if several tests judge it. A case is red if and only if the requirement counts
against the run, so that the cases agree with the exit code:

- if the run succeeds, no case is red;
- if the run does not succeed and no requirement shows why (all are blocked, or the run was interrupted), an additional
  case shows it.

Requirements that were not selected have no case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from conformance.errors import Exit
from conformance.report import causes, defects, facts, terminal
from conformance.report.causes import Cause
from conformance.report.model import COUNTED_REASONS, NO_VERDICT, Outcome, Report, Result
from conformance.suite.outcomes.ledger import TestFinished

GENERAL_GROUP = "run"
"""The group of the cases that do not belong to a requirement."""
MAX_LINES, MAX_FAILURES = 40, 8
"""Maximum number of lines of a value, and of failures of a requirement, in a case. The report has all of them."""


class CaseState(StrEnum):
    """The state of a case. ERROR means an error of the suite or its cluster, not of the implementation."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


RED_STATES = frozenset({CaseState.FAILED, CaseState.ERROR})


@dataclass(frozen=True)
class ReportCase:
    """One case. `group` is the profile or GENERAL; `message` is one line, empty if the case passed; `details` has more
    lines; `seconds` is the requirement's share of the time of its tests; `start` and `end` are seconds since the
    epoch."""

    group: str
    name: str
    """The id of its requirement; for a case without a requirement, its subject."""
    state: CaseState
    message: str = ""
    details: str = ""
    seconds: float = 0.0
    start: float | None = None
    end: float | None = None
    result: Result | None = None
    cause: int = 0
    """The number of its cause in the list of causes, from 1; 0 if it has no cause."""
    scene: str = ""
    """The scene in which it is judged. If there are several, this is the first by name, so that a case has the same
    scene in every run."""
    markers: Mapping[str, float] = field(default_factory=dict)
    """Timing markers of its scenes in seconds, by keys such as `deploy/pods-ready`."""


def find_cases(report: Report) -> list[ReportCase]:
    """Return the cases of a run: first the cases of its requirements by id, then the cases without a requirement."""
    run_causes = causes.find_causes(report, defects.rows())
    numbers = {result.requirement.id: number for number, cause in enumerate(run_causes, 1) for result in cause.results}
    tests = {test.test: test for test in report.tests}
    shares = Counter(test for result in report.results for test in result.tests)
    results = [result for result in report.results if result.reason not in COUNTED_REASONS]
    report_cases = [
        _case(result, report, run_causes, numbers.get(result.requirement.id, 0), tests, shares) for result in results
    ]
    return report_cases + list(_general_cases(report, report_cases))


def state(result: Result, report: Report) -> CaseState:
    """Return the state of a requirement's case. A failure that does not count against the run is SKIPPED."""
    match result.outcome:
        case Outcome.PASSED:
            return CaseState.PASSED
        case Outcome.FAILED if report.counts_against(result):
            return CaseState.FAILED
        case Outcome.STALE_EXPECTATION:
            return CaseState.FAILED
        case Outcome.HARNESS_ERROR if report.exit is not Exit.CONFORMANT:
            return CaseState.ERROR
        case _:
            return CaseState.SKIPPED


def _case(
    result: Result,
    report: Report,
    run_causes: list[Cause],
    number: int,
    tests: Mapping[str, TestFinished],
    shares: Mapping[str, int],
) -> ReportCase:
    entry, case_state = result.requirement, state(result, report)
    finished_tests = [tests[name] for name in result.tests if name in tests]
    return ReportCase(
        group=entry.profile,
        name=entry.id,
        state=case_state,
        message=_message(result, case_state),
        details="\n".join(_details(result, report, run_causes[number - 1].title if number else "")),
        seconds=round(sum(sum(test.seconds.values()) / shares[test.test] for test in finished_tests), 3),
        start=min((test.wall - sum(test.seconds.values()) for test in finished_tests), default=None),
        end=max((test.wall for test in finished_tests), default=None),
        result=result,
        cause=number,
        scene=min(map(_scene, finished_tests), default=""),
        markers=_markers(report, {test.scene for test in finished_tests}),
    )


def _scene(test: TestFinished) -> str:
    """Return the name of the scene that a test judges, or of the test itself if it does not judge a scene."""
    return (test.scene or test.test).rpartition("::")[2].partition("[")[0]


def _markers(report: Report, scenes: Collection[str]) -> dict[str, float]:
    markers_by_phase = [event.markers for event in report.timed if event.scene in scenes]
    return {
        f"{phase}/{name}": at
        for phases in markers_by_phase
        for phase, times in phases.items()
        for name, at in times.items()
    }


def _message(result: Result, case_state: CaseState) -> str:
    """Return the reason why a case did not pass, as one line."""
    if case_state is CaseState.PASSED:
        return ""
    first_failure = next((facts.sentence(f.what, f.expected, f.observed) for f in result.failures), "")
    if result.outcome is Outcome.FAILED:
        entry = result.requirement
        level = f"{entry.level} of a seed document" if entry.seed else str(entry.level)
        return (
            first_failure
            if case_state is CaseState.FAILED
            else f"failed, but a {level} does not decide: {first_failure}"
        )
    reason = " ".join(result.reason.split())
    return ": ".join(part for part in (result.outcome.replace("-", " "), reason, first_failure) if part)


def _details(result: Result, report: Report, title: str) -> Iterator[str]:
    """Yield the facts of each failure, the paths of the evidence, and the commands that show more."""
    if title:
        yield f"cause: {title}"
    for failure in result.failures[:MAX_FAILURES]:
        for label, words in facts.labeled_facts(failure, MAX_LINES):
            yield f"{label}: " + words.replace("\n", "\n    ")
        if failure.bundle:
            yield f"evidence: {failure.bundle}/"
        yield f"reproduce: {terminal.reproduction(report, failure.test)}"
    if further_failures := len(result.failures) - MAX_FAILURES:
        yield from [f"and {further_failures} more failures in the report"] * (further_failures > 0)
    if result.bundle:
        yield f"evidence: {result.bundle}/"
    if result.outcome not in (Outcome.PASSED, Outcome.NOT_CLAIMED):
        yield f"explained by: grove-conformance explain {result.requirement.id}"


def _general_cases(report: Report, report_cases: list[ReportCase]) -> Iterator[ReportCase]:
    """Yield a case for each harness error that no test reports, and one for the verdict if no other case shows that the
    run failed."""
    has_failed = report.exit is not Exit.CONFORMANT
    reasons = {test.reason for test in report.tests}
    has_red_case = any(case.state in RED_STATES for case in report_cases)
    for fault in report.faults:
        if fault not in reasons:
            has_red_case = has_red_case or has_failed
            yield ReportCase(GENERAL_GROUP, "harness error", CaseState.ERROR if has_failed else CaseState.PASSED, fault)
    if has_failed and not has_red_case:
        unjudged = report.verdict in NO_VERDICT
        yield ReportCase(
            GENERAL_GROUP, "verdict", CaseState.ERROR if unjudged else CaseState.FAILED, terminal.verdict_line(report)
        )
