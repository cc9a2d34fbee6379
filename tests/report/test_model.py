"""The verdict from a ledger: pure, rule by rule."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pytest

from conformance.errors import Exit
from conformance.report import model
from conformance.report.model import Outcome, Word
from conformance.suite import ledger
from conformance.suite.requirement import Level, Registry, Requirement

TODAY = date(2026, 11, 21)


def entry(id: str, *, level: Level = Level.MUST, profile: str = "core", role: str = "operator") -> Requirement:
    return Requirement(id, profile, level, f"Text of {id}.", ("X-1",), "v0", (role,))


def registry(*entries: Requirement) -> Registry:
    return Registry({"core": "The core.", "gang": "The gangs."}, {e.id: e for e in entries}, {})


def begin(
    plan: dict[str, tuple[str, ...]],
    *,
    roles: tuple[str, ...] = ("operator",),
    expected: Iterable[ledger.ExpectedFailure] = (),
    profiles: tuple[str, ...] = (),
) -> ledger.RunStarted:
    who = ledger.Implementation(
        name="mine", version="1", roles=roles, features=(), digest="d", expected_failures=tuple(expected)
    )
    return ledger.RunStarted(
        wall=1.0,
        run="r",
        suite_version="0",
        suite_digest="d",
        implementation=who,
        profiles=profiles,
        ids=(),
        plan=tuple(ledger.PlannedTest(test, ids) for test, ids in plan.items()),
        workers=1,
        time_scale=1,
        seed=1,
    )


def started(test: str, *ids: str, worker: str = "gw0") -> ledger.TestStarted:
    return ledger.TestStarted(wall=2.0, test=test, ids=ids, worker=worker)


def check(test: str, id: str, outcome: str = "passed") -> ledger.Check:
    return ledger.Check(wall=3.0, test=test, id=id, what="w", outcome=outcome, expected=1, seen=2)  # type: ignore[arg-type]


def ended(test: str, outcome: str = "passed", reason: str = "", cause: str = "") -> ledger.TestFinished:
    return ledger.TestFinished(wall=4.0, test=test, outcome=outcome, worker="gw0", reason=reason, cause=cause)  # type: ignore[arg-type]


DONE = ledger.RunFinished(wall=9.0, interrupted=False, status=0)


def one(
    *events: ledger.AnyEvent, level: Level = Level.MUST, expected: Iterable[ledger.ExpectedFailure] = ()
) -> model.Report:
    """A run of one requirement in one test."""
    return model.judge(
        registry(entry("AA-001", level=level)), [begin({"t": ("AA-001",)}, expected=expected), *events], TODAY
    )


def only(report: model.Report) -> Outcome:
    assert len(report.results) == 1
    return report.results[0].outcome


def test_a_passed_check_of_a_finished_test_is_conformant() -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), ended("t"), DONE)
    assert (only(report), report.verdict, report.exit) == (Outcome.PASSED, Word.CONFORMANT, Exit.CONFORMANT)


@pytest.mark.parametrize("judged", ["failed", "unknown"])
def test_what_is_not_a_pass_fails(judged: str) -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), check("t", "AA-001", judged), ended("t", "failed"), DONE)
    assert (only(report), report.exit) == (Outcome.FAILED, Exit.NOT_CONFORMANT)


def test_a_should_that_fails_does_not_decide() -> None:
    entries = registry(entry("AA-001"), entry("AA-002", level=Level.SHOULD))
    events = [
        begin({"t": ("AA-001", "AA-002")}),
        started("t", "AA-001", "AA-002"),
        check("t", "AA-001"),
        check("t", "AA-002", "failed"),
        ended("t", "failed"),
        DONE,
    ]
    report = model.judge(entries, events, TODAY)
    assert report.verdict is Word.CONFORMANT
    assert report.counts[Outcome.FAILED] == 1


def test_no_vacuous_success() -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), ended("t"), DONE, level=Level.SHOULD)
    assert (report.verdict, report.exit) == (Word.UNKNOWN, Exit.NOTHING_RAN)


def test_a_finished_test_without_an_outcome_is_a_harness_error() -> None:
    assert only(one(started("t", "AA-001"), ended("t"), DONE)) is Outcome.HARNESS_ERROR


def test_a_passed_check_of_a_torn_test_is_no_pass() -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), ledger.WorkerLost(wall=5.0, worker="gw0"), DONE)
    assert (only(report), report.exit) == (Outcome.HARNESS_ERROR, Exit.HARNESS)
    assert report.faults == ("worker gw0 died during t",)


def test_a_worker_that_dies_after_its_tests_is_still_a_harness_error() -> None:
    report = one(
        started("t", "AA-001"), check("t", "AA-001"), ended("t"), ledger.WorkerLost(wall=5.0, worker="gw0"), DONE
    )
    assert (only(report), report.exit) == (Outcome.PASSED, Exit.HARNESS)


@pytest.mark.parametrize("end", [[], [ledger.RunFinished(wall=9.0, interrupted=True, status=2)]])
def test_a_run_without_its_end_is_interrupted(end: list[ledger.AnyEvent]) -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), *end)
    assert (only(report), report.exit, report.complete) == (Outcome.NOT_RUN, Exit.INTERRUPTED, False)


@pytest.mark.parametrize(("cause", "word"), [("implementation", Word.NOT_CONFORMANT), ("circumstances", Word.UNKNOWN)])
def test_blocked_by_whom(cause: str, word: Word) -> None:
    report = one(started("t", "AA-001"), ended("t", "blocked", "why", cause), DONE)
    assert (only(report), report.verdict) == (Outcome.BLOCKED, word)


def test_what_circumstances_block_makes_a_run_partial() -> None:
    entries = registry(entry("AA-001"), entry("AA-002"))
    events = [
        begin({"t": ("AA-001",), "u": ("AA-002",)}),
        started("t", "AA-001"),
        check("t", "AA-001"),
        ended("t"),
        started("u", "AA-002"),
        ended("u", "blocked", "why", "circumstances"),
        DONE,
    ]
    report = model.judge(entries, events, TODAY)
    assert report.exit is Exit.PARTIAL


def test_the_worst_of_several_tests_counts() -> None:
    events = [
        begin({"t": ("AA-001",), "u": ("AA-001",)}),
        started("t", "AA-001"),
        check("t", "AA-001"),
        ended("t"),
        started("u", "AA-001"),
        check("u", "AA-001", "failed"),
        ended("u", "failed"),
        DONE,
    ]
    report = model.judge(registry(entry("AA-001")), events, TODAY)
    assert report.results[0].outcome is Outcome.FAILED
    assert report.results[0].tests == ("t", "u")
    assert report.results[0].checks == 2


def test_a_broken_invariant_counts_though_the_test_did_not_declare_it() -> None:
    entries = registry(entry("AA-001"), entry("INV-001"))
    events = [
        begin({"t": ("AA-001",), "u": ("INV-001",)}),
        started("t", "AA-001"),
        check("t", "AA-001"),
        check("t", "INV-001", "failed"),
        ended("t", "failed"),
        started("u", "INV-001"),
        check("u", "INV-001"),
        ended("u"),
        DONE,
    ]
    assert {r.requirement.id: str(r.outcome) for r in model.judge(entries, events, TODAY).results} == {
        "AA-001": "passed",
        "INV-001": "failed",
    }


FAILED: list[ledger.AnyEvent] = [started("t", "AA-001"), check("t", "AA-001", "failed"), ended("t", "failed"), DONE]
PASSED: list[ledger.AnyEvent] = [started("t", "AA-001"), check("t", "AA-001"), ended("t"), DONE]


@pytest.mark.parametrize(
    ("events", "expires", "outcome", "code"),
    [
        (FAILED, "", Outcome.EXPECTED_FAILURE, Exit.CONFORMANT),
        (FAILED, "2026-11-22", Outcome.EXPECTED_FAILURE, Exit.CONFORMANT),
        (FAILED, "2026-11-21", Outcome.STALE_EXPECTATION, Exit.STALE_EXPECTATION),
        (PASSED, "", Outcome.STALE_EXPECTATION, Exit.STALE_EXPECTATION),
    ],
)
def test_expected_failures(events: list[ledger.AnyEvent], expires: str, outcome: Outcome, code: Exit) -> None:
    report = one(*events, expected=[ledger.ExpectedFailure("AA-001", "known", "", expires)])
    assert (only(report), report.exit) == (outcome, code)


def test_an_expected_failure_is_never_plainly_conformant() -> None:
    assert one(*FAILED, expected=[ledger.ExpectedFailure("AA-001")]).verdict is Word.EXCEPT_EXPECTED


def test_a_role_that_is_not_played_is_not_judged() -> None:
    entries = registry(entry("AA-001"), entry("BB-001", profile="gang", role="gang-scheduler"))
    events = [begin({"t": ("AA-001", "BB-001")}), started("t", "AA-001", "BB-001")]
    events += [check("t", "AA-001"), check("t", "BB-001", "failed"), ended("t", "failed"), DONE]  # type: ignore[list-item]
    report = model.judge(entries, events, TODAY)
    assert [str(r.outcome) for r in report.results] == ["passed", "not-claimed"]
    assert report.verdict is Word.CONFORMANT


def test_the_order_of_events_of_different_workers_does_not_matter() -> None:
    events = [begin({"t": ("AA-001",)}), *PASSED]
    entries = registry(entry("AA-001"))
    assert model.judge(entries, events, TODAY) == model.judge(entries, events[::-1], TODAY)


def test_a_ledger_without_a_beginning_is_refused() -> None:
    with pytest.raises(ValueError, match="no run-started"):
        model.judge(registry(), [DONE], TODAY)
