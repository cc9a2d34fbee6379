"""Stop a scene early once all selected requirements that it judges have failed.

After each step, the tests judge the recording so far. A failure counts only if no later step can change it: a test that
needs a later step, the end of the recording or an attribute of the scene, which may still change, is undecided.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import pytest

from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.registry import requirement
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import RUN, Scene, SceneRun


def stop_error() -> Blocked:
    """Return the exception that ends a scene early."""
    return Blocked("the scene was stopped: all selected requirements that it judges had failed", "circumstances")


def is_decided(tests: Iterable[pytest.Item], requirements: AbstractSet[str], played: SceneRun) -> bool:
    """Return whether the tests of a scene fail all of these `requirements`, whatever happens in its later steps."""
    so_far = replace(played, scene=Scene(), verdicts={}, ended=stop_error())
    undecided_ids = set(requirements)
    for item in tests:
        if undecided_ids and not undecided_ids.isdisjoint(requirement.declared(item)):
            undecided_ids -= _failed_ids(item, so_far)
    return not undecided_ids


def _failed_ids(item: pytest.Item, so_far: SceneRun) -> set[str]:
    """Return the requirements that a test fails, whatever happens in later steps."""
    checks = Checks(item.nodeid, requirement.declared(item), lambda check: None)
    test: Any = item.obj  # type: ignore[attr-defined]
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    arguments = {name: params[name] for name in inspect.signature(test).parameters if name in params}
    run = Recorded(so_far, so_far.scene, checks, requirement.reaches(item))
    with contextlib.suppress(Exception):  # undecided; errors are reported when the test itself runs
        test(**{**arguments, RUN: run})
        run.judge_reaches()
    return {check.id for check in checks.recorded if check.outcome == "failed"}
