"""Tests that tests of an earlier run that did not pass are run again, according to the ledger of that run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.run import rerun
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.settings import RunSettings

IMPLEMENTATION = ledger.Implementation(name="mine", version="1", roles=("operator",), features=(), digest="")


def run_started(*tests: str) -> ledger.RunStarted:
    plan = tuple(ledger.PlannedTest(test, ("CORE-001",)) for test in tests)
    return ledger.RunStarted(
        run="r1",
        suite_version="0",
        suite_digest="",
        implementation=IMPLEMENTATION,
        profiles=(),
        ids=(),
        plan=plan,
        workers=1,
        time_scale=1.0,
        seed=7,
    )


def finished_test(test: str, outcome: Any, **fields: Any) -> ledger.TestFinished:
    return ledger.TestFinished(test=test, outcome=outcome, worker="gw0", **fields)


def failed_check(test: str, id: str = "CORE-001") -> ledger.Check:
    return ledger.Check(test=test, id=id, what="it holds", outcome="failed")


@pytest.mark.parametrize(
    ("events", "repeated"),
    [
        ([finished_test("t", "passed")], False),
        ([failed_check("t"), finished_test("t", "failed")], True),
        ([failed_check("t", "CORE-002"), finished_test("t", "failed")], False),
        ([failed_check("t", "CORE-002"), failed_check("t"), finished_test("t", "failed")], True),
        ([finished_test("t", "known-limit")], False),
        ([finished_test("t", "blocked", cause="implementation")], True),
        ([finished_test("t", "blocked", cause="circumstances")], False),
        ([finished_test("t", "harness-error")], True),
        ([finished_test("t", "interrupted")], True),
        ([], True),
    ],
)
def test_tests_that_did_not_pass_are_run_again_unless_that_was_expected(
    events: list[ledger.AnyEvent], repeated: bool
) -> None:
    assert rerun.find_unpassed_tests([run_started("t"), *events], frozenset({"CORE-002"})) == (
        ("t",) if repeated else ()
    )


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A run in which a.py::t passed and a.py::u failed, and which was killed in a.py::v."""
    folder = tmp_path / "reports" / "r1"
    settings = RunSettings(
        run="r1",
        directory=str(folder),
        implementation="mine.yaml",
        profiles=("core",),
        seed=7,
        shard="1/2",
        part=("x",),
    )
    settings.save()
    with RunLedger(settings.ledger) as run_ledger:
        for event in (
            run_started("a.py::t", "a.py::u", "a.py::v"),
            finished_test("a.py::t", "passed"),
            failed_check("a.py::u"),
        ):
            run_ledger.write(event)
        run_ledger.write(finished_test("a.py::u", "failed"))
    with (settings.ledger / "run.jsonl").open("a") as file:
        file.write('{"event":"test-fini')
    return folder


@pytest.mark.parametrize("named", ["reports/r1", "r1"])
def test_a_repeated_run_has_the_settings_of_the_earlier_run(
    earlier: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = rerun.settings_of(named, Path("reports"))
    assert settings.only == ("a.py::u", "a.py::v")
    assert (settings.implementation, settings.profiles, settings.seed) == ("mine.yaml", ("core",), 7)
    assert not settings.shard and not settings.part, "the tests say it all"


def test_a_run_that_does_not_exist_is_reported(earlier: Path) -> None:
    with pytest.raises(UsageError, match="--rerun-failed: r2: no such run — give the folder of a run, or the id of"):
        rerun.settings_of("r2", earlier.parent)


def test_settings_that_cannot_be_read_are_reported(earlier: Path) -> None:
    (earlier / "run.json").write_text("{")
    with pytest.raises(UsageError, match=r"run\.json cannot be read: .* — give a run of this version of the suite"):
        rerun.settings_of("r1", earlier.parent)


def test_a_run_in_which_everything_passed_is_reported(earlier: Path) -> None:
    text = (earlier / "ledger" / "run.jsonl").read_text()
    (earlier / "ledger" / "run.jsonl").write_text(text.splitlines(keepends=True)[1])
    with pytest.raises(UsageError, match=r"nothing is left to run: every test of .* has passed"):
        rerun.settings_of("r1", earlier.parent)
