"""Trials: with which requirements each runs, which outcome each of them must have, and what the run has shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants import prove
from mutants.prove import Proof, Trial, controls
from mutants.registry import MUTANTS, VARIANTS, Mutant


def mutant(*caught_by: str, blocks: tuple[str, ...] = ()) -> Mutant:
    return Mutant("wrong", "operator", "is wrong", lambda: None, caught_by, blocks)


def claims(*mutants: Mutant) -> list[tuple[str, ...]]:
    made = controls(mutants)
    assert {each.kind for each in made} <= {"reference"}
    return [each.ids for each in made]


def test_each_area_has_a_run_with_all_that_its_mutants_claim() -> None:
    chosen = mutant("UPD-002", "CORE-001"), mutant("UPD-001"), mutant("CORE-001")
    assert claims(*chosen) == [("CORE-001",), ("UPD-001", "UPD-002")]


def test_invariants_have_a_run_only_where_there_is_nothing_else() -> None:
    assert claims(mutant("INV-001", "CORE-001")) == [("CORE-001",)]
    assert claims(mutant("INV-002"), mutant("INV-001")) == [("INV-001", "INV-002")]


def test_without_mutants_there_is_nothing_to_control() -> None:
    assert claims() == []


def test_what_a_mutant_blocks_must_be_blocked_and_what_catches_it_failed() -> None:
    wrong = mutant("AA-001", blocks=("BB-001",))
    trial = Trial.of_mutant(wrong)
    assert {id: trial.right(id) for id in trial.ids} == {"AA-001": "failed", "BB-001": "blocked"}
    assert {id for control in controls([wrong]) for id in control.ids} == {"AA-001", "BB-001"}


def test_a_variant_must_pass_and_a_mutant_must_fail() -> None:
    variant = Trial.of_variant(VARIANTS.all()["another-column"])
    assert (variant.kind, variant.right("CRD-002"), variant.ids) == ("variant", "passed", ("CRD-002",))
    assert Trial.of_mutant(MUTANTS.all()["column-missing"]).right("CRD-002") == "failed"


KILLED = Trial.of_mutant(mutant("AA-001"))


@pytest.mark.parametrize(
    ("wrong", "uncalled", "word", "counted"),
    [
        ({}, (), "killed", "1 killed, 0 survived; 0 of 0 variants rejected"),
        ({"AA-001": "passed"}, (), "SURVIVED", "0 killed, 1 survived; 0 of 0 variants rejected"),
        ({}, ("a.b",), "NOT CALLED", "0 killed, 0 survived; 0 of 0 variants rejected; 1 not called"),
        ({"AA-001": "passed"}, ("a.b",), "NOT CALLED", "0 killed, 0 survived; 0 of 0 variants rejected; 1 not called"),
    ],
)
def test_a_mutant_that_was_not_called_is_neither_killed_nor_a_survivor(wrong, uncalled, word, counted) -> None:
    proof = Proof(KILLED, wrong, uncalled, 1.0, "")
    assert (proof.word, proof.right) == (word, word == "killed")
    assert prove.summary([proof]) == counted


def test_replacements_that_were_not_called_are_read_from_the_notes_of_the_run(tmp_path: Path) -> None:
    notes = tmp_path / "calls"
    assert prove._uncalled(KILLED, notes) == ("nothing was replaced",)
    notes.write_text("replaced a.b\nreplaced a.c\ncalled a.c\n")
    assert prove._uncalled(KILLED, notes) == ("a.b",)
    assert prove._uncalled(Trial("reference", "control", "", ()), notes) == ()
