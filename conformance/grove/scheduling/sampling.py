"""Generated instances for one run, determined by its seed."""

from __future__ import annotations

import contextlib

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from conformance.grove.scheduling.instance import Instance
from conformance.grove.scheduling.scenarios import Expectation, Scenario
from conformance.grove.scheduling.strategies import instances

TRIES = 30
"""Maximum number of generated instances for each one that is kept."""


class _Enough(Exception):
    """Enough instances were found."""


def scenarios(number: int, count: int, checks: tuple[str, ...]) -> list[Scenario]:
    """Return `count` generated instances that are worth playing, the same for the same `number`. Their ids are
    `drawn-<i>`."""
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
    """Return whether gates do not affect who is first. The gates of scaled gangs are removed after other gangs of lower
    priority were placed, which is not a mistake."""
    scaled = [gang for gang in instance.gangs if gang.base]
    return not any(other.priority < gang.priority for gang in scaled for other in instance.gangs)


def contended(instance: Instance) -> bool:
    """Return whether something waits, there are several nodes, and not everything fits."""
    wanted = sum(group.asks.get("gpus", 0) * group.desired for gang in instance.gangs for group in gang.groups)
    there = sum(node.capacity.get("gpus", 0) for node in instance.nodes if node.schedulable)
    waits = any(gang.name not in {pod.gang for pod in instance.running} for gang in instance.gangs)
    return waits and len(instance.nodes) > 1 and 0 < there < wanted
