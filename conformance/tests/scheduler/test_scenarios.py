"""Every scenario of the specification that is about a gang scheduler alone, and some sampled ones."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling import sampling, scenarios
from conformance.suite.requirement import requirements
from conformance.testing import judging
from conformance.testing.scene import Recorded, SceneEnvironment

SAMPLED = 10


class ScenariosOfSchedulers(judging.Scenarios):
    """The scenarios at the same time, each on nodes of its own: those that requirements need which are judged. The
    scheduler finds them when it starts. Those with scaled gangs are played once more with pods that have no gates."""

    def play(self, env: SceneEnvironment) -> None:
        asked, features = env.checks.asked, env.implementation.features
        sampled = sampling.scenarios(env.random.getrandbits(32), SAMPLED, ("SCHED-060",), features)
        cast = judging.cast(scenarios.load(), asked, features)
        ungated = [one for one in cast if judging.UNGATED in one.checks and judging.UNGATED in asked]
        self.play_all(env, [*cast, *(sampled if "SCHED-060" in asked else ())], ungated)


@pytest.mark.parametrize("requirement", [pytest.param(id, marks=requirements(id)) for id in judging.OF_SCHEDULERS])
def test_scenarios(run: Recorded[ScenariosOfSchedulers], requirement: str) -> None:
    """Every scenario MUST come to rest at a placement that the contract permits, as far as this requirement says."""
    judging.judge(run, requirement)
