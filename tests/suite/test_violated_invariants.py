"""Tests that a violation of a claimed invariant counts, even if the invariant was not selected."""

from __future__ import annotations

import pytest
import yaml
from faked import Faked, RunResult

from conformance.history.log import Log
from conformance.history.query import History
from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import InvariantResult, Scene, SceneBroken, SceneRun

SCENE = """
    from conformance.suite.scenes.recorded import Recorded
    from conformance.suite.registry.requirement import requirement
    from conformance.suite.scenes.scene import Scene

    class Quiet(Scene):
        \"\"\"Nothing happens.\"\"\"

        def play(self, env):
            env.mark("first")

    @requirement("AA-001")
    def test_first(run: Recorded[Quiet]):
        run.expect("pods", [], run.at("first").names("pods"))
"""
VIOLATION = """running.at_end = lambda finished: running.checks.invariant("INV-001", "a rule", False, "it is broken")
        yield Case(running)"""


DOUBTFUL_RULE = """running.at_end = lambda finished: running.checks.record_doubt("INV-001", HarnessError("too slow"))
        yield Case(running)"""
DECLARING_TEST = """
    @requirement("INV-001")
    def test_rule(run: Recorded[Quiet]):
        run.invariant()
"""


def run(faked: Faked, role: str, scene: str = SCENE, judged: str = VIOLATION, **selected: object) -> RunResult:
    """Run one scene, in which an invariant of another profile is violated; the invariant is about `role`."""
    faked.write(scene, ids=1)
    place = faked.folder / "registry" / "gang.yaml"
    document = yaml.safe_load(place.read_text())
    text = "It MUST hold."
    document["requirements"] = [
        {
            "id": "INV-001",
            "level": "MUST",
            "basis": "document",
            "text": text,
            "source": ["X-1"],
            "since": "v0",
            "roles": [role],
        }
    ]
    place.write_text(yaml.safe_dump(document))
    conftest = faked.folder / "tests" / "conftest.py"
    conftest.write_text(conftest.read_text().replace("yield Case(running)", judged))
    return faked.run(**{"roles": ["operator"], **selected})


@pytest.mark.parametrize("selected", [{}, {"only": ["test_fake.py::test_first"], "ids": ["AA-001"]}])
def test_printed_violations_count(faked: Faked, selected: dict[str, object]) -> None:
    result = run(faked, "operator", **selected)
    assert "✗ INV-001 a rule" in result.err
    assert result.outcomes == {"AA-001": "passed", "INV-001": "failed"}
    summary = "(core: 1 passed; violated besides: INV-001 of gang)" if selected else "1 failed, 1 passed"
    assert (
        result.exit == 1
        and summary in result.out
        and "gang: not-conformant" not in result.out.replace(summary, "") * bool(selected)
    )
    assert result.report["run"]["tests"][0]["outcome"] == "failed"


def test_a_violation_on_a_slow_machine_leaves_only_its_own_tests_without_a_verdict(faked: Faked) -> None:
    result = run(faked, "operator", SCENE + DECLARING_TEST, DOUBTFUL_RULE)
    assert result.outcomes == {"AA-001": "passed", "INV-001": "harness-error"}, result.out + result.err
    [rule] = [entry for entry in result.report["verdict"]["requirements"] if entry["id"] == "INV-001"]
    assert "too slow" in rule["reason"]


def test_violations_of_unclaimed_invariants_are_neither_printed_nor_counted(faked: Faked) -> None:
    result = run(faked, "gang-scheduler", only=["test_fake.py::test_first"], ids=["AA-001"])
    assert "INV-001" not in result.err
    assert result.outcomes == {"AA-001": "passed"} and result.exit == 0


@pytest.mark.parametrize("holds", [True, None])
def test_an_invariant_of_a_scene_with_a_refused_write_is_not_judged(holds: bool | None) -> None:
    """The object of the rejected write, for example a node, need not be one that the rule is about."""
    broken = SceneBroken("a patch of nodes/n1 is accepted", "accepted", "403 Forbidden", 1.5)
    scene, verdicts = Scene(), {"INV-001": InvariantResult("a rule", holds, "it holds", None)}
    checks = Checks("test", ["INV-001"], lambda check: None)
    run = Recorded(SceneRun("scene", scene, History(Log(), "s"), {}, verdicts, ended=broken), scene, checks)
    with pytest.raises(Blocked, match="a patch of nodes/n1 is accepted: 403 Forbidden") as blocked:
        run.invariant()
    assert (blocked.value.cause, checks.recorded) == ("implementation", [])
