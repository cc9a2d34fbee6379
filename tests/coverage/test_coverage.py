"""Tests that every scenario and every binding row of the specification has a check or a reason, and that
docs/coverage.md is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from conformance import data, specification
from conformance.errors import UsageError
from conformance.lab.gaps import spec_rows
from conformance.specification import Row
from conformance.suite.registry import coverage, requirement
from conformance.suite.registry.coverage import OperatorRun, Reason, Rows, ScenarioCoverage
from conformance.suite.registry.requirement import Level, Registry
from mutants.registry import MUTANTS
from tests.coverage import page, trials
from tests.requirements import entry


def test_every_scenario_and_every_binding_row_has_a_check_or_a_reason():
    assert coverage.problems(requirement.load(), coverage.scenarios(), coverage.rows(), spec_rows.rows()) == []


def test_every_row_in_the_table_of_gaps_is_listed():
    assert sorted(spec_rows.rows().keys() - listed_ids() - {scenario.id for scenario in coverage.scenarios()}) == []


def test_the_tables_of_mutants_and_variants_are_current():
    assert trials.TRUST_PAGE.read_text("utf-8") == trials.render_page(), "run: make docs"


def test_every_scenario_and_every_contract_row_of_the_specification_is_listed():
    assert coverage.missing(specification.load(), coverage.scenarios(), coverage.rows()) == []


def test_every_listed_row_is_in_the_specification():
    scenario_ids = {scenario.id for scenario in coverage.scenarios()}
    assert sorted((listed_ids() | scenario_ids) - specification.load().keys()) == []


def listed_ids() -> set[str]:
    """Return the binding rows."""
    return {id for kinds in coverage.rows().binding.values() for ids in kinds.values() for id in ids}


def test_the_tests_that_scenarios_name_exist():
    named_paths = {path for scenario in coverage.scenarios() for path in scenario.tests}
    assert [path for path in sorted(named_paths) if not (data.PROJECT / path).is_file()] == []


def test_the_page_is_up_to_date():
    assert page.COVERAGE_PAGE.read_text("utf-8") == page.render_page(), "run: make docs"


def test_every_caught_defect_has_a_requirement_with_a_mutant():
    """A check that has never failed may detect nothing."""
    proved_ids = {id for mutant in MUTANTS.all().values() for id in mutant.caught_by}
    caught = coverage.caught(requirement.load(), coverage.rows())
    assert [row for row, ids in caught.items() if proved_ids.isdisjoint(ids)] == []


def test_every_detected_defect_was_seen_on_an_operator_or_has_a_reason():
    table = coverage.rows()
    assert coverage.unseen(coverage.caught(requirement.load(), table), table, page.recorded_runs()) == []


ENTRY = entry(source=("X-1", "X-S1"))
REGISTRY = Registry({"core": "The core."}, {"AA-001": ENTRY}, {})


def find_problems(scenarios: list[ScenarioCoverage], table: Rows) -> list[str]:
    return coverage.problems(REGISTRY, scenarios, table)


def test_rows_with_neither_a_check_nor_a_reason_are_reported():
    scenarios = [ScenarioCoverage("X-S1", "a", ("AA-001",), "", ()), ScenarioCoverage("X-S2", "b", (), "", ())]
    table = Rows({"x": {"contract": ("X-1", "X-2"), "defect": ("X-3",)}}, (Reason("r", ("X-3",)),))
    assert find_problems(scenarios, table) == [
        "X-S2: has neither checks nor a reason",
        "X-2: has neither a check nor a reason",
    ]


def test_scenarios_in_the_table_of_gaps_need_neither_a_check_nor_a_reason():
    scenario, gaps = ScenarioCoverage("X-S2", "b", (), "", ()), {"X-S2": ("four-on-two",)}
    assert coverage.problems(REGISTRY, [scenario], Rows({}, ()), gaps) == []
    text = coverage.page(REGISTRY, [scenario], Rows({}, ()), {}, (), gaps)
    assert "| X-S2 | b |  |  | four-on-two |  |" in text


def test_rows_with_both_a_check_and_a_reason_and_unknown_rows_are_reported():
    scenarios = [ScenarioCoverage("X-S1", "a", ("AA-002",), "", ())]
    table = Rows({"x": {"contract": ("X-1",), "defect": ()}}, (Reason("r", ("X-1", "X-9")), Reason("s", ("X-1",))))
    assert find_problems(scenarios, table) == [
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
    assert find_problems([ScenarioCoverage("X-S1", "a", (), "", ())], table) == [
        "X-2: has neither a check nor a reason"
    ]


def test_a_defect_is_seen_on_operators_that_fail_its_requirements():
    caught = {"X-1": ("AA-001", "AA-002"), "X-2": ("AA-002",), "X-3": ("AA-003",)}
    recorded_runs = [OperatorRun("op 1", frozenset({"AA-001"})), OperatorRun("op 2", frozenset({"AA-001", "AA-002"}))]
    assert coverage.observed(caught, recorded_runs) == {
        "X-1": ["AA-001 (A, B)", "AA-002 (B)"],
        "X-2": ["AA-002 (B)"],
        "X-3": [],
    }
    table = Rows({}, (), {}, (), (Reason("r", ("X-2", "X-4")),))
    assert coverage.unseen(caught, table, recorded_runs) == [
        "X-3: no requirement of it failed, and no reason says why",
        "X-2: has a reason, and AA-002 (B) failed",
        "X-4: has a reason, and is not detected",
    ]


def test_the_page_lists_the_mutants_and_operators_that_show_a_defect():
    table = Rows({"x": {"contract": (), "defect": ("X-1",)}}, (), {}, (), (Reason("never met", ("X-1",)),))
    text = coverage.page(
        REGISTRY, [], table, {"AA-001": ["bad"]}, [OperatorRun("op 1, 2026-11-24", frozenset({"AA-001"}))]
    )
    assert "1 of the 1 were seen on an operator, 1 of them by a MUST" in text
    assert "| A | op 1, 2026-11-24 | 1 |" in text
    assert "| X-1 | AA-001 (decision) | bad | AA-001 (A) |" in text
    assert "| never met | X-1 |" in text
    should_registry = Registry(REGISTRY.profiles, {"AA-001": structs.replace(ENTRY, level=Level.SHOULD)}, {})
    text = coverage.page(
        should_registry, [], table, {"AA-001": ["bad"]}, [OperatorRun("op 1, 2026-11-24", frozenset({"AA-001"}))]
    )
    assert "1 of the 1 were seen on an operator, 0 of them by a MUST" in text


def test_a_scenario_is_judged_by_the_requirements_that_name_it():
    assert coverage.checks_of(REGISTRY, ScenarioCoverage("X-S1", "a", ("AA-009",), "", ())) == ("AA-009", "AA-001")
    assert coverage.checks_of(REGISTRY, ScenarioCoverage("X-S2", "b", (), "no way", ())) == ()


def test_the_page_lists_checks_mutants_and_reasons():
    scenarios = [
        ScenarioCoverage("X-S1", "a|b", ("AA-001",), "", ()),
        ScenarioCoverage("X-S2", "c", (), "no way", ("tests/t.py",)),
    ]
    table = Rows({"x": {"contract": ("X-1", "X-2"), "defect": ()}}, (Reason("it is so", ("X-2",)),))
    text = coverage.page(REGISTRY, scenarios, table, {"AA-001": ["wrong", "bad"]})
    assert "| X-S1 | a\\|b | AA-001 (decision) | bad, wrong |  |  |" in text
    assert "| X-S2 | c |  |  |  | no way; see `tests/t.py` |" in text
    assert "| x | contract | 2 | 1 | 1 | 0 |" in text
    assert "| it is so | X-2 |" in text


def test_an_invalid_file_is_reported_with_file_line_and_field(tmp_path: Path):
    path = tmp_path / "scenarios.yaml"
    header = "apiVersion: conformance.grove.io/v1alpha1\nkind: Scenarios\nscenarios:\n"
    path.write_text(header + "- {id: X-S1, title: something, check: [AA-001]}\n")
    with pytest.raises(UsageError, match=r"scenarios.yaml:4: scenarios\[0\]"):
        coverage.scenarios(path)


def row(id: str, mark: str) -> Row:
    return Row(id, "x.md", 1, (("Fact", "It does."), ("Mark", mark)))


@pytest.mark.parametrize("mark", ["contract", "C", "C ✔", "contract (D2), R", "C/O", "contract, run"])
def test_a_contract_row_or_a_scenario_that_is_not_listed_is_reported(mark: str):
    spec = {"X-1": row("X-1", mark), "X-2": row("X-2", mark), "X-S1": row("X-S1", "open"), "X-S2": row("X-S2", "C")}
    table = Rows({"x": {"contract": ("X-1",), "defect": ()}}, ())
    assert coverage.missing(spec, [ScenarioCoverage("X-S2", "b", ("AA-001",), "", ())], table) == [
        "X-2: is a contract row that is not listed",
        "X-S1: is a scenario that is not listed",
    ]


@pytest.mark.parametrize("mark", ["observed", "**D** DFT-01 ✔", "O; error masking is D", "R", "open, R", ""])
def test_other_rows_need_not_be_listed(mark: str):
    assert coverage.missing({"X-1": row("X-1", mark)}, [], Rows({}, ())) == []


@pytest.mark.parametrize(("id", "kind"), [("KEP-L01", "limit"), ("WL37-B01", "scenario"), ("WL-SH01", "scenario")])
def test_limits_and_instances_must_be_listed(id: str, kind: str):
    assert coverage.missing({id: row(id, "observed")}, [], Rows({}, ())) == [f"{id}: is a {kind} that is not listed"]


def test_a_row_of_a_contract_table_without_marks_must_be_listed():
    spec = {"API-001": Row("API-001", "api.md", 1, (("path", "spec"),))}
    assert coverage.missing(spec, [], Rows({}, ())) == ["API-001: is a contract row that is not listed"]


PENDING_REASON = Reason("not built", ("X-2",))


def test_pending_rows_have_neither_a_check_nor_a_reason():
    scenarios = [
        ScenarioCoverage("X-S3", "a", (), "", (), "not built"),
        ScenarioCoverage("X-S4", "b", (), "why not", (), "not built"),
        ScenarioCoverage("X-S1", "c", (), "", (), "not built"),
    ]
    table = Rows(
        {"x": {"contract": ("X-1", "X-2"), "defect": ()}}, (), {}, (PENDING_REASON, Reason("nor this", ("X-1",)))
    )
    assert find_problems(scenarios, table) == [
        "X-S4: is pending, and has checks or a reason",
        "X-S1: is pending, and has checks or a reason",
        "X-1: has a reason, and AA-001 claims it",
    ]


def test_the_page_counts_pending_rows():
    scenarios = [ScenarioCoverage("X-S3", "a", (), "", (), "not built"), ScenarioCoverage("X-S1", "b", (), "", ())]
    table = Rows({"x": {"contract": ("X-1", "X-2"), "defect": ()}}, (), {}, (PENDING_REASON,))
    text = coverage.page(REGISTRY, scenarios, table, {})
    assert "2 scenarios, 1 of which are pending." in text
    assert "| X-S3 | a |  |  |  | pending: not built |" in text
    assert "| x | contract | 2 | 1 | 0 | 1 |" in text
    assert "1 rows are about what is not built yet." in text
    assert "| not built | X-2 |" in text
