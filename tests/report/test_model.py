"""Tests of how a ledger becomes a verdict, rule by rule."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from datetime import date

import msgspec
import pytest

from conformance.errors import Exit
from conformance.report import cases, junit, model, terminal
from conformance.report.model import Outcome, RunVerdict
from conformance.suite.outcomes import ledger
from conformance.suite.registry.requirement import Level, Limit, Registry, Requirement
from tests import requirements

TODAY = date(2026, 11, 21)


def entry(
    id: str, *, level: Level = Level.MUST, profile: str = "core", role: str = "operator", seed: str = ""
) -> Requirement:
    return requirements.entry(id, level, profile=profile, roles=(role,), seed=seed)


def registry(*entries: Requirement) -> Registry:
    return Registry({"core": "The core.", "gang": "The gangs."}, {e.id: e for e in entries}, {})


def begin(
    plan: dict[str, tuple[str, ...]],
    *,
    roles: tuple[str, ...] = ("operator",),
    expected: Iterable[ledger.ExpectedFailure] = (),
    profiles: tuple[str, ...] = (),
) -> ledger.RunStarted:
    implementation = ledger.Implementation(
        name="mine", version="1", roles=roles, features=(), digest="d", expected_failures=tuple(expected)
    )
    return ledger.RunStarted(
        wall=1.0,
        run="r",
        suite_version="0",
        suite_digest="d",
        implementation=implementation,
        profiles=profiles,
        ids=(),
        plan=tuple(ledger.PlannedTest(test, ids) for test, ids in plan.items()),
        workers=1,
        time_scale=1,
        seed=1,
    )


def started(test: str, *ids: str, worker: str = "gw0") -> ledger.TestStarted:
    return ledger.TestStarted(wall=2.0, test=test, ids=ids, worker=worker)


def check(test: str, id: str, outcome: str = "passed", what: str = "w") -> ledger.Check:
    return ledger.Check(wall=3.0, test=test, id=id, what=what, outcome=outcome, expected=1, seen=2)  # type: ignore[arg-type]


def ended(
    test: str, outcome: str = "passed", reason: str = "", cause: str = "", *, by: str = ""
) -> ledger.TestFinished:
    return ledger.TestFinished(
        wall=4.0,
        test=test,
        outcome=outcome,  # type: ignore[arg-type]
        worker="gw0",
        reason=reason,
        cause=cause,  # type: ignore[arg-type]
        ended_by=by,
    )


DONE = ledger.RunFinished(wall=9.0, interrupted=False, status=0)


def one(
    *events: ledger.AnyEvent, level: Level = Level.MUST, expected: Iterable[ledger.ExpectedFailure] = ()
) -> model.Report:
    """Return the report of a run with one requirement in one test."""
    return model.judge(
        registry(entry("AA-001", level=level)), [begin({"t": ("AA-001",)}, expected=expected), *events], TODAY
    )


def only(report: model.Report) -> Outcome:
    assert len(report.results) == 1
    return report.results[0].outcome


def test_a_passed_check_of_a_finished_test_is_conformant() -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), ended("t"), DONE)
    assert (only(report), report.verdict, report.exit) == (Outcome.PASSED, RunVerdict.CONFORMANT, Exit.CONFORMANT)


@pytest.mark.parametrize(("judged", "outcome"), [("failed", Outcome.FAILED), ("unknown", Outcome.BLOCKED)])
def test_only_passed_requirements_are_conformant(judged: str, outcome: Outcome) -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), check("t", "AA-001", judged), ended("t", "failed"), DONE)
    assert (only(report), report.exit) == (outcome, Exit.NOT_CONFORMANT)


def test_a_requirement_without_anything_to_judge_has_that_reason() -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001", "unknown"), ended("t", "failed"), DONE)
    assert report.results[0].reason == "w: 2"
    assert report.results[0].failures == ()


ENDED_EARLY = [
    started("t", "AA-001", "AA-002", "AA-003"),
    check("t", "AA-001", what="it is made"),
    check("t", "AA-003", what="it is whole"),
    check("t", "AA-002", "failed", what="it is ready"),
    ended("t", "failed", by="AA-002 failed (it is ready)"),
    DONE,
]


def test_a_test_that_ended_early_passes_nothing() -> None:
    entries = registry(entry("AA-001"), entry("AA-002", level=Level.SHOULD), entry("AA-003"))
    report = model.judge(entries, [begin({"t": ("AA-001", "AA-002", "AA-003")}), *ENDED_EARLY], TODAY)
    results = {result.requirement.id: result for result in report.results}
    assert {id: str(result.outcome) for id, result in results.items()} == {
        "AA-001": "blocked",
        "AA-002": "failed",
        "AA-003": "blocked",
    }
    assert results["AA-001"].reason == "not judged to its end: t ended when AA-002 failed (it is ready)"
    assert results["AA-001"].cause == "implementation"


def test_a_blocked_test_passes_nothing() -> None:
    end = ended("t", "blocked", "its process cannot be killed", "circumstances")
    result = one(started("t", "AA-001"), check("t", "AA-001"), end, DONE).results[0]
    assert (result.outcome, result.reason) == (Outcome.BLOCKED, "its process cannot be killed")


def test_a_test_that_ended_normally_has_made_all_its_checks() -> None:
    """A soft failure does not end a test."""
    entries = registry(entry("AA-001"), entry("AA-002", level=Level.SHOULD))
    events = [begin({"t": ("AA-001", "AA-002")}), started("t", "AA-001", "AA-002"), check("t", "AA-001")]
    events += [check("t", "AA-002", "failed"), ended("t", "failed"), DONE]  # type: ignore[list-item]
    assert model.judge(entries, events, TODAY).verdict is RunVerdict.CONFORMANT


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
    assert report.verdict is RunVerdict.CONFORMANT
    assert report.counts[Outcome.FAILED] == 1


@pytest.mark.parametrize(("outcome", "compatible"), [("passed", (1, 1)), ("failed", (0, 1))])
def test_compatibility_is_counted_and_does_not_decide(outcome: str, compatible: tuple[int, int]) -> None:
    entries = registry(entry("AA-001"), entry("AA-002", level=Level.COMPAT), entry("AA-003", level=Level.COMPAT))
    events = [begin({"t": ("AA-001", "AA-002")}), started("t", "AA-001", "AA-002"), check("t", "AA-001")]
    events += [check("t", "AA-002", outcome), ended("t", outcome), DONE]  # type: ignore[list-item]
    report = model.judge(entries, events, TODAY)
    assert (report.verdict, report.compatibility) == (RunVerdict.CONFORMANT, compatible)


@pytest.mark.parametrize(("outcome", "seeds"), [("passed", (1, 1)), ("failed", (0, 1))])
def test_requirements_of_seed_documents_are_counted_separately_and_do_not_decide(
    outcome: str, seeds: tuple[int, int]
) -> None:
    entries = registry(entry("AA-001"), entry("AA-002", seed="GREP-1"), entry("AA-003", seed="GREP-1"))
    events = [begin({"t": ("AA-001", "AA-002")}), started("t", "AA-001"), check("t", "AA-001")]
    events += [check("t", "AA-002", outcome), ended("t", outcome), DONE]  # type: ignore[list-item]
    report = model.judge(entries, events, TODAY)
    assert (report.verdict, report.exit, report.seeds) == (RunVerdict.CONFORMANT, Exit.CONFORMANT, seeds)


def test_a_must_of_the_contract_decides_even_if_seeds_hold() -> None:
    entries = registry(entry("AA-001"), entry("AA-002", seed="GREP-1"))
    events = [begin({"t": ("AA-001", "AA-002")}), started("t", "AA-001"), check("t", "AA-001", "failed")]
    report = model.judge(entries, [*events, check("t", "AA-002"), ended("t", "failed"), DONE], TODAY)
    assert (report.verdict, report.seeds) == (RunVerdict.NOT_CONFORMANT, (1, 1))


def test_a_seed_that_the_implementation_blocks_is_counted_and_does_not_decide() -> None:
    entries = registry(entry("AA-001"), entry("AA-002", seed="GREP-1"))
    events = [begin({"t": ("AA-001",), "u": ("AA-002",)}), started("t", "AA-001"), check("t", "AA-001"), ended("t")]
    events += [started("u", "AA-002"), ended("u", "blocked", "why", "implementation"), DONE]
    report = model.judge(entries, events, TODAY)
    assert (report.verdict, report.seeds) == (RunVerdict.CONFORMANT, (0, 1))


@pytest.mark.parametrize(("outcome", "code"), [("passed", Exit.CONFORMANT), ("failed", Exit.PARTIAL)])
def test_a_run_of_seeds_has_no_verdict_on_the_contract(outcome: str, code: Exit) -> None:
    entries = registry(entry("AA-001", seed="GREP-1"))
    events = [begin({"t": ("AA-001",)}), started("t", "AA-001"), check("t", "AA-001", outcome)]
    report = model.judge(entries, [*events, ended("t", outcome), DONE], TODAY)  # type: ignore[list-item]
    assert (report.verdict, report.exit) == (RunVerdict.PARTIAL, code)


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_profile_of_seeds_does_not_affect_the_verdict_on_other_profiles(outcome: str) -> None:
    entries = registry(entry("AA-001"), entry("BB-001", seed="GREP-1", profile="gang"))
    head = msgspec.structs.replace(begin({"t": ("AA-001", "BB-001")}), profiles=("core", "gang"))
    events = [head, started("t", "AA-001", "BB-001"), check("t", "AA-001"), check("t", "BB-001", outcome)]
    report = model.judge(entries, [*events, ended("t", outcome), DONE], TODAY)  # type: ignore[list-item]
    assert report.verdict is RunVerdict.CONFORMANT
    assert [profile.verdict for profile in report.profiles] == [RunVerdict.CONFORMANT, RunVerdict.PARTIAL]


def test_no_vacuous_success() -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), ended("t"), DONE, level=Level.SHOULD)
    assert (report.verdict, report.exit) == (RunVerdict.UNKNOWN, Exit.PARTIAL)


def test_a_run_without_tests_has_an_exit_code_of_its_own() -> None:
    report = model.judge(registry(entry("AA-001", role="gang-scheduler")), [begin({}), DONE], TODAY)
    assert (report.verdict, report.exit) == (RunVerdict.UNKNOWN, Exit.NOTHING_RAN)


def test_a_shard_of_selected_requirements_is_a_success_without_tests_of_a_profile() -> None:
    entries = registry(entry("AA-001"), *(entry(id, profile="gang") for id in ("AA-002", "AA-003")))
    run = msgspec.structs.replace(begin({"t": ("AA-001",)}), ids=("AA-001", "AA-002"), shard="1/2")
    report = model.judge(entries, [run, started("t", "AA-001"), check("t", "AA-001"), ended("t"), DONE], TODAY)
    assert (report.verdict, report.exit) == (RunVerdict.PARTIAL, Exit.CONFORMANT)


def test_a_profile_blocked_by_circumstances_does_not_make_a_run_of_other_profiles_empty() -> None:
    entries = registry(entry("AA-001"), entry("BB-001", profile="gang"))
    events = [begin({"t": ("AA-001",), "u": ("BB-001",)}, profiles=("core", "gang"))]
    events += [started("t", "AA-001"), check("t", "AA-001"), ended("t"), started("u", "BB-001")]
    report = model.judge(entries, [*events, ended("u", "blocked", "why", "circumstances"), DONE], TODAY)
    assert [profile.verdict for profile in report.profiles] == [RunVerdict.CONFORMANT, RunVerdict.UNKNOWN]
    assert (report.verdict, report.exit) == (RunVerdict.UNKNOWN, Exit.PARTIAL)


def test_a_finished_test_without_an_outcome_is_a_harness_error() -> None:
    assert only(one(started("t", "AA-001"), ended("t"), DONE)) is Outcome.HARNESS_ERROR


def test_a_passed_check_of_a_torn_test_is_not_a_pass() -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), ledger.WorkerLost(wall=5.0, worker="gw0"), DONE)
    assert (only(report), report.exit) == (Outcome.HARNESS_ERROR, Exit.HARNESS)
    assert report.faults == ("worker gw0 died during t",)


FAULT = ledger.HarnessFault(wall=5.0, worker="gw0", what="etcd died")
CLEARING = ledger.HarnessFault(wall=5.0, worker="gw0", what="clearing up failed: it does not end", clearing=True)
DIED = ledger.WorkerLost(wall=5.0, worker="gw0")
INTERRUPTED = ledger.RunFinished(wall=9.0, interrupted=True, status=2)


@pytest.mark.parametrize("after", [CLEARING, DIED])
def test_a_fault_after_everything_was_judged_is_reported_and_decides_nothing(after: ledger.AnyEvent) -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), ended("t"), after, DONE)
    assert (only(report), report.exit) == (Outcome.PASSED, Exit.CONFORMANT)
    assert len(report.faults) == 1


@pytest.mark.parametrize("event", [FAULT, CLEARING, DIED, INTERRUPTED])
@pytest.mark.parametrize("failed", [ended("t", "failed"), ended("t", "harness-error", "etcd died")])
def test_a_failure_stays_proven_whatever_else_happens(event: ledger.AnyEvent, failed: ledger.TestFinished) -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001", "failed"), failed, event, DONE)
    assert (only(report), report.verdict) == (Outcome.FAILED, RunVerdict.NOT_CONFORMANT)
    assert report.exit is Exit.NOT_CONFORMANT
    assert (report.faults != ()) is (event is not INTERRUPTED)
    assert report.complete is (event is not INTERRUPTED)


def test_a_requirement_without_an_outcome_hides_no_failure_of_its_profile() -> None:
    entries = registry(entry("AA-001"), entry("AA-002"))
    events = [begin({"t": ("AA-001",), "u": ("AA-002",)}), started("t", "AA-001"), check("t", "AA-001", "failed")]
    events += [ended("t", "failed"), started("u", "AA-002"), ended("u", "harness-error", "etcd died"), FAULT, DONE]
    report = model.judge(entries, events, TODAY)
    assert [result.outcome for result in report.results] == [Outcome.FAILED, Outcome.HARNESS_ERROR]
    assert [profile.verdict for profile in report.profiles] == [RunVerdict.NOT_CONFORMANT]
    assert report.exit is Exit.NOT_CONFORMANT


@pytest.mark.parametrize("first", ["t", "u"])
@pytest.mark.parametrize(
    ("cause", "outcome"),
    [("implementation", Outcome.BLOCKED), ("circumstances", Outcome.HARNESS_ERROR)],
)
def test_requirements_blocked_by_the_implementation_are_its_fault_despite_a_harness_error(
    first: str, cause: str, outcome: Outcome
) -> None:
    second = "u" if first == "t" else "t"
    events = [begin({"t": ("AA-001",), "u": ("AA-001",)}), started("t", "AA-001"), started("u", "AA-001")]
    events += [ended(first, "blocked", "why", cause), ended(second, "harness-error", "etcd died"), FAULT, DONE]
    report = model.judge(registry(entry("AA-001")), events, TODAY)
    assert report.results[0].outcome is outcome
    assert report.exit is (Exit.NOT_CONFORMANT if cause == "implementation" else Exit.HARNESS)


@pytest.mark.parametrize("end", [[], [ledger.RunFinished(wall=9.0, interrupted=True, status=2)]])
def test_a_run_without_its_end_is_interrupted(end: list[ledger.AnyEvent]) -> None:
    report = one(started("t", "AA-001"), check("t", "AA-001"), *end)
    assert (only(report), report.exit, report.complete) == (Outcome.NOT_RUN, Exit.INTERRUPTED, False)


@pytest.mark.parametrize(
    ("cause", "word"), [("implementation", RunVerdict.NOT_CONFORMANT), ("circumstances", RunVerdict.UNKNOWN)]
)
def test_the_cause_of_a_block_decides_the_verdict(cause: str, word: RunVerdict) -> None:
    report = one(started("t", "AA-001"), ended("t", "blocked", "why", cause), DONE)
    assert (only(report), report.verdict) == (Outcome.BLOCKED, word)


def test_an_invariant_that_a_test_did_not_reach_is_judged_by_the_others() -> None:
    """Other requirements are not judged in this way, because each of their tests checks something different."""
    entries = registry(entry("AA-001"), entry("INV-001"))
    both = ("AA-001", "INV-001")
    events = [begin({"t": both, "u": both}), started("t", *both), started("u", *both)]
    events += [check("t", id) for id in both] + [ended("t")]
    events += [ended("u", "blocked", "its process cannot be killed", "circumstances"), DONE]
    report = model.judge(entries, events, TODAY)
    assert [result.outcome for result in report.results] == [Outcome.BLOCKED, Outcome.PASSED]


def test_requirements_blocked_by_circumstances_make_a_run_partial() -> None:
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


def selected(*ids: str, outcome: str = "passed", level: Level = Level.MUST) -> model.Report:
    """Return the report of a run that selected these ids."""
    entries = registry(entry("AA-001"), entry("AA-002", level=level), entry("AA-003"))
    head = msgspec.structs.replace(begin({"t": ("AA-001", "AA-002")}), ids=ids)
    events: list[ledger.AnyEvent] = [head, started("t", "AA-001", "AA-002")]
    if outcome == "blocked":
        events += [ended("t", "blocked", "why", "circumstances")]
    else:
        events += [*(check("t", id, outcome) for id in ids), ended("t", outcome)]
    return model.judge(entries, [*events, DONE], TODAY)


@pytest.mark.parametrize(
    ("outcome", "level", "word", "code"),
    [
        ("passed", Level.MUST, RunVerdict.PARTIAL, Exit.CONFORMANT),
        ("passed", Level.SHOULD, RunVerdict.PARTIAL, Exit.CONFORMANT),
        ("failed", Level.SHOULD, RunVerdict.PARTIAL, Exit.PARTIAL),
        ("blocked", Level.SHOULD, RunVerdict.UNKNOWN, Exit.PARTIAL),
        ("blocked", Level.MUST, RunVerdict.UNKNOWN, Exit.PARTIAL),
    ],
)
def test_a_selected_requirement_that_passed_is_a_success(
    outcome: str, level: Level, word: RunVerdict, code: Exit
) -> None:
    report = selected("AA-002", outcome=outcome, level=level)
    assert (report.verdict, report.exit) == (word, code)


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


@pytest.mark.parametrize(
    "selected", [{"ids": ("AA-001",), "only": ("t",)}, {"ids": ("AA-001",)}, {"profiles": ("core",)}]
)
def test_a_broken_invariant_counts_whatever_was_selected(selected: dict[str, tuple[str, ...]]) -> None:
    entries = registry(entry("AA-001"), entry("INV-001", profile="gang"), entry("INV-002", profile="gang"))
    report = model.judge(
        entries,
        [
            msgspec.structs.replace(begin({"t": ("AA-001",)}), **selected),
            started("t", "AA-001"),
            check("t", "INV-001", "failed"),
            check("t", "AA-001"),
            ended("t", "failed"),
            DONE,
        ],
        TODAY,
    )
    assert {r.requirement.id: str(r.outcome) for r in report.results} == {
        "AA-001": "passed",
        "INV-001": "failed",
    }
    assert [profile.name for profile in report.profiles] == ["core"]
    assert (report.counts[Outcome.FAILED], report.exit) == (1, Exit.NOT_CONFORMANT)


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
    assert one(*FAILED, expected=[ledger.ExpectedFailure("AA-001")]).verdict is RunVerdict.EXCEPT_EXPECTED


def test_a_role_that_is_not_played_is_not_judged() -> None:
    entries = registry(entry("AA-001"), entry("BB-001", profile="gang", role="gang-scheduler"))
    events = [begin({"t": ("AA-001", "BB-001")}), started("t", "AA-001", "BB-001")]
    events += [check("t", "AA-001"), check("t", "BB-001", "failed"), ended("t", "failed"), DONE]  # type: ignore[list-item]
    report = model.judge(entries, events, TODAY)
    assert [str(r.outcome) for r in report.results] == ["passed", "not-claimed"]
    assert report.verdict is RunVerdict.CONFORMANT


def test_the_order_of_events_of_different_workers_does_not_matter() -> None:
    events = [begin({"t": ("AA-001",)}), *PASSED]
    entries = registry(entry("AA-001"))
    assert model.judge(entries, events, TODAY) == model.judge(entries, events[::-1], TODAY)


def test_a_ledger_without_a_beginning_is_refused() -> None:
    with pytest.raises(ValueError, match="no run-started"):
        model.judge(registry(), [DONE], TODAY)


LIMIT = Limit("KEP-L02", "minimums before extras are not promised")


def limited(outcome: str, level: Level = Level.MAY) -> model.Report:
    """Return the report of a run with a MUST that passes and a requirement with a known limit."""
    entries = registry(entry("AA-001"), msgspec.structs.replace(entry("AA-002", level=level), limit=LIMIT))
    events = [begin({"t": ("AA-001",), "u": ("AA-002",)}), started("t", "AA-001"), check("t", "AA-001"), ended("t")]
    ending = "passed" if outcome == "passed" else "known-limit"
    return model.judge(
        entries, [*events, started("u", "AA-002"), check("u", "AA-002", outcome), ended("u", ending), DONE], TODAY
    )


@pytest.mark.parametrize("level", [Level.MAY, Level.MUST])
def test_a_known_limit_is_not_a_failure(level: Level) -> None:
    report = limited("failed", level)
    [_, result] = report.results
    assert (result.outcome, result.reason) == (Outcome.KNOWN_LIMIT, "KEP-L02: minimums before extras are not promised")
    assert result.failures and (report.verdict, report.exit) == (RunVerdict.CONFORMANT, Exit.CONFORMANT)
    assert report.profiles[0].counts[Outcome.KNOWN_LIMIT] == 1


def test_a_requirement_with_a_known_limit_can_pass() -> None:
    assert [result.outcome for result in limited("passed").results] == [Outcome.PASSED, Outcome.PASSED]


@pytest.mark.parametrize(
    ("level", "verdict", "exit"), [(Level.MUST, "not-conformant", 1), (Level.SHOULD, "conformant", 0)]
)
def test_a_violated_invariant_gives_its_profile_no_verdict(level: Level, verdict: str, exit: int) -> None:
    """The invariant's profile was not selected, and no other requirement of that profile was judged."""
    entries = registry(
        entry("AA-001"), entry("INV-002", level=level, profile="gang"), entry("GANG-001", profile="gang")
    )
    events = [started("t", "AA-001"), check("t", "AA-001"), check("t", "INV-002", "failed"), ended("t", "failed"), DONE]
    report = model.judge(entries, [begin({"t": ("AA-001",)}, profiles=("core",)), *events], TODAY)
    assert [(profile.name, profile.verdict) for profile in report.profiles] == [("core", "conformant")]
    assert {r.requirement.id: r.outcome for r in report.results} == {"AA-001": "passed", "INV-002": "failed"}
    assert (report.verdict, report.exit) == (verdict, exit)
    assert terminal.verdict_line(report).endswith("(core: 1 passed; violated besides: INV-002 of gang)")
    states = [(case.group, case.state) for case in cases.find_cases(report)]
    assert states == [("core", "passed"), ("gang", "failed" if exit else "skipped")]
    assert [suite.get("name") for suite in ET.fromstring(junit.render(report))] == ["core", "gang"]


def test_an_invariant_that_is_violated_as_expected_is_an_exception_of_the_verdict() -> None:
    entries = registry(entry("AA-001"), entry("INV-002", profile="gang"), entry("GANG-001", profile="gang"))
    events = [started("t", "AA-001"), check("t", "AA-001"), check("t", "INV-002", "failed"), ended("t", "failed"), DONE]
    expected_failure = ledger.ExpectedFailure("INV-002", "issue 7")
    report = model.judge(
        entries, [begin({"t": ("AA-001",)}, profiles=("core",), expected=[expected_failure]), *events], TODAY
    )
    assert (report.verdict, report.exit) == (RunVerdict.EXCEPT_EXPECTED, Exit.CONFORMANT)
    assert terminal.verdict_line(report).endswith("violated besides: INV-002 of gang as expected)")
