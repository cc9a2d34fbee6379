"""A helper that runs a conformance test on a history which a unit test records object by object. Needs no cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from conformance.suite.outcomes.checks import Checks
from conformance.suite.registry.requirement import MARK
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import SceneRun, Step
from tests.history.story import Story


def failures(test: Callable[..., None], story: Story, steps: Mapping[str, Step], **scene: Any) -> list[str]:
    """Return the failed checks of a conformance test that judges a recording of a scene with these attributes."""
    [mark] = [mark for mark in cast(Any, test).pytestmark if mark.name == MARK]
    played = cast(Any, SimpleNamespace(**scene))
    checks = Checks(test.__name__, mark.args, lambda check: None)
    run = Recorded(SceneRun("scene", played, story.history, steps, {}), played, checks, mark.kwargs.get("reaches", ()))
    test(run)
    run.judge_reaches()
    return [check.what for check in checks.recorded if check.outcome == "failed"]
