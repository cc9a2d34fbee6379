"""Which checks a whole test makes: written from runs, and complete."""

from __future__ import annotations

from pathlib import Path

from conformance.suite import checklist, ledger


def run_of(*checks: tuple[str, str], outcome: str = "passed", test: str = "t.py::t") -> list[ledger.AnyEvent]:
    events: list[ledger.AnyEvent] = [ledger.Check(test=test, id=id, what=what, outcome="passed") for id, what in checks]
    return [*events, ledger.TestFinished(test=test, outcome=outcome, worker="gw0")]  # type: ignore[arg-type]


def test_the_checks_of_a_run_are_those_of_tests_that_passed() -> None:
    events = run_of(("AA-001", "a"), ("AA-002", "b"), ("AA-001", "c"), ("AA-001", "a"), ("INV-001", "rule"))
    events += run_of(("AA-001", "a"), outcome="failed", test="t.py::broken")
    assert checklist.of_run(events) == {"t.py::t": {"AA-001": {"a": 2, "c": 1}, "AA-002": {"b": 1}}}


def test_a_run_of_some_requirements_says_nothing_of_the_others() -> None:
    old = {"t.py::t": {"AA-001": {"a": 1}, "AA-002": {"b": 1}}, "t.py::gone": {"AA-001": {"a": 1}}}
    new = checklist.of_run(run_of(("AA-002", "c"), ("AA-003", "d")))
    declared = {"t.py::t": ["AA-001", "AA-002"]}
    assert checklist.merged(old, new, declared) == {"t.py::t": {"AA-001": {"a": 1}, "AA-002": {"c": 1}}}


def test_what_differs_from_run_to_run_is_no_part_of_a_name() -> None:
    first, second = "variables of s-0-web-x7k2m/main after 1.5 s", "variables of s-0-web-qqw9z/main after 12 s"
    assert checklist.stable(first) == checklist.stable(second) == "variables of s-#-web-*/main after # s"


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    found = {"t.py::t[x]": {"AA-001": {"it's a: “b” #": 2, "no": 1}}}
    (tmp_path / "list.yaml").write_text(checklist.render(found))
    assert checklist.load(tmp_path / "list.yaml") == found


def test_runs_that_differ_are_told_by_test_and_requirement() -> None:
    one = {"t": {"AA-001": {"a": 1}, "AA-002": {"b": 1}}}
    assert checklist.differing(one, {"t": {"AA-001": {"a": 1}, "AA-002": {"b": 2}}, "u": {"AA-003": {}}}) == [
        "t: AA-002",
        "u: AA-003",
    ]


def test_the_list_is_as_the_command_writes_it() -> None:
    """That it is complete is what CI asks of its own run: `grove-conformance checklist --check`."""
    known = checklist.load()
    assert known and checklist.FILE.read_text("utf-8") == checklist.render(known)
