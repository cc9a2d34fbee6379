"""Tests of how failures are grouped by cause, and how causes are ranked."""

from __future__ import annotations

import msgspec
from test_model import DONE, TODAY, begin, check, entry, registry, started
from test_model import ended as ended_test

from conformance.report import causes, defects, model
from conformance.suite.outcomes import ledger
from conformance.suite.registry import requirement
from conformance.suite.registry.requirement import Level, Requirement
from tests import requirements

DESCRIPTION = "cliques that each name has had"
STATUS = """\
not seen within 60 s: {set} is available
nearest: availableReplicas is {current} of {desired}, observedGeneration None of generation 1
last state:
  podcliquesets/{set}: 0 available of {desired}
"""
DEFECTS = ("DF-1", "DF-2", "DF-3")

Tests = dict[str, tuple[str, ...]]


def of(id: str, *source: str, level: Level = Level.MUST) -> Requirement:
    return requirements.entry(id, level, source=source or ("X-1",), violation=f"{id} is violated")


def failed(
    test: str, id: str, description: str, expected: object, actual: object, *, at: tuple[str, int] | None = None
) -> ledger.Check:
    deviation = ledger.Deviation(*at) if at else None
    return ledger.Check(
        wall=3.0,
        test=test,
        id=id,
        what=description,
        outcome="failed",
        expected=expected,
        seen=actual,
        deviation=deviation,
    )


def late_set(test: str, id: str, name: str, desired: int, current: int | None = None) -> ledger.Check:
    description = f"{name} is available"
    return failed(test, id, description, description, STATUS.format(set=name, desired=desired, current=current))


def ended(test: str, outcome: str = "failed", *, by: str = "", scene: str = "") -> ledger.AnyEvent:
    cause = "implementation" if outcome == "blocked" else ""
    return msgspec.structs.replace(ended_test(test, outcome, cause=cause, by=by), scene=scene)


def causes_of(
    tests: Tests,
    *events: ledger.AnyEvent,
    entries: tuple[Requirement, ...] = (),
    known_defects: tuple[str, ...] = DEFECTS,
) -> list[causes.Cause]:
    """Return the causes of a run with these tests and events. A test ends as failed unless the events contain its
    end."""
    requirements = {id: of(id) for ids in tests.values() for id in ids} | {item.id: item for item in entries}
    ends = {event.test for event in events if isinstance(event, ledger.TestFinished)}
    starts = [started(test, *ids) for test, ids in tests.items()]
    closing = [ended(test) for test in tests if test not in ends]
    report = model.judge(registry(*requirements.values()), [begin(tests), *starts, *events, *closing, DONE], TODAY)
    return causes.find_causes(report, known_defects)


def groups(all_causes: list[causes.Cause]) -> list[list[str]]:
    """Return the failed requirements of each cause."""
    return sorted([result.requirement.id for result in cause.failed] for cause in all_causes)


def test_a_requirement_has_one_cause_however_many_checks_fail_in_however_many_tests() -> None:
    tests = {f"t{number}": ("AA-001",) for number in range(19)}
    checks = [failed(test, "AA-001", chr(97 + number) * 3, "a", "b") for number, test in enumerate(tests)]
    [cause] = causes_of(tests, *checks)
    assert len(cause.failures) == len(cause.tests) == 19


def test_texts_that_are_alike_join_nothing() -> None:
    tests = {f"t{number}": (f"AA-00{number}",) for number in range(4)}
    checks = [
        failed("t0", "AA-000", DESCRIPTION, {"strict-0-a": 2}, {"strict-0-a": 5}),
        failed("t1", "AA-001", DESCRIPTION, {"torn-0-a": 2}, {"torn-0-a": 5}),
        failed("t2", "AA-002", "lastErrors", "lastErrors", "not seen within 60 s: x\nnearest: no errors of one"),
        failed("t3", "AA-003", "lastErrors", "lastErrors", "not seen within 60 s: x\nnearest: no errors of other"),
    ]
    ends = [ended(test, scene="scene") for test in tests]
    assert groups(causes_of(tests, *checks, *ends)) == [["AA-000"], ["AA-001"], ["AA-002"], ["AA-003"]]


def test_requirements_that_rest_on_one_defect_have_one_cause() -> None:
    entries = (of("AA-001", "X-1", "DF-1"), of("AA-002", "DF-1"), of("AA-003", "X-1"))
    tests = {"t": ("AA-001",), "u": ("AA-002",), "v": ("AA-003",)}
    checks = [failed(test, ids[0], f"what of {test}", 1, test) for test, ids in tests.items()]
    all_causes = causes_of(tests, *checks, entries=entries)
    assert groups(all_causes) == [["AA-001", "AA-002"], ["AA-003"]]  # the contract row X-1 does not join causes
    assert [cause.defects for cause in all_causes] == [("DF-1",), ()]


