"""Every scenario of the specification that is about domains, of a gang scheduler alone."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling import sampling, scenarios
from conformance.suite.registry.requirement import requirements
from conformance.testing import judging
from conformance.testing.scene import Exclusive, Recorded, SceneEnvironment


class ScenariosWithDomains(judging.Scenarios):
    """The scenarios at the same time, each on nodes of its own: those that requirements need which are judged, and
    generated instances, which any of them may need. The scheduler finds them when it starts."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        features = env.implementation.features
        generated = sampling.scenarios(env.random.getrandbits(32), judging.GENERATED, (), features)
        self.play_all(env, [*judging.cast(scenarios.load(), env.checks.selected, features), *generated])


@pytest.mark.parametrize("requirement", [pytest.param(id, marks=requirements(id)) for id in judging.OF_DOMAINS])
def test_scenarios(run: Recorded[ScenariosWithDomains], requirement: str) -> None:
    """Every scenario must come to rest at a placement that the contract permits, as far as this requirement goes."""
    judging.judge(run, requirement)
