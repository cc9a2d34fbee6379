"""Tests that run every scenario of the specification about topology domains with a gang scheduler alone."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling import sampling, scenarios
from conformance.suite.registry.requirement import requirements
from conformance.testing import judging
from conformance.testing.scene import Exclusive, Recorded, SceneEnvironment


class ScenariosWithDomains(judging.Scenarios):
    """All scenarios run at the same time, each on its own nodes: the scenarios that the judged requirements need, and
    generated instances, which any requirement may need. The scheduler finds them when it starts."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        features = env.implementation.features
        generated = sampling.scenarios(env.random.getrandbits(32), judging.GENERATED_INSTANCES, (), features)
        self.run_all(env, [*judging.expressible_scenarios(scenarios.load(), env.checks.selected, features), *generated])


@pytest.mark.parametrize(
    "requirement", [pytest.param(id, marks=requirements(id)) for id in judging.DOMAIN_REQUIREMENTS]
)
def test_scenarios(run: Recorded[ScenariosWithDomains], requirement: str) -> None:
    """Every scenario comes to rest at a placement that this requirement permits."""
    judging.judge(run, requirement)