def test_a_defect_that_the_run_contradicts_joins_nothing() -> None:
    entries = tuple(of(f"AA-00{number}", "DF-1") for number in range(4))
    tests = {f"t{number}": (f"AA-00{number}",) for number in range(4)}
    passing_events = [event for t in ("t2", "t3") for event in (check(t, *tests[t]), ended(t, "passed"))]
    all_causes = causes_of(
        tests, failed("t0", "AA-000", "w", 1, 2), failed("t1", "AA-001", "x", 1, 2), *passing_events, entries=entries
    )
    assert groups(all_causes) == [["AA-000"], ["AA-001"]]


def test_a_requirement_on_several_defects_does_not_join_those_of_each() -> None:
    entries = (
        of("AA-001", "DF-1"),
        of("AA-002", "DF-1"),
        of("AA-003", "DF-1", "DF-2"),
        of("AA-004", "DF-2"),
        of("AA-005", "DF-2", "DF-3"),
    )
    tests = {item.id: (item.id,) for item in entries}
    all_causes = causes_of(tests, *(failed(id, id, id, 1, 2) for id in tests), entries=entries)
    assert groups(all_causes) == [["AA-001", "AA-002", "AA-003"], ["AA-004", "AA-005"]]
    assert [cause.defects for cause in all_causes] == [("DF-1", "DF-2"), ("DF-2", "DF-3")]


def test_failures_that_start_at_one_record_have_one_cause() -> None:
    tests = {"t": ("AA-001",), "u": ("AA-002",), "v": ("AA-003",), "w": ("AA-004",)}
    checks = [
        failed("t", "AA-001", "gates", "held", "gone", at=("pods/a", 7)),
        failed("u", "AA-002", "bound pods", 0, 1, at=("pods/a", 7)),
        failed("v", "AA-003", "order", "a b", "b a", at=("pods/b", 5)),
        failed("v", "AA-003", "count", 1, 2, at=("pods/a", 7)),  # a consequence
        failed("w", "AA-004", "gates again", "held", "gone", at=("pods/a", 7)),
    ]
    ends = [ended(test, scene="scene") for test in ("t", "u", "v")] + [ended("w", scene="other scene")]
    assert groups(causes_of(tests, *checks, *ends)) == [["AA-001", "AA-002"], ["AA-003"], ["AA-004"]]


def test_one_check_of_several_requirements_is_one_cause() -> None:
    tests = {"t": ("AA-001", "AA-002"), "u": ("AA-003",), "v": ("AA-004",)}
    wait = STATUS.format(set="s", desired=1, current=0)
    checks = [failed(test, id, "s is available", "s is available", wait) for test, ids in tests.items() for id in ids]
    ends = [ended("t"), ended("u", scene="scene"), ended("v", scene="scene")]
    assert groups(causes_of(tests, *checks, *ends)) == [["AA-001", "AA-002"], ["AA-003", "AA-004"]]


def test_a_process_that_died_is_the_cause_of_timeouts() -> None:
    dead = "mine: the operator exited with code 7\npanic: no\n"
    tests = {"t": ("AA-001",), "u": ("AA-002",)}
    waits = [STATUS.format(set="s", desired=1, current=0), "not seen within 3 s: x\nnearest: no podcliques/s-0-a"]
    checks = [
        failed(test, ids[0], test, test, dead + wait) for (test, ids), wait in zip(tests.items(), waits, strict=True)
    ]
    [cause] = causes_of(tests, *checks)
    assert (cause.title, groups([cause])) == ("mine: the operator exited with code 7", [["AA-001", "AA-002"]])


def test_removed_webhooks_are_one_cause_of_all_that_fails_without_them() -> None:
    removal = "the ValidatingWebhookConfiguration a was removed by the user mine"
    tests = {test: (f"AA-00{number}",) for number, test in enumerate("tuvw")}
    checks = [failed(test, ids[0], f"what of {test}", 1, test) for test, ids in tests.items()]
    ends = [msgspec.structs.replace(ended(test), removed="" if test == "t" else removal) for test in tests]
    all_causes = causes_of(tests, *checks, *ends)
    assert groups(all_causes) == [["AA-000"], ["AA-001", "AA-002", "AA-003"]]
    assert all_causes[0].title == removal


def test_a_died_process_blocks_requirements_of_other_tests() -> None:
    dead = "mine: the operator exited with code 7"
    tests = {"t": ("AA-001",), "u": ("AA-002",), "v": ("AA-003",)}
    reason = f'the scene ended in waiting for "pods": {dead}'
    blocked = [msgspec.structs.replace(ended(test, "blocked", by="pods", scene=test), reason=reason) for test in "uv"]
    unrelated_block = msgspec.structs.replace(blocked[1], reason="a set is accepted: refused")
    [cause] = causes_of(
        tests, failed("t", "AA-001", "w", "w", f"{dead}\nnot seen within 3 s: w"), blocked[0], unrelated_block
    )
    assert [result.requirement.id for result in cause.held_up] == ["AA-002"]


