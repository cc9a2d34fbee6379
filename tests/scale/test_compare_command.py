"""Tests of the command `grove-conformance scale compare` with result files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance import cli
from conformance.scale import results
from conformance.scale.compare import session
from conformance.scale.compare.sides import MeasuredSide
from tests.scale.sample_results import result


def store_results(folder: Path, ready: float, offset: int) -> str:
    folder.mkdir()
    for number in range(6):
        start_time = f"2026-01-01T00:{2 * number + offset:02}:00+00:00"
        results.write({**result(ready=ready + number / 10), "startedAt": start_time}, folder / f"{number}.json")
    return str(folder)


def compare(tmp_path: Path, *arguments: str) -> int:
    command = ["scale", "compare", "--dir", str(tmp_path / "out"), *arguments]
    return cli.run(lambda: cli.app(command, standalone_mode=False))


def test_results_are_compared_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head = store_results(tmp_path / "a", 20, 0), store_results(tmp_path / "b", 26, 1)
    assert compare(tmp_path, "--base", base, "--head", head) == 0
    assert compare(tmp_path, "--base", base, "--head", head, "--threshold", "10") == 1
    document = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert document["verdict"] == "slower" and document["warnings"] == []
    answer = f"{tmp_path / 'b'} is slower than {tmp_path / 'a'}: deploy/pods-ready 26.25 s instead of 20.25 s"
    assert answer in (tmp_path / "out" / "comparison.md").read_text()
    assert answer in capsys.readouterr().out


def test_runs_that_do_not_alternate_are_compared_with_a_warning(tmp_path: Path) -> None:
    base, head = store_results(tmp_path / "a", 20, 0), store_results(tmp_path / "b", 20, 30)
    assert compare(tmp_path, "--base", base, "--head", head) == 0
    [warning] = json.loads((tmp_path / "out" / "comparison.json").read_text())["warnings"]
    assert "do not alternate" in warning


def test_a_head_is_measured_against_a_stored_base_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = store_results(tmp_path / "a", 20, 0)
    measured_sides: list[str] = []

    def run(side: MeasuredSide, path: Path) -> None:
        measured_sides.append(side.implementation)
        number = len(measured_sides)
        results.write({**result(ready=26), "startedAt": f"2026-02-01T00:{number:02}:00+00:00"}, path)

    monkeypatch.setattr(session, "subprocess_runner", lambda scenario, scheduler: run)
    for _ in range(2):  # the second time, all results already exist
        assert compare(tmp_path, "--base", base, "--head", "reference-plain", "--rounds", "9") == 0
    assert measured_sides == ["reference-plain"] * 6
    document = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert document["verdict"] == "slower" and "do not alternate" in document["warnings"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base", "none.json", "--head", "none.json"], "none.json: no such file"),
        (["--base", "reference", "--head", "none.json"], "the base is measured"),
        (["--base", "reference", "--base", "none.json", "--head", "none.json"], "results and something else"),
        (["--base", "refrence", "--head", "reference"], 'unknown implementation "refrence"'),
        (["--base", "reference", "--base", "reference", "--head", "reference"], "several sides"),
        (["--base", "reference", "--head", "reference", "--scenario", "none"], 'unknown scale scenario "none"'),
        (["--base", "reference", "--head", "reference", "--metric", "deploy/pods-raedy"], "deploy/pods-ready"),
        (["--head", "reference"], "--base"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert compare(tmp_path, *arguments) == 4
    error = capsys.readouterr().err.strip()
    assert message in error and "\n" not in error
