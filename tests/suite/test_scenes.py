"""Tests of scenes in a fake environment: a scene is played once, and judged by many independent tests."""

from __future__ import annotations

import json

import pytest
from faked import Faked, RunResult

from conformance.suite.scenes.scene import Scene, scenes_of

SCENE = """
    from conformance.suite.scenes.recorded import Recorded
    from conformance.suite.registry.requirement import requirement
    from conformance.suite.scenes.scene import Scene

    class Shortage(Scene):
        \"\"\"Something is scarce.\"\"\"

        def play(self, env):
            self.early = "early"
            env.record("pods", "one")
            env.wait_for("first", True)
            env.record("pods", "two")
            env.wait_for("second", SECOND)
            self.late = "late"
            env.wait_for("third", True)

    @requirement("AA-001", reaches="first")
    def test_first(run: Recorded[Shortage]):
        run.expect("pods at the first step", ["one"], run.at("first").names("pods"))
        run.expect("pods after it", ["two"], [r.name for r in run.between("first", "second").records("pods")])

    @requirement("AA-002", reaches="second")
    def test_second(run: Recorded[Shortage]):
        pass

    @requirement("AA-003", reaches="third")
    def test_third(run: Recorded[Shortage]):
        pass

    @requirement("AA-004")
    def test_value(run: Recorded[Shortage]):
        run.expect("value", "early", run.scene.early)

    @requirement("AA-005")
    def test_late_value(run: Recorded[Shortage]):
        run.expect("value", "late", run.scene.late)
"""


def write(faked: Faked, second: str = "True", additions: str = "", ids: int = 5) -> None:
    faked.write(SCENE.replace("SECOND", second) + additions, ids=ids)


def played_scenes(result: RunResult) -> list[str]:
    """Return the names of the scenes that were played, sorted."""
    lines = [
        json.loads(line) for p in (result.folder / "ledger").glob("*.jsonl") for line in p.read_text().splitlines()
    ]
    return sorted(line["scene"] for line in lines if line["event"] == "scene-played")


def test_a_scene_is_played_once_for_all_its_tests(faked: Faked) -> None:
    write(faked)
    result = faked.run(verbose=True)
    assert result.exit == 0, result.err
    assert set(result.outcomes.values()) == {"passed"} and len(result.outcomes) == 5
    assert played_scenes(result) == ["test_fake.py::Shortage"]
    assert "main: played test_fake.py::Shortage" in result.err


def test_a_failing_test_hides_no_other(faked: Faked) -> None:
    write(faked)
    path = faked.folder / "tests" / "test_fake.py"
    path.write_text(path.read_text().replace('["one"], run.at', '["none"], run.at'))
    result = faked.run()
    assert result.exit == 1
    assert result.outcomes == {"AA-001": "failed", **dict.fromkeys(["AA-002", "AA-003", "AA-004", "AA-005"], "passed")}
    [failure] = result.report["verdict"]["requirements"][0]["failures"]
    assert failure["bundle"] == "bundles/one" and failure["expected"] == ["none"] and failure["seen"] == ["one"]


def test_a_missing_step_fails_its_test_and_blocks_tests_of_later_steps(faked: Faked) -> None:
    write(faked, second='"two of three"')
    result = faked.run()
    assert result.exit == 1
    outcomes = {"AA-001": "blocked", "AA-002": "failed", "AA-003": "blocked", "AA-004": "passed", "AA-005": "blocked"}
    assert result.outcomes == outcomes
    reasons = {r["id"]: r.get("reason", "") for r in result.report["verdict"]["requirements"]}
    assert reasons["AA-003"] == 'the scene ended in waiting for "second": nearest: two of three'
    assert "two of three" in result.report["verdict"]["requirements"][1]["failures"][0]["seen"]
    assert 'ended in waiting for "second"' in result.err


def test_a_scene_continues_after_a_step_that_does_not_settle(faked: Faked) -> None:
    write(faked)
    place = faked.folder / "tests" / "test_fake.py"
    place.write_text(place.read_text().replace('wait_for("second", True)', 'settle("second", "two of three")'))
    result = faked.run()
    assert result.exit == 1
    passed = dict.fromkeys(["AA-001", "AA-003", "AA-004", "AA-005"], "passed")
    assert result.outcomes == {**passed, "AA-002": "failed"}
    assert result.report["verdict"]["requirements"][1]["failures"][0]["seen"] == "two of three"