def test_ends_of_logs_are_not_separate_causes() -> None:
    tests = {"t": ("AA-001",), "u": ("AA-002",)}
    waits = [f"nothing is bound; its log ends with: cycle {n} | of {n}\nnot seen within 3 s: x" for n in ("a", "b")]
    [cause] = causes_of(
        tests, *(failed(t, i, t, t, wait) for (t, (i,)), wait in zip(tests.items(), waits, strict=True))
    )
    assert cause.title == "nothing is bound; its log ends with: cycle a | of a"


def test_causes_that_block_the_most_requirements_come_first() -> None:
    tests = {"t": ("AA-001", "AA-002"), "u": ("AA-003",)}
    all_causes = causes_of(
        tests,
        failed("u", "AA-003", "labels", {"a": 1}, {"a": 2}),
        late_set("t", "AA-001", "one", 1),
        ended("t", by="AA-001 failed (one is available)"),
    )
    assert [(groups([c]), [r.requirement.id for r in c.held_up]) for c in all_causes] == [
        ([["AA-001"]], ["AA-002"]),
        ([["AA-003"]], []),
    ]


def test_a_step_that_is_not_reached_blocks_tests_of_later_steps() -> None:
    tests = {"t": ("AA-001",), "u": ("AA-002",)}
    blocked = ended("u", "blocked", by="one is available", scene="scene")
    [cause] = causes_of(tests, late_set("t", "AA-001", "one", 1), ended("t", scene="scene"), blocked)
    assert [result.requirement.id for result in cause.held_up] == ["AA-002"]


def test_the_title_prefers_the_failure_of_a_must_to_an_invariant_or_should() -> None:
    entries = (of("AA-001", "DF-1", level=Level.SHOULD), of("AA-002", "DF-1"), of("INV-001", "DF-1"))
    tests = {item.id: (item.id,) for item in entries}
    [cause] = causes_of(tests, *(failed(id, id, id, 1, 2) for id in tests), entries=entries)
    assert cause.title == "AA-002 is violated"
    entries = (of("LOAD-001", "DF-1"), of("TMPL-001", "DF-1"))
    tests = {item.id: (item.id,) for item in entries}
    [cause] = causes_of(tests, *(failed(id, id, id, 1, 2) for id in tests), entries=entries)
    assert cause.title == "TMPL-001 is violated"
    entries = (of("AA-008", "DF-3", "X-1", "DF-1"),)
    [cause] = causes_of({"t": ("AA-008",)}, failed("t", "AA-008", "w", 1, 2), entries=entries)
    assert cause.defects == ("DF-3", "DF-1")  # in the order in which the requirement cites them
    [cause] = causes_of({"t": ("AA-009",)}, failed("t", "AA-009", "w", 1, 2), entries=(entry("AA-009"),))
    assert cause.title == "Text of AA-009."


def test_each_different_failure_of_a_cause_is_kept_once() -> None:
    both = ("AA-001", "AA-002")
    entries = tuple(of(id, "DF-1") for id in both)
    checks = [failed(test, id, "x", {"a": 1}, {"a": 2}) for test in ("t", "u") for id in both]
    [cause] = causes_of({"t": both, "u": both}, *checks, entries=entries)
    assert [failure.test for failure in cause.failures] == cause.tests == ["t", "u"]


APART = ("TERM-004 TERM-011 TERM-021", "RES-054 RES-091 RES-093", "UPD-015 UPD-016", "LIFE-010 TERM-020")
TOGETHER = (
    "NODE-001 NODE-002 NODE-003 TERM-014",
    "UPD-042 UPD-043",
    "CORE-016 CORE-027 CORE-041 GANG-008",
    "TMPL-001 TMPL-002 TMPL-009 TMPL-012",
    "SCALE-003 SCALE-004",
    "RES-050 START-009",
    "CORE-028 TERM-004 TERM-005",
)


def test_requirements_of_the_registry_are_grouped_by_upstreams_defects() -> None:
    """The requirements failed on upstream's operator because of defects whose cause is known."""
    real = requirement.load()
    ids = sorted({id for group in APART + TOGETHER for id in group.split()})
    tests: Tests = {id: (id,) for id in ids}
    entries = registry(
        *(msgspec.structs.replace(real.requirements[id], profile="core", roles=("operator",)) for id in ids)
    )
    events = [event for id in ids for event in (started(id, id), failed(id, id, DESCRIPTION, 2, 3), ended(id))]
    report = model.judge(entries, [begin(tests), *events, DONE], TODAY)
    grouped = [
        {result.requirement.id for result in cause.failed} for cause in causes.find_causes(report, defects.rows())
    ]
    cause_of = {id: number for number, group in enumerate(grouped) for id in group}
    assert {group: len({cause_of[id] for id in group.split()}) for group in TOGETHER} == dict.fromkeys(TOGETHER, 1)
    assert {group: len({cause_of[id] for id in group.split()}) for group in APART} == {
        group: len(group.split()) for group in APART
    }
