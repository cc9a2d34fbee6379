"""Failures grouped by their cause, and the causes ranked."""

from __future__ import annotations

from test_model import DONE, TODAY, begin, check, ended, entry, registry, started

from conformance.report import causes, model
from conformance.suite import ledger

STATUS = """\
not seen within 60 s: {set} is available
nearest: availableReplicas is {seen} of {wanted}, observedGeneration None of generation 1
last state:
  podcliquesets/{set}: 0 available of {wanted}
"""


def failed(test: str, id: str, what: str, expected: object, seen: object) -> ledger.Check:
    return ledger.Check(wall=3.0, test=test, id=id, what=what, outcome="failed", expected=expected, seen=seen)


def late(test: str, id: str, name: str, wanted: int, seen: int | None = None) -> ledger.Check:
    what = f"{name} is available"
    return failed(test, id, what, what, STATUS.format(set=name, wanted=wanted, seen=seen))


def found(tests: dict[str, tuple[str, ...]], *events: ledger.AnyEvent) -> list[tuple[str, list[str], list[str]]]:
    """Title, failed and held up requirements of each cause."""
    entries = registry(*(entry(id) for id in sorted({id for ids in tests.values() for id in ids})))
    begun = [started(test, *ids) for test, ids in tests.items()]
    report = model.judge(entries, [begin(tests), *begun, *events, DONE], TODAY)
    return [
        (cause.title, [r.requirement.id for r in cause.failed], [r.requirement.id for r in cause.held_up])
        for cause in causes.of(report)
    ]


def test_a_status_that_is_never_written_is_one_cause_and_the_heaviest_comes_first() -> None:
    tests = {"t": ("AA-001", "AA-002"), "u": ("AA-003",), "v": ("AA-004", "AA-005")}
    assert found(
        tests,
        failed("v", "AA-005", "labels", {"a": 1}, {"a": 2}),
        check("v", "AA-004"),
        ended("v", "failed"),
        late("t", "AA-001", "one", 1),
        ended("t", "failed", by="AA-001 failed (one is available)"),
        late("u", "AA-003", "other", 3, 0),
        ended("u", "failed", by="AA-003 failed (other is available)"),
    ) == [
        (
            "availableReplicas is None of 1, observedGeneration None of generation 1",
            ["AA-001", "AA-003"],
            ["AA-002"],
        ),
        ("labels", ["AA-005"], []),
    ]


def test_misses_about_other_objects_are_one_cause_and_other_misses_are_not() -> None:
    seen = [
        "2 of 3 pods of s-0-web are bound; 0 of 1 pods of s-0-sg-1-ld are bound",
        "0 of 4 pods of kept-1-a are bound",
        "no podcliquescalinggroups/s-0-g",
        "no podcliquescalinggroups/other, other-2-g",
        "no services/s-0",
    ]
    tests = {f"t{n}": (f"AA-00{n}",) for n in range(len(seen))}
    events = [
        failed(f"t{n}", f"AA-00{n}", f"what {n}", f"what {n}", f"not seen\nnearest: {unmet}")
        for n, unmet in enumerate(seen)
    ]
    groups = [ids for _, ids, _ in found(tests, *events, *(ended(test, "failed") for test in tests))]
    assert groups == [["AA-000", "AA-001"], ["AA-002", "AA-003"], ["AA-004"]]


def test_a_process_that_died_is_the_cause_of_waits_in_vain() -> None:
    dead = "mine: the operator exited with code 7\npanic: no\n"
    tests = {"t": ("AA-001",), "u": ("AA-002",)}
    waits = [STATUS.format(set="s", wanted=1, seen=0), "not seen within 3 s: x\nnearest: no podcliques/s-0-a"]
    events = [failed(test, id, "x", "x", dead + wait) for (test, (id,)), wait in zip(tests.items(), waits, strict=True)]
    groups = found(tests, *events, *(ended(test, "failed") for test in tests))
    assert groups == [("mine: the operator exited with code 7", ["AA-001", "AA-002"], [])]


def test_ends_of_logs_make_no_causes_of_their_own() -> None:
    tests = {"t": ("AA-001",), "u": ("AA-002",)}
    waits = [f"nothing is bound; its log ends with: cycle {n} | of {n}\nnot seen within 3 s: x" for n in ("a", "b")]
    events = [failed(test, id, "x", "x", wait) for (test, (id,)), wait in zip(tests.items(), waits, strict=True)]
    [(title, ids, _)] = found(tests, *events, *(ended(test, "failed") for test in tests))
    assert (title, ids) == ("nothing is bound; its log ends with: cycle a | of a", ["AA-001", "AA-002"])


def test_each_different_failure_of_a_cause_is_kept_once() -> None:
    both = ("AA-001", "AA-002")
    entries = registry(*map(entry, both))
    events = [begin({"t": both, "u": both}), started("t", *both), started("u", *both)]
    events += [failed(test, id, "x", {"a": 1}, {"a": 2}) for test in ("t", "u") for id in both]  # type: ignore[misc]
    [cause] = causes.of(model.judge(entries, [*events, ended("t", "failed"), ended("u", "failed"), DONE], TODAY))
    assert [failure.test for failure in cause.failures] == cause.tests == ["t", "u"]


def test_the_same_difference_of_other_objects_is_one_cause() -> None:
    right, wrong = {"app": "x", "role": "a"}, {"app": "x"}
    tests = {"t": ("AA-001",), "u": ("AA-002", "AA-003")}
    two = {"s-0-a": right, "s-0-b": right}
    groups = found(
        tests,
        failed("t", "AA-001", "labels of podcliques", two, {**two, "s-0-a": wrong}),
        ended("t", "failed"),
        failed("u", "AA-002", "labels of podcliques", {"v-1-a": right}, {"v-1-a": wrong}),
        failed("u", "AA-003", "labels of podcliques", {"v-1-a": right}, {"v-1-a": {"role": "a"}}),
        ended("u", "failed"),
    )
    assert [ids for _, ids, _ in groups] == [["AA-001", "AA-002"], ["AA-003"]]
