"""Tests of whole runs in a fake environment: outcomes, exit codes, and what a run leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from faked import LONGEST, Faked, RunResult

PASSING_TESTS = """
    @requirements("AA-001")
    def test_one(case):
        case.expect("AA-001", "x", 1, 1)

    @requirements("AA-002")
    def test_two(case):
        case.until("AA-002", "y", True)
"""


def test_a_run_in_which_everything_passes_is_conformant(faked: Faked) -> None:
    faked.write(PASSING_TESTS)
    result = faked.run()
    assert result.exit == 0, result.err
    assert result.report["verdict"]["result"] == "conformant"
    assert result.outcomes == {"AA-001": "passed", "AA-002": "passed"}
    assert "fake 1 is conformant (core: 2 passed)" in result.out
    assert (result.folder / "closed-main").exists()


def test_workers_ledgers_are_one_report(faked: Faked) -> None:
    faked.write(PASSING_TESTS)
    result = faked.run(workers=2)
    assert result.exit == 0, result.err
    assert result.outcomes == {"AA-001": "passed", "AA-002": "passed"}
    second = Faked(faked.folder)
    repeated = second.run(workers=0, directory=str(faked.folder / "again"))
    repeated.folder = faked.folder / "again"
    # The verdict part doesn't depend on how the work was divided.
    assert repeated.report["verdict"] == result.report["verdict"]
    assert repeated.report["digest"] == result.report["digest"]


def test_programs_read_the_report_from_standard_output(faked: Faked) -> None:
    faked.write(FAILING_TESTS)
    result = faked.run(as_json=True)
    assert result.exit == 1
    assert json.loads(result.out) == result.report
    assert str(result.folder / "report.yaml") in result.err


def test_repeated_tests_are_runs_of_their_own_and_give_a_rate(faked: Faked) -> None:
    faked.write(
        """
        import pytest

        @requirements("AA-001")
        @pytest.mark.parametrize("what", ["x", "y"])
        def test_one(case, what):
            case.expect("AA-001", "x", 1, 1)

        @requirements("AA-002")
        def test_two(case):
            case.until("AA-002", "y", not case.running.test.endswith("[3 of 20]"))
        """
    )
    result = faked.run(workers=2, repeat=20)
    assert result.exit == 1, result.err
    assert result.outcomes == {"AA-001": "passed", "AA-002": "failed"}
    assert result.report["run"]["repetitions"] == [
        {"test": "all tests", "runs": 60, "passed": 59, "atLeast": 0.9114},
        {"test": "test_fake.py::test_two", "runs": 20, "passed": 19, "atLeast": 0.7639},
    ]
    assert "test_fake.py::test_two: 19 of 20 runs passed (95 % interval 76.4% to 99.1%)" in result.out


def test_a_test_ends_early_only_where_all_that_was_asked_for_has_failed(faked: Faked) -> None:
    faked.write(
        """
        @requirements("AA-001", "AA-002", "AA-003")
        def test_soft(case):
            case.expect("AA-001", "names", ["a"], ["b"])
            case.expect("AA-002", "y", 1, 1)
            case.expect("AA-003", "z", 1, 2)
            case.expect("AA-002", "y", 1, 2)

        @requirements("AA-002", "AA-003")
        def test_spared(case):
            case.expect("AA-003", "z", 1, 2)

        @requirements("AA-004")
        def test_the_last(case):
            case.expect("AA-004", "z", 1, 1)
        """,
        ids=4,
    )
    result = faked.run(fail_fast=True, ids=["AA-001", "AA-003", "AA-004"])
    assert result.exit == 1, result.err
    assert result.checks == [("AA-001", "failed"), ("AA-002", "passed"), ("AA-003", "failed"), ("AA-004", "passed")]


def test_a_soft_failure_continues_and_a_hard_failure_ends_the_test(faked: Faked) -> None:
    faked.write(
        """
        @requirements("AA-001", "AA-002")
        def test_soft(case):
            case.expect("AA-001", "names", ["a"], ["b"])
            case.expect("AA-002", "y", 1, 1)

        @requirements("AA-003", "AA-004")
        def test_hard(case):
            case.until("AA-003", "it comes", "nothing came")
            case.expect("AA-004", "never asked", 1, 1)
        """,
        ids=4,
    )
    result = faked.run(workers=1)
    assert result.exit == 1, result.err
    assert result.outcomes == {"AA-001": "failed", "AA-002": "passed", "AA-003": "failed", "AA-004": "blocked"}
    first = result.report["verdict"]["requirements"][0]
    assert first["failures"] == [
        {"test": "test_fake.py::test_soft", "what": "names", "expected": ["a"], "seen": ["b"], "bundle": "bundles/one"}
    ]
    assert "reproduce:  grove-conformance run --test test_fake.py::test_hard" in result.out
    assert "Traceback" not in result.out + result.err

    states = [[part.tag for part in case][1:] for case in ET.parse(result.folder / "junit.xml").iter("testcase")]
    assert states == [["failure"], [], ["failure"], ["skipped"]]
    assert result.allure == ["failed", "failed", "passed", "skipped"]
    results = [json.loads(p.read_text()) for p in (result.folder / "allure").glob("*-result.json")]
    soft = next(r for r in results if r["fullName"] == "core: AA-001")
    labels = {(label["name"], label["value"]) for label in soft["labels"]}
    assert {("epic", "core"), ("severity", "critical")} <= labels
    assert ("story", "AA-001 It does the right thing number 1.") in labels


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("pass", "ended without an outcome for AA-001"),
        ('case.expect("AA-002", "x", 1, 1)', "judges AA-002 without declaring it"),
        ("assert 1 == 2", "a bare assert failed"),
        ("{}['x']", "KeyError"),
    ],
)
def test_a_test_that_is_wrong_itself_is_a_harness_error(faked: Faked, body: str, words: str) -> None:
    faked.write(f'@requirements("AA-001")\ndef test_one(case):\n    {body}\n', ids=1)
    result = faked.run()
    assert result.exit == 3
    assert result.outcomes == {"AA-001": "harness-error"}
    assert words in result.report["verdict"]["harnessErrors"][0]
    assert result.allure == ["broken"]
    assert "Traceback" not in result.out + result.err


def test_a_test_without_requirements_is_refused(faked: Faked) -> None:
    faked.write("def test_one(case):\n    pass\n")
    result = faked.run()
    assert result.exit == 3
    assert "has no @requirements" in result.err
    assert len(result.err.splitlines()) == 1


def test_an_unknown_id_in_a_test_is_refused_with_a_suggestion(faked: Faked) -> None:
    faked.write('@requirements("AA-011")\ndef test_one(case):\n    pass\n')
    result = faked.run()
    assert result.exit == 3
    assert 'declares AA-011, unknown (did you mean "AA-001"?)' in result.err


def test_an_implementation_that_cannot_start_blocks_everything_and_is_reported_once(faked: Faked) -> None:
    faked.write(
        PASSING_TESTS, opening='raise Blocked("fake cannot be started: it exited with code 3", "implementation")'
    )
    result = faked.run(workers=2)
    assert result.exit == 1, result.err
    assert set(result.outcomes.values()) == {"blocked"}
    assert result.out.count("it exited with code 3") == 1
    assert result.allure == ["failed", "skipped", "skipped"]  # the verdict, and the two requirements


def test_a_cluster_that_cannot_start_is_a_harness_error(faked: Faked) -> None:
    faked.write(PASSING_TESTS, opening='raise HarnessError("the cluster is not well: etcd died")')
    result = faked.run(workers=2)
    assert result.exit == 3, result.err
    assert set(result.outcomes.values()) == {"harness-error"}
    assert result.out.count("etcd died") == 1


def test_a_run_without_tests_is_reported(faked: Faked) -> None:
    faked.write(PASSING_TESTS)
    result = faked.run(profiles=["gang"])
    assert result.exit == 5
    assert "nothing to run" in result.err
    assert result.report["verdict"]["result"] == "unknown"


def test_selection_by_id_that_passes_is_partial_and_a_success(faked: Faked) -> None:
    faked.write(PASSING_TESTS)
    result = faked.run(ids=["AA-002"])
    assert result.exit == 0
    assert (result.report["verdict"]["result"], result.report["verdict"]["exitCode"]) == ("partial", 0)
    assert "passed all that was selected (partial) (core: 1 not-run, 1 passed)" in result.out
    assert result.outcomes == {"AA-001": "not-run", "AA-002": "passed"}
    assert [t["test"] for t in result.report["run"]["tests"]] == ["test_fake.py::test_two"]


def test_a_test_that_is_named_runs_alone(faked: Faked) -> None:
    faked.write(
        """
        import pytest

        @requirements("AA-001")
        @pytest.mark.parametrize("what", ["x y", "y"])
        def test_one(case, what):
            case.expect("AA-001", what, 1, 2)

        @requirements("AA-001", "AA-002")
        def test_two(case):
            case.expect("AA-001", "z", 1, 1)
            case.expect("AA-002", "z", 1, 1)
        """
    )
    result = faked.run(only=["test_fake.py::test_one[x y]"])
    assert result.exit == 1
    assert [t["test"] for t in result.report["run"]["tests"]] == ["test_fake.py::test_one[x y]"]
    assert result.report["verdict"]["selection"]["tests"] == ["test_fake.py::test_one[x y]"]
    assert "reproduce:  grove-conformance run --test 'test_fake.py::test_one[x y]'\n" in result.out


def test_a_role_that_is_not_played_is_not_claimed(faked: Faked) -> None:
    faked.write(PASSING_TESTS)
    result = faked.run(roles=["gang-scheduler"])
    assert result.exit == 5
    assert set(result.outcomes.values()) == {"not-claimed"}


FAILING_TESTS = """
    @requirements("AA-001")
    def test_one(case):
        case.expect("AA-001", "x", 1, 2)

    @requirements("AA-002")
    def test_two(case):
        case.expect("AA-002", "y", 1, 1)
