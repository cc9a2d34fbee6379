"""Tests of the two ways to judge the rule of a requirement: alone (`invariant`), or in addition to other checks
(`judge_violation`)."""

from __future__ import annotations

import pytest

from conformance.history.log import Log
from conformance.history.query import History
from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import InvariantResult, Scene, SceneEnded, SceneRun

ENDED = SceneEnded("pods Ready", "not seen within 60 s", 1.0)


def outcomes_of(method: str, holds: bool | None, ended: Exception | None = None) -> list[str]:
    """Return the outcomes of the checks that a test makes."""
    history = History(Log(), "space")
    history.end()
    checks = Checks("test", ["AA-001"], lambda check: None)
    verdicts = {"AA-001": InvariantResult("a rule", holds, "seen", None)}
    run = Recorded(SceneRun("scene", Scene(), history, {}, verdicts, ended=ended), Scene(), checks)
    getattr(run, method)()
    return [check.outcome for check in checks.recorded]


@pytest.mark.parametrize("ended", [None, ENDED])
@pytest.mark.parametrize("method", ["invariant", "judge_violation"])
def test_a_violation_is_a_failure_although_the_scene_ended_early(method: str, ended: Exception | None) -> None:
    assert outcomes_of(method, False, ended) == ["failed"]


def test_a_rule_without_other_checks_is_judged_over_whole_scenes() -> None:
    assert outcomes_of("invariant", True) == ["passed"]
    assert outcomes_of("invariant", None) == ["unknown"]
    with pytest.raises(Blocked, match="pods Ready"):
        outcomes_of("invariant", True, ENDED)


def test_a_rule_next_to_other_checks_does_not_decide() -> None:
    assert outcomes_of("judge_violation", True) == outcomes_of("judge_violation", True, ENDED) == ["passed"]
    assert outcomes_of("judge_violation", None) == outcomes_of("judge_violation", None, ENDED) == []
