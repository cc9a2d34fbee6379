"""Tests that checks of terminations judge only their own requirement. Other requirements cover which replicas of a
scaling group are terminated with a PodCliqueSet replica, or separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from conformance.suite.scenes.recorded import Span
from conformance.suite.scenes.scene import Step
from conformance.testing import disruption
from conformance.tests.termination import test_lost_gangs as judges
from tests.history.story import Story

CLIQUES = ("strict-0-a", "torn-0-a", "loose-0-a", "pair-0-a")


class Recording:
    """A recording of the scene until it is at rest, with the comparisons that failed."""

    def __init__(self, story: Story) -> None:
        self.unequal, self._history = list[str](), story.history

    def until(self, step: str) -> Span:
        return Span(self._history, None, Step(step, self._history.mark(), None, self._history.now()))

    def given(self, *_: str) -> None:
        """Treat every step as reached."""

    def expect(self, description: str, right: object, actual: object) -> None:
        if right != actual:
            self.unequal.append(description)

    def same(self, description: str, right: Mapping[str, object], actual: Mapping[str, object]) -> None:
        self.expect(description, right, actual)


def recording(recreated: Mapping[str, int], *flagged: str) -> Recording:
    """Return a recording in which cliques are recreated this often, and the `flagged` groups report a termination."""
    story = Story()
    for clique, times in {**dict.fromkeys(CLIQUES, 0), **recreated}.items():
        for _ in range(times):
            story.record(disruption.CLIQUES, clique, {})
            story.delete(disruption.CLIQUES, clique)
        story.record(disruption.CLIQUES, clique, {})
    for group in ("pair-0-g", "pair-1-g", "loose-0-g"):
        condition = {"type": disruption.IN_PROGRESS, "status": "True" if group in flagged else "False"}
        story.record(disruption.GROUPS, group, {"status": {"conditions": [condition]}})
    return Recording(story)


def unequal(judge: Callable[[Any], None], run: Recording) -> list[str]:
    """Return the comparisons of a check that fail."""
    judge(run)
    return run.unequal


@pytest.mark.parametrize(
    ("recreated", "flagged", "right"),
    [
        pytest.param({"pair-1-a": 1}, ("pair-1-g",), True, id="only the terminated one"),
        pytest.param({"pair-1-a": 1}, ("pair-1-g", "loose-0-g"), False, id="one that is not terminated"),
        pytest.param({"pair-1-a": 1, "loose-0-a": 1}, ("pair-1-g", "loose-0-g"), True, id="one terminated as well"),
        pytest.param({"pair-1-a": 1}, (), False, id="none"),
    ],
)
def test_groups_of_terminated_replicas_may_report_the_termination(
    recreated: Mapping[str, int], flagged: tuple[str, ...], right: bool
) -> None:
    judge = judges.test_groups_report_a_termination_until_they_recover
    assert (unequal(judge, recording(recreated, *flagged)) == []) is right


@pytest.mark.parametrize(
    ("recreated", "right"),
    [
        pytest.param({"pair-1-a": 1, "pair-1-g-0-b": 2}, True, id="a replica of the group"),
        pytest.param({"pair-1-a": 2, "pair-1-g-0-b": 2}, False, id="the replica of the set"),
    ],
)
def test_second_terminations_are_those_of_set_replicas(recreated: Mapping[str, int], right: bool) -> None:
    judge = judges.test_what_cannot_be_placed_is_terminated_once
    assert (unequal(judge, recording(recreated)) == []) is right