"""


@pytest.mark.parametrize(
    ("expected", "code", "outcomes"),
    [
        ([{"id": "AA-001", "reason": "known"}], 0, ("expected-failure", "passed")),
        ([{"id": "AA-001", "expires": "2020-01-01"}], 7, ("stale-expectation", "passed")),
        ([{"id": "AA-001"}, {"id": "AA-002"}], 7, ("expected-failure", "stale-expectation")),
    ],
)
def test_expected_failures(faked: Faked, expected: list[dict[str, str]], code: int, outcomes: tuple[str, str]) -> None:
    faked.write(FAILING_TESTS)
    result = faked.run(expected=expected)
    assert result.exit == code, result.out
    assert tuple(result.outcomes.values()) == outcomes


def test_a_killed_worker_is_a_harness_error_that_names_the_test(faked: Faked) -> None:
    faked.write(
        """
        @requirements("AA-001")
        def test_one(case):
            case.expect("AA-001", "x", 1, 1)
            os.kill(os.getpid(), signal.SIGKILL)

        @requirements("AA-002")
        def test_two(case):
            case.expect("AA-002", "y", 1, 1)
        """
    )
    result = faked.run(workers=1)
    assert result.exit == 3, result.err
    assert result.outcomes == {"AA-001": "harness-error", "AA-002": "passed"}
    assert "worker gw0 died during test_fake.py::test_one" in result.out
    # The outcomes before the kill are kept.
    assert '"outcome":"passed"' in (result.folder / "ledger" / "run.jsonl").read_text()


@pytest.mark.parametrize(
    ("workers", "number"),
    [
        (0, signal.SIGTERM),
        (2, signal.SIGINT),
        *(
            pytest.param(workers, number, marks=pytest.mark.thorough)
            for workers, number in ((0, signal.SIGINT), (0, signal.SIGHUP), (2, signal.SIGTERM), (2, signal.SIGHUP))
        ),
    ],
)
def test_an_interrupted_run_reports_its_results_and_cleans_up(
    faked: Faked, number: signal.Signals, workers: int
) -> None:
    faked.write(
        """
        @requirements("AA-001")
        def test_one(case):
            case.expect("AA-001", "x", 1, 1)

        @requirements("AA-002")
        def test_two(case):
            case.expect("AA-002", "y", 1, 1)
            open(os.environ["MARK"], "w").close()
            time.sleep(60)
        """
    )
    mark = faked.folder / "waiting"
    process = subprocess.Popen(
        faked.command(workers=workers),
        env=faked.environment() | {"MARK": str(mark)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the parent may ignore SIGHUP
    )
    ledger, deadline = faked.folder / "run" / "ledger" / "run.jsonl", time.monotonic() + LONGEST

    def waits_after_a_pass() -> bool:
        """With two workers, the second test may start, and pass a check, before the first one has ended."""
        ends = [line for line in ledger.read_text().splitlines() if '"test-finished"' in line] if mark.exists() else []
        return any("::test_one" in line and '"outcome":"passed"' in line for line in ends)

    while not waits_after_a_pass() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=LONGEST)
    result = RunResult(process.returncode, out, err, faked.folder / "run")
    assert result.exit == 2, err
    assert result.outcomes == {"AA-001": "passed", "AA-002": "not-run"}
    assert result.report["verdict"]["complete"] is False
    assert "the report is incomplete" in out
    closed = sorted(path.name for path in result.folder.glob("closed-*"))
    assert closed == (["closed-gw0", "closed-gw1"] if workers else ["closed-main"])
    assert "Traceback" not in out + err


@pytest.mark.parametrize(
    ("tests", "code", "result"), [(PASSING_TESTS, 8, "conformant"), (FAILING_TESTS, 1, "not-conformant")]
)
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_run_whose_output_is_closed_ends_with_its_report(
    faked: Faked, tests: str, code: int, result: str, workers: int
) -> None:
    """Examples are `… 2>&1 | head -1`, and a closed terminal if SIGHUP is ignored."""
    faked.write(tests)
    read, write = os.pipe()
    os.close(read)
    options = {"env": faked.environment(), "stdout": write, "stderr": write}
    code_of = subprocess.run(faked.command(workers=workers), **options, timeout=120).returncode  # type: ignore[call-overload]
    os.close(write)
    run_result = RunResult(code_of, "", "", faked.folder / "run")
    assert run_result.exit == code
    assert (run_result.report["verdict"]["result"], run_result.report["verdict"]["complete"]) == (result, True)
    assert (run_result.folder / "report.txt").exists()


def test_hostile_values_cannot_command_the_terminal(faked: Faked) -> None:
    faked.write(
        """
        @requirements("AA-001")
        def test_one(case):
            case.expect("AA-001", "a [bold]name[/bold]", "x", "\\x1b[2J\\x07[link=http://x]y\\u202e")
        """,
        ids=1,
    )
    result = faked.run()
    assert result.exit == 1
    assert "\x1b" not in result.out and "\x07" not in result.out and "\u202e" not in result.out
    assert "a [bold]name[/bold]" in result.out
    assert r"\x1b[2J\x07[link=http://x]y\u202e" in result.out
    assert result.report["verdict"]["requirements"][0]["failures"][0]["seen"] == "\x1b[2J\x07[link=http://x]y\u202e"


def test_an_unbroken_environment_is_not_needed(faked: Faked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    Path(faked.folder / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    faked.write(PASSING_TESTS)
    assert faked.run().exit == 0


def test_an_implementation_whose_webhooks_prevent_reads_is_blamed(faked: Faked) -> None:
    faked.write(
        """
        from conformance.history.query import Withheld

        @requirements("AA-001")
        def test_unread(case):
            raise Withheld("the recorder has not received all changes of x (500: conversion webhook for x/v1 failed)")

        @requirements("AA-002")
        def test_late(case):
            raise Withheld("the recorder has not received all changes of x")
        """
    )
    result = faked.run()
    assert result.outcomes == {"AA-001": "blocked", "AA-002": "harness-error"} and result.exit == 1


THREE_TESTS = """
    @requirements("AA-001")
    def test_one(case):
        case.expect("AA-001", "right", 1, 1)

    @requirements("AA-002")
    def test_two(case):
        case.expect("AA-002", "right", 1, 2)

    @requirements("AA-003")
    def test_three(case):
        case.expect("AA-003", "right", 1, 1)
