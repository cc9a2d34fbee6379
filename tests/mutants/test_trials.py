"""Tests of trials: the requirements that each trial runs with, the outcome that each requirement must have, and the
result of a run."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from io import StringIO
from pathlib import Path
from threading import Timer

import pytest
from rich.console import Console

from mutants import permit, prove, results, runs
from mutants.registry import MUTANTS, VARIANTS, Mutant, Variant
from mutants.results import Outcome
from mutants.runs import Proof
from mutants.trials import Trial, combined_trials, controls, longest_first, remember


def mutant(*caught_by: str, blocks: tuple[str, ...] = ()) -> Mutant:
    return Mutant("wrong", "operator", "is wrong", lambda: None, caught_by, blocks)


def claims(*mutants: Mutant, runs: int = 4) -> list[tuple[str, ...]]:
    control_trials = controls(mutants, runs)
    assert {trial.kind for trial in control_trials} <= {"reference"}
    return [trial.ids for trial in control_trials]


CHOSEN = mutant("UPD-002", "CORE-001"), mutant("UPD-001"), mutant("CORE-001"), mutant("ADM-001")


def test_an_area_stays_in_one_run_and_the_runs_are_balanced() -> None:
    assert claims(*CHOSEN, runs=4) == [("UPD-001", "UPD-002"), ("ADM-001",), ("CORE-001",)]
    assert claims(*CHOSEN, runs=2) == [("UPD-001", "UPD-002"), ("ADM-001", "CORE-001")]
    assert claims(*CHOSEN, runs=1) == [("ADM-001", "CORE-001", "UPD-001", "UPD-002")]


def test_invariants_have_a_run_only_if_nothing_else_is_judged() -> None:
    assert claims(mutant("INV-001", "CORE-001")) == [("CORE-001",)]
    assert claims(mutant("INV-002"), mutant("INV-001")) == [("INV-001", "INV-002")]


def test_no_mutants_need_no_controls() -> None:
    assert claims() == []


def test_controls_come_first_then_new_trials_then_the_longest(tmp_path: Path) -> None:
    file = tmp_path / "reports" / "mutants.json"
    quick, slow, unknown = (Trial("mutant", name, "", ("AA-001",)) for name in ("quick", "slow", "unknown"))
    control = Trial("reference", "control-1", "", ("AA-001",))
    remember([(quick, 1.0), (control, 0.5)], file)
    remember([(slow, 60.0)], file)
    assert longest_first([quick, slow, control, unknown], file) == [control, unknown, slow, quick]


def test_a_broken_durations_file_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "mutants.json"
    file.write_text('{"mutant qui')
    trial = Trial("mutant", "quick", "", ("AA-001",))
    assert longest_first([trial], file) == [trial]


def test_blocked_requirements_must_be_blocked_and_catching_ones_must_fail() -> None:
    wrong = mutant("AA-001", blocks=("BB-001",))
    trial = Trial.of_mutant(wrong)
    assert {id: trial.right(id) for id in trial.ids} == {"AA-001": "failed", "BB-001": "blocked"}
    assert {id for control in controls([wrong], 4) for id in control.ids} == {"AA-001", "BB-001"}


def test_a_variant_must_pass_and_a_mutant_must_fail() -> None:
    variant = Trial.of_variant(VARIANTS.all()["another-column"])
    assert (variant.kind, variant.right("CRD-002"), variant.ids) == ("variant", "passed", ("CRD-002",))
    assert Trial.of_mutant(MUTANTS.all()["column-missing"]).right("CRD-002") == "failed"


def test_a_variant_of_whole_profiles_may_fail_only_exempt_requirements() -> None:
    variant = Variant(
        "odd", "operator", "is odd", lambda: None, ("AA-001",), profiles=("one", "two"), exempt=("AA-002",)
    )
    trial = Trial.of_variant(variant)
    arguments = runs._arguments(trial, Path("folder"), "config")
    assert arguments[-4:] == ["--profile", "one", "--profile", "two"] and "--id" not in arguments
    outcomes = {
        "AA-001": "passed",
        "AA-002": "failed",
        "AA-003": "blocked",
        "AA-004": "failed",
        "AA-005": "not-claimed",
    }
    entries = [{"id": id, "outcome": outcome} for id, outcome in outcomes.items()]
    assert runs._wrong(trial, entries, 1) == {"AA-003": "blocked", "AA-004": "failed"}
    assert runs._wrong(replace(trial, profiles=()), entries, 1) == {"AA-004": "failed"}


def variant(name: str, *passes: str, conflict: str = "", exempt: tuple[str, ...] = ()) -> Variant:
    return Variant(name, "operator", "differs", lambda: None, passes, exempt=exempt, conflict=conflict)


def test_compatible_variants_are_armed_together() -> None:
    one, two = variant("one", "AA-001"), variant("two", "AA-002", "AA-001", exempt=("AA-003",))
    trial, of_kubernetes = combined_trials(
        [one, two, variant("slow", "AA-009", conflict="it is slow"), variant("k", "WAPI-001")]
    )
    assert (trial.switches, trial.ids, trial.exempt) == (("one", "two"), ("AA-001", "AA-002"), ("AA-003",))
    [whole] = combined_trials([one, variant("two", "AA-002", "AA-005")], whole=True)
    assert whole.ids == ("AA-001", "AA-002", "AA-005")
    assert "variant=one,two" in runs._arguments(trial, Path("folder"), "config")
    assert of_kubernetes.switches == ("k",)


def test_an_exemption_of_one_variant_applies_to_the_combined_run() -> None:
    odd, even = variant("odd", "AA-001", exempt=("AA-002",)), variant("even", "AA-002", "AA-003", "AA-004")
    [trial], [whole] = combined_trials([odd, even]), combined_trials([odd, even], whole=True)
    assert (trial.ids, whole.ids) == (("AA-001", "AA-003"), ("AA-001", "AA-003", "AA-004"))
    entries = [{"id": id, "outcome": "passed"} for id in whole.ids] + [{"id": "AA-002", "outcome": "failed"}]
    assert runs._wrong(whole, entries, 1) == {}


def test_a_combined_run_can_judge_all_requirements() -> None:
    [trial] = combined_trials([variant("one", "AA-001")], whole=True)
    assert not {"--id", "--profile", "--cluster"} & set(runs._arguments(trial, Path("folder"), ""))
    entries = [{"id": "AA-001", "outcome": "passed"}, {"id": "AA-002", "outcome": "blocked"}]
    assert runs._wrong(trial, entries, 0) == {"AA-002": "blocked"}


def test_failures_of_a_combined_run_point_to_variants_that_name_them() -> None:
    variants = [variant("one", "AA-001"), variant("two", "AA-002"), variant("slow", "AA-001", conflict="it is slow")]
    [trial] = combined_trials(variants)
    for wrong, names in ({}, []), ({"AA-002": "failed"}, ["two"]), ({"AA-009": "failed"}, ["one", "two"]):
        proof = Proof(trial, wrong, (), 1.0, "")
        assert [suspect.name for suspect in permit.suspected(proof, variants)] == names


@pytest.mark.parametrize(("level", "code", "right"), [("MUST", 1, True), ("MUST", 6, False), ("SHOULD", 6, True)])
def test_the_exit_code_of_a_mutant_must_match_its_requirements(level: str, code: int, right: bool) -> None:
    entries = [{"id": "AA-001", "level": level, "outcome": "failed"}]
    assert (runs._wrong(KILLED, entries, code) == {}) is right


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
    assert results.summary([Outcome.of(proof)]) == counted


def test_uncalled_replacements_are_read_from_the_records_of_the_run(tmp_path: Path) -> None:
    notes = tmp_path / "calls"
    assert runs._uncalled(KILLED, notes) == ("nothing was replaced",)
    notes.write_text("replaced a.b\nreplaced a.c\ncalled a.c\n")
    assert runs._uncalled(KILLED, notes) == ("a.b",)
    assert runs._uncalled(Trial("reference", "control", "", ()), notes) == ()


@pytest.mark.parametrize(("cores", "gigabytes", "lanes"), [(2, 16, 4), (4, 16, 8), (16, 4, 2), (2, 1, 1)])
def test_cores_and_memory_limit_the_number_of_concurrent_runs(cores: int, gigabytes: int, lanes: int) -> None:
    assert runs.lanes(cores, gigabytes * 2**30) == lanes


@pytest.mark.parametrize("terminal", [False, True])
def test_proofs_are_yielded_and_counted_as_they_complete(terminal: bool) -> None:
    first, second = Future[Proof](), Future[Proof]()
    proof = Proof(KILLED, {}, (), 1.0, "")
    first.set_result(proof)
    output = StringIO()
    console = Console(file=output, force_terminal=terminal, width=80)
    proofs = prove.with_progress([first, second], console, every=0.01)
    assert next(proofs) is proof
    Timer(0.1, second.set_result, [proof]).start()
    assert list(proofs) == [proof]
    assert ("1 of 2 proofs" in output.getvalue()) is not terminal
    assert ("2/2" in output.getvalue()) is terminal
