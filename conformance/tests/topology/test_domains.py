"""Every scenario of the specification that is about domains, of a gang scheduler alone."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling import scenarios
from conformance.suite.requirement import requirements
from conformance.testing import judging
from conformance.testing.scene import Recorded, SceneEnvironment


class ScenariosWithDomains(judging.Scenarios):
    """The scenarios at the same time, each on nodes of its own: those that requirements need which are judged. The
    scheduler finds them when it starts."""

    def play(self, env: SceneEnvironment) -> None:
        self.play_all(env, judging.cast(scenarios.load(), env.checks.asked, env.implementation.features))


@pytest.mark.parametrize("requirement", [pytest.param(id, marks=requirements(id)) for id in judging.OF_DOMAINS])
def test_scenarios(run: Recorded[ScenariosWithDomains], requirement: str) -> None:
    """Every scenario MUST come to rest at a placement that the contract permits, as far as this requirement says."""
    judging.judge(run, requirement)