"""


def test_a_shard_that_passes_is_partial_and_a_success(faked: Faked) -> None:
    faked.write(THREE_TESTS, ids=3)
    result = faked.run(shard="1/2", part=("test_fake.py::test_one", "test_fake.py::test_three"))
    assert result.exit == 0
    assert result.outcomes == {"AA-001": "passed", "AA-002": "not-run", "AA-003": "passed"}
    assert result.report["verdict"]["result"] == "partial"
    assert result.report["verdict"]["selection"]["shard"] == "1/2"
    assert "shard 1/2 of the selection" in result.out


def test_skipped_requirements_are_named_and_do_not_fail(faked: Faked) -> None:
    faked.write(THREE_TESTS, ids=3)
    result = faked.run(skip=("AA-002",))
    assert result.exit == 0
    assert result.outcomes["AA-002"] == "not-run" and result.report["verdict"]["result"] == "partial"
    assert result.report["verdict"]["selection"]["skipped"] == ["AA-002"]
    assert "not-run: left out with --skip (AA-002)" in result.out


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_until_something_fails_ends_there_and_is_not_interrupted(faked: Faked, workers: int) -> None:
    faked.write(
        """
        @requirements("AA-001")
        def test_one(case):
            number = int(case.running.test.partition("[")[2].partition(" ")[0])
            case.expect("AA-001", "right", True, number < 3)
        """,
        ids=1,
    )
    result = faked.run(until_fail=True, repeat=50, workers=workers)
    assert result.exit == 1 and result.report["verdict"]["complete"]
    assert result.report["verdict"]["result"] == "not-conformant"
    assert len(result.report["run"]["tests"]) < 10


def test_an_expected_failure_ends_no_run_that_ends_at_failures(faked: Faked) -> None:
    faked.write(THREE_TESTS, ids=3)
    expected = [{"id": "AA-002", "reason": "known"}]
    result = faked.run(until_fail=True, expected=expected)
    assert result.exit == 0 and result.outcomes == {
        "AA-001": "passed",
        "AA-002": "expected-failure",
        "AA-003": "passed",
    }


def test_options_of_pytest_select_tests(faked: Faked) -> None:
    faked.write(THREE_TESTS, ids=3)
    result = faked.run(ids=("AA-001", "AA-003"), pytest_options=("-k", "one or two"))
    assert [test["test"] for test in result.report["run"]["tests"]] == ["test_fake.py::test_one"]
