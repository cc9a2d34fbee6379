"""The faultless runs beside the mutants: with which requirements the reference has to pass."""

from __future__ import annotations

from reference_impl.faults import Fault
from reference_impl.faults.prove import Trial, controls


def fault(*caught_by: str) -> Fault:
    return Fault("wrong", "operator", "is wrong", caught_by, lambda: None)


def claims(*faults: Fault) -> list[tuple[str, ...]]:
    made = controls(faults)
    assert {each.kind for each in made} <= {"reference"}
    return [each.ids for each in made]


def test_each_area_has_a_run_with_all_that_its_faults_claim() -> None:
    chosen = fault("UPD-002", "CORE-001"), fault("UPD-001"), fault("CORE-001")
    assert claims(*chosen) == [("CORE-001",), ("UPD-001", "UPD-002")]


def test_invariants_have_a_run_only_where_there_is_nothing_else() -> None:
    assert claims(fault("INV-001", "CORE-001")) == [("CORE-001",)]
    assert claims(fault("INV-002"), fault("INV-001")) == [("INV-001", "INV-002")]


def test_without_faults_there_is_nothing_to_control() -> None:
    assert claims() == []


def test_what_a_fault_blocks_must_be_blocked_and_what_catches_it_failed() -> None:
    wrong = Fault("wrong", "operator", "is wrong", ("AA-001",), lambda: None, ("BB-001",))
    trial = Trial.of_fault(wrong)
    assert {id: trial.right(id) for id in trial.ids} == {"AA-001": "failed", "BB-001": "blocked"}
    assert {id for control in controls([wrong]) for id in control.ids} == {"AA-001", "BB-001"}
