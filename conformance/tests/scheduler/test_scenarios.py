"""Tests that run every scenario of the specification about a gang scheduler alone, and some generated scenarios."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling import sampling, scenarios
from conformance.suite.registry.requirement import requirements
from conformance.testing import judging
from conformance.testing.scene import Exclusive, Recorded, SceneEnvironment, requirement


class ScenariosOfSchedulers(judging.Scenarios):
    """All scenarios run at the same time, each on its own nodes: the scenarios that the judged requirements need, and
    generated scenarios, which any requirement may need. The scheduler finds them when it starts."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        features = env.implementation.features
        generated = sampling.scenarios(env.random.getrandbits(32), judging.GENERATED_INSTANCES, (), features)
        self.run_all(env, [*judging.expressible_scenarios(scenarios.load(), env.checks.selected, features), *generated])


class HostPorts(judging.Scenarios):
    """The scenarios about host ports, run at the same time."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        self.run_all(
            env, judging.expressible_scenarios(scenarios.load(), env.checks.selected, env.implementation.features)
        )


@pytest.mark.parametrize("id", [pytest.param(id, marks=requirements(id)) for id in judging.SCHEDULER_REQUIREMENTS])
def test_scenarios(run: Recorded[ScenariosOfSchedulers], id: str) -> None:
    """Each breach of a rule in a scenario or a generated instance counts against the requirement that the rule belongs
    to."""
    judging.judge(run, id)


@requirement(judging.HOST_PORTS)
def test_host_ports_are_used_once(run: Recorded[HostPorts]) -> None:
    judging.judge(run, judging.HOST_PORTS)
