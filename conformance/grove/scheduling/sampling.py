"""A few generated instances for one run, by its seed."""

from __future__ import annotations

import contextlib

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from conformance.grove.scheduling.instance import Instance
from conformance.grove.scheduling.scenarios import Expectation, Scenario
from conformance.grove.scheduling.strategies import instances

TRIES = 30
"""Instances that are drawn at most for each that is kept."""


class _Enough(Exception):
    """As many as are wanted have been found."""


def scenarios(number: int, count: int, checks: tuple[str, ...]) -> list[Scenario]:
    """`count` instances that are worth playing, the same for the same number. Each is called `drawn-<i>`."""
    found: list[Instance] = []

    @seed(number)
    @settings(
        max_examples=count * TRIES,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(instances())
    def draw(instance: Instance) -> None:
        if len(found) == count:
            raise _Enough
        if instance not in found and playable(instance) and contended(instance):
            found.append(instance)

    with contextlib.suppress(_Enough):
        draw()
    about = f"drawn with seed {number}"
    return [_scenario(f"drawn-{i}", about, instance, checks) for i, instance in enumerate(found)]


def _scenario(name: str, about: str, instance: Instance, checks: tuple[str, ...]) -> Scenario:
    named = Instance(instance.nodes, instance.gangs, instance.running, name)
    return Scenario(name, about, named, Expectation(), checks=checks)


def playable(instance: Instance) -> bool:
    """Whether gates play no part in who comes first: pods of scaled gangs lose theirs when other gangs of lower
    priority have long been placed, which is nobody's mistake."""
    scaled = [gang for gang in instance.gangs if gang.base]
    return not any(other.priority < gang.priority for gang in scaled for other in instance.gangs)


def contended(instance: Instance) -> bool:
    """Whether somebody wants something, there are several nodes, and not all can have what they want."""
    wanted = sum(group.asks.get("gpus", 0) * group.desired for gang in instance.gangs for group in gang.groups)
    there = sum(node.capacity.get("gpus", 0) for node in instance.nodes if node.schedulable)
    waits = any(gang.name not in {pod.gang for pod in instance.running} for gang in instance.gangs)
    return waits and len(instance.nodes) > 1 and 0 < there < wanted
