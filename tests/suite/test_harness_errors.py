"""Tests that harness errors neither hide a proven failure nor invalidate a verdict that is complete."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from faked import Faked, RunResult
from test_scenes import SCENE

CLOSE_LINE = 'self.mark.write_text("")'
PASSING_TEST = """
    @requirements("AA-001")
    def test_one(case):
        case.expect("AA-001", "x", 1, 1)
"""
FAILING_TEST = PASSING_TEST.replace("1, 1)", "1, 2)")


def cases(result: RunResult) -> dict[str, list[str]]:
    """Return the elements of each JUnit test case, by the id of its requirement if there is one."""
    elements = ET.parse(result.folder / "junit.xml").iter("testcase")
    by_name = {str(case.get("name")).partition(" It does")[0]: case for case in elements}
    return {name: [part.tag for part in case if part.tag != "properties"] for name, case in by_name.items()}


def closing_badly(faked: Faked, tests: str) -> RunResult:
    faked.write(tests, ids=1)
    conftest = faked.folder / "tests" / "conftest.py"
    conftest.write_text(conftest.read_text().replace(CLOSE_LINE, 'raise HarnessError("process 7 does not end")'))
    return faked.run(workers=1)


def test_a_failed_cleanup_after_passed_tests_does_not_change_the_verdict(faked: Faked) -> None:
    result = closing_badly(faked, PASSING_TEST)
    fault = "clearing up failed: process 7 does not end"
    assert (result.exit, result.report["verdict"]["result"]) == (0, "conformant"), result.err
    assert result.report["verdict"]["harnessErrors"] == [fault]
    assert result.out.count(f"harness error: {fault}") == 1
    assert cases(result) == {"AA-001": [], "harness error": ["system-err"]}


def test_a_failed_cleanup_does_not_hide_a_failure(faked: Faked) -> None:
    result = closing_badly(faked, FAILING_TEST)
    assert (result.exit, result.outcomes) == (1, {"AA-001": "failed"})
    assert "is NOT conformant; there were harness errors besides" in result.out
    assert cases(result) == {"AA-001": ["failure"], "harness error": ["error"]}


def test_a_failure_remains_next_to_an_error_of_another_test(faked: Faked) -> None:
    error = """
    from conformance.errors import HarnessError

    @requirements("AA-002")
    def test_two(case):
        raise HarnessError("etcd died")
    """
    faked.write(FAILING_TEST + error)
    result = faked.run()
    assert (result.exit, result.outcomes) == (1, {"AA-001": "failed", "AA-002": "harness-error"})
    assert result.report["verdict"]["harnessErrors"] == ["etcd died"]
    assert "etcd died" in result.out
    assert cases(result) == {"AA-001": ["failure"], "AA-002": ["error"]}


def test_a_failure_stays_when_the_worker_is_killed(faked: Faked) -> None:
    faked.write(FAILING_TEST + "        os.kill(os.getpid(), signal.SIGKILL)\n", ids=1)
    result = faked.run(workers=1)
    assert (result.exit, result.outcomes) == (1, {"AA-001": "failed"})
    assert "harness error: worker gw0 died during test_fake.py::test_one" in result.out
    assert cases(result)["harness error"] == ["error"]


def test_the_error_of_a_scene_is_reported_once_for_all_its_tests(faked: Faked) -> None:
    died = """(_ for _ in ()).throw(__import__("conformance.errors").errors.HarnessError("etcd died"))"""
    faked.write(SCENE.replace("SECOND", died), ids=5)
    result = faked.run()
    assert (result.exit, set(result.outcomes.values())) == (3, {"harness-error"})
    assert result.err.count("etcd died") == result.out.count("etcd died") == 1
    assert result.report["verdict"]["harnessErrors"] == ["etcd died"]


VIOLATION = 'running.violation = lambda: "the APIService x answers"'
RAISE = 'raise __import__("conformance.errors").errors.HarnessError("nothing arrives")'


@pytest.mark.parametrize(
    ("tests", "ids"),
    [
        (PASSING_TEST.replace("case.expect", f"case.{VIOLATION}\n        {RAISE}\n        case.expect"), 1),
        (SCENE.replace('env.record("pods", "two")', f"env.{VIOLATION}\n            {RAISE}"), 5),
    ],
    ids=["test", "scene"],
)
def test_an_error_after_a_forbidden_change_of_the_api_server_is_blamed(faked: Faked, tests: str, ids: int) -> None:
    faked.write(tests, ids=ids)
    result = faked.run()
    assert (result.exit, set(result.outcomes.values())) == (1, {"blocked"}), result.out
    assert "the APIService x answers, and then: nothing arrives" in result.out
