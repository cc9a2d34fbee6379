"""Tests of `report recover`, which makes the report of a run that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml
from test_document import EVENTS

from conformance import cli
from conformance.errors import Exit
from conformance.report import recovery
from conformance.run.preparation import suite_digest
from conformance.suite.outcomes import ledger_file
from conformance.suite.outcomes.ledger import (
    AnyEvent,
    Check,
    PlannedTest,
    RunFinished,
    RunStarted,
    TestFinished,
    TestStarted,
)

FAILED = Check(wall=4.0, test="t", id="CORE-001", what="w", outcome="failed", expected=1, seen=2)
WRITER = """
import os, sys
from pathlib import Path
from conformance.suite.outcomes.ledger_file import RunLedger
held = RunLedger(Path(sys.argv[1]) / "ledger")
for line in sys.stdin.buffer.read().splitlines():
    held.append_encoded(line)
held._file.write(b'{"event":"check","te')
print("written", flush=True)
os.read(os.open(sys.argv[2], os.O_RDONLY), 1)
"""
"""A process that acts as a run: it writes events into its ledger, then half a line, and then waits."""


def of_run(*events: AnyEvent) -> tuple[RunStarted, *tuple[AnyEvent, ...]]:
    """Return the first events of a run of this suite with two tests, followed by more events."""
    template = next(event for event in EVENTS if isinstance(event, RunStarted))
    tests = (PlannedTest("t", ("CORE-001", "CORE-002")), PlannedTest("u", ("CORE-003",)))
    run_started = msgspec.structs.replace(
        template, wall=1.0, plan=tests, profiles=("core",), suite_digest=suite_digest()
    )
    return run_started, TestStarted(wall=2.0, test="t", ids=("CORE-001", "CORE-002"), worker="gw0"), *events


@pytest.fixture
def killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a run that found a failure and was then killed. The fixture also asserts that a live run is not
    recovered."""
    run, forever = tmp_path / "run", tmp_path / "forever"
    os.mkfifo(forever)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(run), str(forever)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdin is not None and writer.stdout is not None
    with writer:
        writer.stdin.write(b"\n".join(msgspec.json.encode(event) for event in of_run(FAILED)))
        writer.stdin.close()
        try:
            assert writer.stdout.readline() == b"written\n"
            assert call(run) == Exit.USAGE
            assert "the run is still going on" in capsys.readouterr().err
        finally:
            writer.send_signal(signal.SIGKILL)
    return run


def call(run: Path) -> int:
    return cli.run(lambda: cli.app(["report", "recover", str(run)], standalone_mode=False))


def test_a_killed_run_loses_nothing(killed: Path) -> None:
    assert call(killed) == Exit.NOT_CONFORMANT
    verdict = yaml.safe_load((killed / "report.yaml").read_text("utf-8"))["verdict"]
    outcomes = {entry["id"]: (entry["outcome"], entry.get("reason")) for entry in verdict["requirements"]}
    assert (verdict["result"], verdict["complete"]) == ("not-conformant", False)
    assert outcomes["CORE-001"] == ("failed", None)
    assert outcomes["CORE-002"] == outcomes["CORE-003"] == ("not-run", "the run was interrupted")
    assert verdict["harnessErrors"] == [recovery.KILLED_MESSAGE]
    assert all((killed / name).is_file() for name in ("report.txt", "report.html", "junit.xml"))
    assert cli.run(lambda: cli.app(["report", "verify", str(killed)], standalone_mode=False)) == Exit.CONFORMANT


def test_a_run_without_a_failure_was_interrupted(tmp_path: Path) -> None:
    ledger_file.save(tmp_path / "ledger", of_run())
    assert call(tmp_path) == Exit.INTERRUPTED


def test_a_run_that_was_killed_at_its_very_end_has_no_verdict(tmp_path: Path) -> None:
    passed_check = msgspec.structs.replace(FAILED, outcome="passed")
    end = TestFinished(wall=5.0, test="t", outcome="passed", worker="gw0")
    run_started, *rest = of_run(passed_check, end, RunFinished(wall=9.0, interrupted=False, status=0))
    ledger_file.save(
        tmp_path / "ledger", [msgspec.structs.replace(run_started, plan=run_started.plan[:1], ids=("CORE-001",)), *rest]
    )
    assert call(tmp_path) == Exit.HARNESS


def test_runs_that_cannot_be_recovered_are_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path) == Exit.USAGE
    assert "has no ledger/run.jsonl — give the folder of a run, as reports/<run>" in capsys.readouterr().err

    ledger_file.save(tmp_path / "ledger", [])
    assert call(tmp_path) == Exit.USAGE
    assert "the ledger does not have the beginning of the run" in capsys.readouterr().err

    (tmp_path / "report.yaml").touch()
    assert call(tmp_path) == Exit.USAGE
    assert "has its report.yaml already" in capsys.readouterr().err


ENDED = TestFinished(wall=5.0, test="t", outcome="failed", worker="gw0", seconds={"call": 1.5})
SHARD = "1/1000000000"
"""A shard of a run with more shards than `report combine` could list."""


@pytest.mark.parametrize(
    ("written", "changed"),
    [
        (b'"wall":5.0', b'"wall":9223372036854775808'),
        (b'"wall":5.0', b'"wall":-1e308'),
        (b'"at":null', b'"at":1e308'),
        (b'"call":1.5', b'"call":1e308'),
        (b'"shard":""', f'"shard":"{SHARD}"'.encode()),
        (b'"shard":""', b'"shard":"x/y"'),
        (b'"expected_failures":[]', b'"expected_failures":[{"id":"CORE-001","expires":"soon"}]'),
    ],
)
@pytest.mark.parametrize("command", ["recover", "baseline"])
def test_a_value_that_no_run_writes_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: bytes, changed: bytes, command: str
) -> None:
    run_started, *rest = of_run(FAILED, ENDED)
    implementation = msgspec.structs.replace(run_started.implementation, expected_failures=())
    ledger_file.save(tmp_path / "ledger", [msgspec.structs.replace(run_started, implementation=implementation), *rest])
    ledger = tmp_path / "ledger" / ledger_file.FILE
    content = ledger.read_bytes()
    assert written in content
    ledger.write_bytes(content.replace(written, changed))
    assert cli.run(lambda: cli.app(["report", command, str(tmp_path)], standalone_mode=False)) == Exit.USAGE
    assert " is no event: " in capsys.readouterr().err


def test_the_suite_may_have_changed_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_started, *rest = of_run()
    ledger_file.save(tmp_path / "ledger", [msgspec.structs.replace(run_started, suite_digest="sha256:other"), *rest])
    assert call(tmp_path) == Exit.INTERRUPTED
    assert "the suite has changed since that run" in capsys.readouterr().err
