"""Tests of the result files of `make mutants`, which are written while a shard runs, continued after a kill, and
combined into one result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from mutants import combine, prove, results, runs, trials
from mutants.registry import MUTANTS, Mutant
from mutants.results import Outcome, Results, UnreadableError
from mutants.runs import Proof
from mutants.trials import Trial

CODE = f"sha256:{'0' * 64}"
KILLED = Outcome("mutant", "wrong", ("AA-001",), "killed", 12.3)
SURVIVED = replace(KILLED, name="unseen", outcome="SURVIVED", reason="AA-001: passed")
CONTROL = Outcome("reference", "control-1", ("AA-001",), "passed", 20.0)
STOPPED = replace(KILLED, outcome=results.NO_VERDICT, reason="exit code: 3, not 1")


def mutants(*names: str) -> dict[str, Mutant]:
    return {name: Mutant(name, "operator", "is wrong", lambda: None, ("AA-001",)) for name in names}


def trial(outcome: Outcome) -> Trial:
    return Trial("mutant", outcome.name, "", outcome.ids)


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    written = Results(CODE, [KILLED, SURVIVED, replace(CONTROL, name='a "name": {odd}')])
    written.write(tmp_path / "deep" / "shard-1-of-2.yaml")
    assert results.read(tmp_path / "deep" / "shard-1-of-2.yaml") == written
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["shard-1-of-2.yaml"]


def test_an_empty_result_file_can_be_read(tmp_path: Path) -> None:
    Results(CODE).write(tmp_path / "none.yaml")
    assert results.read(tmp_path / "none.yaml") == Results(CODE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "is not YAML"),
        ("[]", "is no result of mutants"),
        (f"apiVersion: x\nkind: MutantResults\ncode: {CODE}\noutcomes: []\n", "apiVersion"),
    ],
)
def test_an_invalid_result_file_is_rejected_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    with pytest.raises(UnreadableError) as refused:
        results.read(tmp_path / "odd.yaml")
    assert reason in str(refused.value) and "\n" not in str(refused.value) and "odd.yaml" in str(refused.value)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot be read"):
        results.read(tmp_path / "none.yaml")


def test_only_trials_without_a_verdict_run_again() -> None:
    stored = Results(CODE, [STOPPED, SURVIVED])
    assert stored.of(trial(STOPPED)) is None
    assert stored.of(trial(SURVIVED)) == SURVIVED
    stored.add(KILLED)
    assert stored.outcomes == [SURVIVED, KILLED]


def test_controls_with_other_requirements_differ() -> None:
    stored = Results(CODE, [CONTROL])
    assert stored.of(Trial("reference", "control-1", "", ("AA-001",))) == CONTROL
    assert stored.of(Trial("reference", "control-1", "", ("AA-001", "BB-001"))) is None


def test_only_code_affects_the_digest(tmp_path: Path) -> None:
    (tmp_path / "mutants" / "__pycache__").mkdir(parents=True)
    (tmp_path / "mutants" / "one.py").write_text("x = 1")
    before = results.code.__wrapped__(tmp_path)
    (tmp_path / "mutants" / "__pycache__" / "one.pyc").write_text("cached")
    (tmp_path / "README.md").write_text("a document")
    assert results.code.__wrapped__(tmp_path) == before
    (tmp_path / "mutants" / "one.py").write_text("x = 2")
    assert results.code.__wrapped__(tmp_path) != before


@pytest.mark.parametrize(
    ("outcomes", "wrong"),
    [
        ([KILLED, CONTROL], []),
        ([CONTROL], ["missing: wrong"]),
        ([KILLED], ["not judged without a mutant: AA-001"]),
        ([KILLED, replace(CONTROL, ids=("BB-001",))], ["not judged without a mutant: AA-001"]),
        ([SURVIVED, KILLED, CONTROL], ["SURVIVED unseen: AA-001: passed"]),
        ([replace(KILLED, outcome="SURVIVED", reason="x"), KILLED, CONTROL], ["SURVIVED wrong: x"]),
        ([STOPPED, CONTROL], ["NO VERDICT wrong: exit code: 3, not 1"]),
        ([STOPPED, KILLED, CONTROL], []),
        (
            [KILLED, replace(CONTROL, outcome="FAILED", reason="AA-001: failed")],
            ["FAILED control-1: AA-001: failed", "not judged without a mutant: AA-001"],
        ),
    ],
)
def test_every_mutant_must_be_killed_and_the_reference_must_pass(outcomes: list[Outcome], wrong: list[str]) -> None:
    assert list(combine.problems(combine.without_repeats(outcomes), mutants("wrong"))) == wrong


def test_invariants_are_judged_in_every_control() -> None:
    mutants_by_name = {"wrong": Mutant("wrong", "operator", "is wrong", lambda: None, ("INV-001", "AA-001"))}
    assert list(combine.problems([KILLED, CONTROL], mutants_by_name)) == []


def test_shards_of_other_code_are_not_combined() -> None:
    files = {Path("one.yaml"): Results(CODE), Path("two.yaml"): Results("sha256:another")}
    [line] = combine.foreign(files, CODE)
    assert line.startswith("two.yaml: was made with other code")


def combined(*arguments: object) -> Result:
    from typer import Typer

    app = Typer()
    app.command()(combine.main)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_shards_are_combined_into_one_result_and_one_file(tmp_path: Path) -> None:
    """Two shards together have every mutant of this project, and the controls that a run of each shard would have."""
    for number in (1, 2):
        chosen = list(MUTANTS.all().values())[number - 1 :: 2]
        controls = [control for bench in trials.BENCHES for control in trials.controls(of(chosen, bench), 4)]
        proofs = [Proof(claimed, {}, (), 1.0, "") for claimed in [*map(Trial.of_mutant, chosen), *controls]]
        Results(results.code(), [Outcome.of(proof) for proof in proofs]).write(tmp_path / f"shard-{number}-of-2.yaml")
    done = combined(tmp_path, "--to", tmp_path / "all.yaml")
    assert done.exit_code == 0, done.output
    assert f"{len(MUTANTS.all())} killed, 0 survived" in done.output
    assert combined(tmp_path / "all.yaml").exit_code == 0
    half = combined(tmp_path / "shard-1-of-2.yaml")
    assert half.exit_code == 1 and half.output.count("missing: ") == len(MUTANTS.all()) // 2


def of(chosen: Sequence[Mutant], bench: trials.Bench) -> list[Mutant]:
    return [mutant for mutant in chosen if trials.bench(mutant.caught_by) is bench]


def _trials(file: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return the trials of a result file. Controls on two benches have the same name but different requirements."""
    return [(outcome.name, outcome.ids) for outcome in results.read(file).outcomes]


