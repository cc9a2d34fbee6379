"""Tests that SCHED-002 requires only the minimums of gangs. A separate SHOULD covers the pods above the minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from conformance.grove import workloads
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.tests.gang.test_base_gang_first import BaseGangShortOfNodes
from tests.history.story import Story

STEP = "minimums of the scaled gangs bound"


class Conditions(dict[str, Callable[[View], object]]):
    """An environment that keeps the conditions for which a scene waits, by step, and ignores its other acts."""

    def workload(self, name: str, **sizes: object) -> dict[str, Any]:
        return dict(workloads.load(name, sizes))

    def wait_for(self, step: str, condition: Callable[[View], object], *_: Any, **__: Any) -> None:
        self[step] = condition

    settle = wait_for

    def nodes(self, *_: Any) -> None: ...

    create = quiet = mark = nodes


@pytest.mark.parametrize(("lacking", "holds"), [(0, True), (1, False)])
def test_pods_above_the_minimum_may_wait(lacking: int, holds: bool) -> None:
    scene, conditions, story = BaseGangShortOfNodes(), Conditions(), Story()
    scene.play(cast(SceneEnvironment, conditions))
    for clique in scene.scaled_cliques:
        bound = clique.template.min_available - lacking
        for index in range(clique.template.replicas):
            story.pod(f"{clique.name}-{index}", clique=clique.name, node="a" if index < bound else "")
    assert any(clique.template.replicas > clique.template.min_available for clique in scene.scaled_cliques)
    answer = conditions[STEP](story.history.view())
    assert (answer is True) is holds and isinstance(answer, Unmet) is not holds
