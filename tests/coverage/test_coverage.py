"""Every scenario and every binding row of the specification has a check or a reason, and the page says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import data, specification
from conformance.errors import UsageError
from conformance.suite import coverage, requirement
from conformance.suite.coverage import Reason, Rows, Scenario
from conformance.suite.requirement import Level, Registry, Requirement
from mutants.registry import MUTANTS
from tests.coverage import page


def test_every_scenario_and_every_binding_row_has_a_check_or_a_reason():
    assert coverage.problems(requirement.load(), coverage.scenarios(), coverage.rows()) == []


def test_no_scenario_is_missing():
    known = [story.id for story in coverage.scenarios()]
    assert [id for id in known if id.startswith("OBJ-")] == [f"OBJ-S{number:02}" for number in range(1, 103)]
    assert [id for id in known if id.startswith("GS-")] == [f"GS-S{number:02}" for number in range(1, 53)]
    scaling = [f"CHG-S{number:02}" for number in (*range(1, 28), *range(30, 59), *range(60, 102))]
    assert [id for id in known if id.startswith("CHG-")][: len(scaling)] == scaling
    deletion_and_after = [f"CHG-S{number}" for number in range(102, 134)]
    assert [id for id in known if id in deletion_and_after] == deletion_and_after


def test_the_tests_that_scenarios_name_exist():
    named = {path for story in coverage.scenarios() for path in story.tests}
    assert [path for path in sorted(named) if not (data.PROJECT / path).is_file()] == []


def test_the_page_is_up_to_date():
    assert page.COVERAGE.read_text("utf-8") == page.text(), "run: make docs"


def test_every_caught_defect_has_a_requirement_with_a_mutant():
    """A check that was never seen red catches nothing."""
    proved = {id for mutant in MUTANTS.all().values() for id in mutant.caught_by}
    caught = coverage.caught(requirement.load(), coverage.rows())
    assert [row for row, ids in caught.items() if proved.isdisjoint(ids)] == []


ENTRY = Requirement("AA-001", "core", Level.MUST, "It does.", ("X-1", "X-S1"), "v0", ("operator",))
REGISTRY = Registry({"core": "The core."}, {"AA-001": ENTRY}, {})


def told(stories: list[Scenario], table: Rows) -> list[str]:
    return coverage.problems(REGISTRY, stories, table)


def test_what_is_neither_checked_nor_excused_is_told():
    stories = [Scenario("X-S1", "a", ("AA-001",), "", ()), Scenario("X-S2", "b", (), "", ())]
    table = Rows({"x": {"contract": ("X-1", "X-2"), "defect": ("X-3",)}}, (Reason("r", ("X-3",)),))
    assert told(stories, table) == [
        "X-S2: has neither checks nor a reason",
        "X-2: has neither a check nor a reason",
    ]


def test_what_is_checked_and_excused_or_unknown_is_told():
    stories = [Scenario("X-S1", "a", ("AA-002",), "", ())]
    table = Rows({"x": {"contract": ("X-1",), "defect": ()}}, (Reason("r", ("X-1", "X-9")), Reason("s", ("X-1",))))
    assert told(stories, table) == [
        "X-S1: names AA-002, which is not a requirement",
        "X-1: has two reasons",
        "X-9: has a reason, and is not a binding row",
        "X-1: has a reason, and AA-001 claims it",
        "X-1: has a reason, and AA-001 claims it",
    ]


def test_a_defect_is_caught_by_the_requirements_that_name_it():
    binding = {"x": {"contract": (), "defect": ("X-1", "X-2", "X-3")}}
    table = Rows(binding, (), {"tried": (Reason("r", ("X-3",)),)})
    assert coverage.caught(REGISTRY, table) == {"X-1": ("AA-001",)}
    assert told([Scenario("X-S1", "a", (), "", ())], table) == ["X-2: has neither a check nor a reason"]


def test_a_scenario_is_judged_by_the_requirements_that_name_it():
    assert coverage.checks_of(REGISTRY, Scenario("X-S1", "a", ("AA-009",), "", ())) == ("AA-009", "AA-001")
    assert coverage.checks_of(REGISTRY, Scenario("X-S2", "b", (), "no way", ())) == ()


def test_the_page_tells_checks_mutants_and_reasons():
    stories = [Scenario("X-S1", "a|b", ("AA-001",), "", ()), Scenario("X-S2", "c", (), "no way", ("tests/t.py",))]
    table = Rows({"x": {"contract": ("X-1", "X-2"), "defect": ()}}, (Reason("it is so", ("X-2",)),))
    text = coverage.page(REGISTRY, stories, table, {"AA-001": ["wrong", "bad"]})
    assert "| X-S1 | a\\|b | AA-001 | bad, wrong |  |" in text
    assert "| X-S2 | c |  |  | no way; see `tests/t.py` |" in text
    assert "| x | contract | 2 | 1 | 1 |" in text
    assert "| it is so | X-2 |" in text


def test_a_broken_file_names_file_line_and_field(tmp_path: Path):
    path = tmp_path / "scenarios.yaml"
    head = "apiVersion: conformance.grove.io/v1alpha1\nkind: Scenarios\nscenarios:\n"
    path.write_text(head + "- {id: X-S1, title: something, check: [AA-001]}\n")
    with pytest.raises(UsageError, match=r"scenarios.yaml:4: scenarios\[0\]"):
        coverage.scenarios(path)


def test_no_scenario_and_no_binding_row_of_coherent_updates_is_missing():
    """The universe is the specification itself: rows that are marked `contract`, and all scenarios."""
    rows = {id: row for id, row in specification.load().items() if id.startswith("COH-")}
    binding = {id for id, row in rows.items() if row.file == "coherent.md" and _mark(row).startswith("contract")}
    assert binding - set(coverage.rows().binding["coherent"]["contract"]) == set()
    stories = {id for id in rows if id.startswith("COH-S")}
    assert stories - {story.id for story in coverage.scenarios()} == set()


def _mark(row: specification.Row) -> str:
    return next((text for heading, text in row.cells if heading == "Mark"), "")