def test_a_wrong_path_is_reported_in_one_line(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.yaml", "cannot be read"), (tmp_path, "no result files")):
        done = combined(path)
        assert done.exit_code == 2 and reason in done.output


def test_a_killed_shard_continues_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[str, tuple[str, ...]]] = []

    class Killed(BaseException):
        pass

    def killed_at(count: int):
        def prove_(pending, parallel, bench, keep):  # type: ignore[no-untyped-def]
            for current in pending:
                if len(played) == count:
                    raise Killed
                played.append((current.name, current.ids))
                keep(Proof(current, {}, (), 1.0, ""))
            return [Proof(current, {}, (), 1.0, "") for current in pending]

        return prove_

    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(prove, "prove", killed_at(3))
    with pytest.raises(Killed):
        prove.main(shard="1/90", parallel=1)
    [file] = tmp_path.iterdir()
    assert file.name == "shard-1-of-90.yaml" and _trials(file) == played
    monkeypatch.setattr(prove, "prove", killed_at(-1))
    with pytest.raises(SystemExit) as ended:
        prove.main(shard="1/90", parallel=1)
    assert ended.value.code == 0
    assert len(set(played)) == len(played) == len(_trials(file))
    monkeypatch.setattr(results, "code", lambda: CODE)  # as if the code had changed
    with pytest.raises(SystemExit):
        prove.main(shard="1/90", parallel=1)
    assert len(played) == 2 * len(results.read(file).outcomes)


@pytest.mark.parametrize(("code", "judged"), [(1, True), (6, True), (0, True), (3, False), (2, False), (None, False)])
def test_a_run_that_ends_without_a_verdict_proves_nothing(code: int | None, judged: bool) -> None:
    assert (code not in runs.NO_VERDICT) is judged
    proof = Proof(trial(KILLED), {}, (), 1.0, "", judged=judged)
    assert (proof.word, proof.right) == (("killed", True) if judged else ("NO VERDICT", False))
