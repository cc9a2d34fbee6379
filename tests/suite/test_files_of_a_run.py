"""Tests that a process that can write to the files of a run can neither change the verdict nor prevent the report."""

from __future__ import annotations

import pytest
from faked import Faked, RunResult

from conformance.suite.outcomes import ledger, ledger_file

HOSTILE_TESTS = """
    import shutil
    from pathlib import Path

    @requirements("AA-001")
    def test_one(case, request):
        folder = Path(request.config.getoption("conformance_run")).parent
        case.holds("AA-001", "x", PASSES, "seen")
        {attack}

    @requirements("AA-002")
    def test_two(case):
        case.holds("AA-002", "y", True, "seen")
"""
CHANGED_LEDGER = "another program has changed the ledger "


def run_attack(faked: Faked, attack: str, *, passes: bool = True, **changes: object) -> RunResult:
    faked.write(HOSTILE_TESTS.replace("{attack}", attack.strip()).replace("PASSES", str(passes)), ids=2)
    return faked.run(**changes)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failure_stays_when_its_ledger_is_rewritten(faked: Faked, workers: int) -> None:
    faked.write(
        """
        from pathlib import Path

        @requirements("AA-001")
        def test_one(case):
            case.expect("AA-001", "x", 1, 2)

        @requirements("AA-002")
        def test_two(case, request):
            [path] = (Path(request.config.getoption("conformance_run")).parent / "ledger").glob("*.jsonl")
            until = time.monotonic() + 20
            while '"failed"' not in path.read_text() and time.monotonic() < until:
                pass
            text = path.read_text()
            path.write_text(text.replace('"outcome":"failed"', '"outcome":"passed"'))
            case.expect("AA-002", "y", 1, 1)
        """
    )
    result = faked.run(workers=workers)
    assert result.outcomes == {"AA-001": "failed", "AA-002": "passed"}
    assert result.exit in (1, 3), result.err
    assert CHANGED_LEDGER in result.out


@pytest.mark.parametrize(
    "attack",
    [
        'path.open("a").write("junk\\n")',
        "path.unlink(); os.mkfifo(path)",
        'path.unlink(); path.symlink_to("/dev/zero")',
    ],
)
def test_a_changed_ledger_is_reported_in_addition_to_the_verdict(faked: Faked, attack: str) -> None:
    result = run_attack(faked, f'[path] = (folder / "ledger").glob("*.jsonl"); {attack}', workers=1)
    assert result.outcomes == {"AA-001": "passed", "AA-002": "passed"}, result.err
    assert result.exit == 3
    assert CHANGED_LEDGER in result.out
    assert "Traceback" not in result.err and len(result.err.splitlines()) < 10


def test_other_files_in_the_folder_of_a_run_do_not_count(faked: Faked) -> None:
    attack = """
        (folder / "ledger" / "junk.jsonl").write_text("junk\\n")
        [ledger] = (folder / "ledger").glob("run.jsonl")
        forged = ledger.read_text().replace('"outcome":"passed"', '"outcome":"failed"')
        (folder / "ledger" / "gw9.jsonl").write_text(forged)
        os.mkfifo(folder / "ledger" / "a.jsonl")
        (folder / "report.tmp").mkdir()
        os.mkfifo(folder / "junit.xml")
        (folder / "run.json").write_text("junk")
    """
    result = run_attack(faked, attack, workers=1)
    assert result.outcomes == {"AA-001": "passed", "AA-002": "passed"}, result.err
    assert result.exit == 0
    assert (result.folder / "junit.xml").read_text().count("<testcase") == 2


def test_a_removed_folder_of_a_run_is_recreated(faked: Faked) -> None:
    result = run_attack(faked, "shutil.rmtree(folder)", workers=1)
    assert result.exit == 3
    assert (result.folder / "report.yaml").exists() and (result.folder / "report.txt").exists()
    assert CHANGED_LEDGER in result.out
    assert "Traceback" not in result.err


def test_a_report_that_cannot_be_written_is_reported_in_one_line(faked: Faked) -> None:
    result = run_attack(faked, '(folder / "report.yaml" / "x").mkdir(parents=True)', workers=1)
    assert result.exit == 3
    [line] = [line for line in result.err.splitlines() if "report.yaml" in line]
    assert "cannot be written: Is a directory" in line and "remove what is in its place" in line


def test_a_worker_that_replaces_a_killed_one_has_the_settings_of_the_run(faked: Faked) -> None:
    """A later change of `run.json` does not affect what the worker judges."""
    attack = """
        path = folder / "run.json"
        path.write_text(path.read_text().replace('"ids": [', '"ids": ["AA-001"').replace('"AA-002"', '""'))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    result = run_attack(faked, attack, workers=1)
    assert result.exit == 3
    assert result.outcomes == {"AA-001": "harness-error", "AA-002": "passed"}


def test_junk_in_the_ledger_of_an_earlier_run_is_named(faked: Faked) -> None:
    from conformance.errors import UsageError

    with ledger_file.RunLedger(faked.folder) as run_ledger:
        run_ledger.write(ledger.WorkerEnded(worker="gw0"))
    with (faked.folder / ledger_file.FILE).open("a") as file:
        file.write("junk\n")
    with pytest.raises(UsageError, match=r"run\.jsonl:2: is no event"):
        list(ledger_file.read(faked.folder))


def test_a_message_that_is_not_an_event_is_a_harness_fault(faked: Faked) -> None:
    with ledger_file.RunLedger(faked.folder) as run_ledger:
        run_ledger.append_encoded(b"junk")
        [fault] = run_ledger.events()
    assert isinstance(fault, ledger.HarnessFault) and "a worker sent something other than an event" in fault.what


def test_a_full_disk_is_reported_once(faked: Faked) -> None:
    run_ledger = ledger_file.RunLedger(faked.folder)
    run_ledger._file.close()
    run_ledger._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115, PTH123
    for number in range(3):
        run_ledger.write(ledger.WorkerEnded(worker=f"gw{number}"))
    run_ledger.close()
    *worker_ends, fault = run_ledger.events()
    assert len(worker_ends) == 3
    assert (
        isinstance(fault, ledger.HarnessFault) and "cannot be written: No space left on device: make room" in fault.what
    )


def test_a_worker_whose_controlling_process_has_exited_cleans_up() -> None:
    def closed(line: bytes) -> None:
        raise OSError("cannot send (already closed?)")

    ledger.Ledger(closed).write(ledger.WorkerEnded(worker="gw0"))