def test_a_role_that_the_driver_does_not_control_blocks_tests_of_later_steps(faked: Faked) -> None:
    write(faked)
    place = faked.folder / "tests" / "test_fake.py"
    reason = "the driver does not control the process of the operator"
    uncontrolled = f'raise Blocked("{reason}", "circumstances")'
    text = place.read_text().replace('env.wait_for("second", True)', uncontrolled)
    place.write_text("from conformance.suite.outcomes.checks import Blocked\n" + text)
    result = faked.run()
    assert result.exit == 6, result.out + result.err
    blocked = dict.fromkeys(["AA-001", "AA-002", "AA-003", "AA-005"], "blocked")
    assert result.outcomes == {**blocked, "AA-004": "passed"}
    assert {r["reason"] for r in result.report["verdict"]["requirements"] if r["outcome"] == "blocked"} == {reason}


def test_an_implementation_that_dies_in_a_scene_leaves_evidence_for_the_blocked_tests(faked: Faked) -> None:
    write(faked)
    place = faked.folder / "tests" / "test_fake.py"
    text = place.read_text().replace('env.wait_for("second", True)', 'raise Blocked("panic: nil", "implementation")')
    place.write_text("from conformance.suite.outcomes.checks import Blocked\n" + text)
    result = faked.run()
    bundles = {r["id"]: r.get("bundle") for r in result.report["verdict"]["requirements"]}
    blocked = dict.fromkeys(["AA-001", "AA-002", "AA-003", "AA-005"], "bundles/one")
    assert bundles == {**blocked, "AA-004": None}
    assert "evidence: " in result.out + result.err and (result.folder / "bundles" / "one").is_dir()


def test_a_block_by_an_exited_process_has_that_reason(faked: Faked) -> None:
    write(faked)
    place = faked.folder / "tests" / "test_fake.py"
    message = "mine: the operator exited with code 7\\nnot seen within 1 s: second\\nnearest: no pod"
    text = place.read_text().replace('env.wait_for("second", True)', f'raise SceneEnded("second", "{message}", 1.5)')
    place.write_text("from conformance.suite.scenes.scene import SceneEnded\n" + text)
    reasons = {r.get("reason") for r in faked.run().report["verdict"]["requirements"] if r["outcome"] == "blocked"}
    assert reasons == {'the scene ended in waiting for "second": mine: the operator exited with code 7'}


def test_a_rejected_write_blocks_tests_of_later_steps(faked: Faked) -> None:
    write(faked, second="env.refused()")
    result = faked.run()
    assert result.exit == 1
    assert result.outcomes == {**dict.fromkeys(["AA-001", "AA-002", "AA-003", "AA-005"], "blocked"), "AA-004": "passed"}
    reasons = {r["reason"] for r in result.report["verdict"]["requirements"] if r["outcome"] == "blocked"}
    assert reasons == {"a set is accepted: refused"} and "a set is accepted: refused" in result.out + result.err


PREMISE_TESTS = """
    @requirement("AA-006")
    def test_premise(run: Recorded[Shortage]):
        run.given("first", "second")
        run.expect("value", "early", run.scene.early)

    @requirement("AA-007")
    def test_state(run: Recorded[Shortage]):
        run.always("nothing holds", lambda view: True, until="second")

    @pytest.mark.parametrize("step", ["first", "second"])
    @requirement("AA-008", reaches="{step}")
    def test_each(run: Recorded[Shortage], step):
        run.given("third")
"""


@pytest.mark.parametrize("unmet", ['env.wait_for("second", "two of three")', 'env.settle("second", "two of three")'])
def test_a_premise_that_does_not_come_blocks(faked: Faked, unmet: str) -> None:
    write(faked, additions=PREMISE_TESTS, ids=8)
    place = faked.folder / "tests" / "test_fake.py"
    place.write_text("import pytest\n" + place.read_text().replace('env.wait_for("second", True)', unmet))
    result = faked.run()
    assert result.exit == 1
    goes_on = "settle" in unmet
    expected = {"AA-006": "blocked", "AA-007": "passed" if goes_on else "blocked", "AA-008": "failed"}
    assert {id: result.outcomes[id] for id in expected} == expected
    entry = result.report["verdict"]["requirements"][5]
    assert "second" in entry["reason"] and "two of three" in entry["reason"] and not entry.get("failures")


def test_the_tests_of_a_scene_go_to_one_worker(faked: Faked) -> None:
    further = """
    @requirement("AA-006")
    def test_by_itself(case):
        case.expect("AA-006", "x", 1, 1)

    class Other(Shortage):
        pass

    @requirement("AA-007", reaches="third")
    def test_other(run: Recorded[Other]):
        pass

    @requirement("AA-007", reaches="second")
    def test_other_again(run: Recorded[Other]):
        pass
    """
    write(faked, additions=further, ids=7)
    result = faked.run(workers=3)
    assert result.exit == 0, result.err
    assert played_scenes(result) == ["test_fake.py::Other", "test_fake.py::Shortage"]


def test_each_repetition_plays_its_own_scene(faked: Faked) -> None:
    write(faked)
    result = faked.run(repeat=3, workers=2)
    assert result.exit == 0, result.err
    assert played_scenes(result) == [f"test_fake.py::Shortage[{n} of 3]" for n in (1, 2, 3)]


def test_only_the_scene_of_the_selected_requirement_is_played(faked: Faked) -> None:
    further = """
    class Other(Shortage):
        pass

    @requirement("AA-006", reaches="third")
    def test_other(run: Recorded[Other]):
        pass
    """
    write(faked, additions=further, ids=6)
    result = faked.run(ids=["AA-006"])
    assert played_scenes(result) == ["test_fake.py::Other"]
    assert result.outcomes["AA-006"] == "passed" and result.outcomes["AA-001"] == "not-run"


def test_a_test_may_judge_several_scenes(faked: Faked) -> None:
    further = """
    class Other(Shortage):
        pass

    @requirement("AA-006", reaches="third")
    def test_both(run: Recorded[Shortage | Other]):
        pass
    """
    write(faked, additions=further, ids=6)
    result = faked.run()
    assert result.exit == 0, result.err
    assert played_scenes(result) == ["test_fake.py::Other", "test_fake.py::Shortage"]
    tests = result.report["verdict"]["requirements"][5]["tests"]
    assert tests == ["test_fake.py::test_both[Other]", "test_fake.py::test_both[Shortage]"]


def test_a_broken_scene_is_a_harness_error_of_all_its_tests(faked: Faked) -> None:
    write(faked, second="1 / 0")
    result = faked.run()
    assert result.exit == 3
    assert set(result.outcomes.values()) == {"harness-error"}


def test_a_step_that_no_scene_has_is_a_harness_error(faked: Faked) -> None:
    write(faked)
    place = faked.folder / "tests" / "test_fake.py"
    place.write_text(place.read_text().replace('reaches="third"', 'reaches="thrid"'))
    result = faked.run()
    assert result.exit == 3
    assert result.outcomes["AA-003"] == "harness-error" and result.outcomes["AA-002"] == "passed"


def test_where_all_that_was_asked_for_has_failed_no_scene_is_played(faked: Faked) -> None:
    further = """
    class Other(Shortage):
        pass

    @requirement("AA-002", reaches="third")
    def test_other(run: Recorded[Other]):
        pass
    """
    write(faked, second='"nothing"', additions=further)
    result = faked.run(fail_fast=True, ids=["AA-002"])
    assert result.exit == 1
    assert played_scenes(result) == ["test_fake.py::Shortage"]


@pytest.mark.parametrize(
    ("ids", "steps"),
    [
        pytest.param(["AA-002"], ["first", "second"], id="the step that does not come decides"),
        pytest.param(["AA-002", "AA-004"], ["first", "second", "third"], id="another requirement is not decided"),
        pytest.param(["AA-006"], ["first", "second", "third"], id="what the scene keeps may still change"),
        pytest.param(["AA-007"], ["first", "second", "third"], id="the last state may still change"),
    ],
)
def test_a_scene_is_stopped_where_no_later_step_can_change_a_verdict(
    faked: Faked, ids: list[str], steps: list[str]
) -> None:
    additions = """
    @requirement("AA-006")
    def test_kept(run: Recorded[Shortage]):
        run.expect("value", "late", run.scene.early)

    @requirement("AA-007")
    def test_end(run: Recorded[Shortage]):
        run.expect("pods in the end", ["one"], run.whole().view().names("pods"))
    """
    write(faked, additions=additions, ids=7)
    place = faked.folder / "tests" / "test_fake.py"
    place.write_text(place.read_text().replace('wait_for("second", True)', 'settle("second", "two of three")'))
    result = faked.run(fail_fast=True, ids=ids)
    assert {id: result.outcomes[id] for id in ids} == {id: "passed" if id == "AA-004" else "failed" for id in ids}
    lines = (line for path in (result.folder / "ledger").glob("*.jsonl") for line in path.read_text().splitlines())
    [scene_event] = [event for event in map(json.loads, lines) if event["event"] == "scene-played"]
    assert list(scene_event["steps"]) == steps


def test_a_scene_knows_which_requirements_are_judged(faked: Faked) -> None:
    parts = """
    class Parts(Scene):
        def play(self, env):
            self.asked = list(env.checks.selected)

    @requirement("AA-006")
    def test_part(run: Recorded[Parts]):
        run.expect("ids", ["AA-006"], run.scene.asked)

    @requirement("AA-007", reaches="what the scene has left out")
    def test_other_part(run: Recorded[Parts]):
        pass
    """
    write(faked, additions=parts, ids=7)
    assert faked.run(ids=["AA-006"]).outcomes["AA-006"] == "passed"


def test_a_test_names_its_scene() -> None:
    with pytest.raises(TypeError, match="annotate run"):
        scenes_of(_unnamed)


def _unnamed(run: Scene) -> None:
    pass
