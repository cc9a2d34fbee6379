"""Generated instances for one run, determined by its seed."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from conformance.grove.scheduling.instance import Instance
from conformance.grove.scheduling.scenarios import Expectation, Scenario

NO_PREFERENCES, ONE_LEVEL = "no-preferred-topology", "one-topology-level"
"""Features of schedulers whose API cannot express a preferred domain, or domains within domains."""
TRIES = 60
"""Maximum number of generated instances for each one that is played."""


class _Enough(Exception):
    """Enough instances were found."""


def scenarios(number: int, count: int, checks: tuple[str, ...], features: Collection[str] = ()) -> list[Scenario]:
    """Return `count` generated instances that are worth playing and that a scheduler with these features can express,
    the same for the same `number`. Their ids are `drawn-<i>`."""
    # Slow to import, and most runs draw nothing.
    from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

    from conformance.grove.scheduling.strategies import instances

    drawn: list[Instance] = []

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
        if len(drawn) == count:
            raise _Enough
        if instance not in drawn and playable(instance) and contended(instance) and expressible(instance, features):
            drawn.append(instance)

    with contextlib.suppress(_Enough):
        draw()
    about = f"drawn with seed {number}"
    return [_scenario(f"drawn-{i}", about, instance, checks) for i, instance in enumerate(drawn)]


def _scenario(name: str, about: str, instance: Instance, checks: tuple[str, ...]) -> Scenario:
    named = Instance(instance.nodes, instance.gangs, instance.running, name)
    return Scenario(name, about, named, Expectation(), checks=checks)


def playable(instance: Instance) -> bool:
    """Return whether the rules about the instance are settled: no minimum is 0, whose meaning is open (GS-45), and
    gates do not affect who is first. Those of scaled gangs are removed after other gangs of lower priority were placed,
    which is not a mistake."""
    scaled = [gang for gang in instance.gangs if gang.base]
    overtaken = any(other.priority < gang.priority for gang in scaled for other in instance.gangs)
    return not overtaken and not instance.zero_minimums


def expressible(instance: Instance, features: Collection[str]) -> bool:
    """Return whether the constraints of the instance can be expressed for a scheduler with these features."""
    scopes = [scope for gang in instance.gangs for scope in gang.scopes]
    if NO_PREFERENCES in features and any(scope.preferred for scope in scopes):
        return False
    required = [sum(bool(scope.required) for scope in gang.scopes) for gang in instance.gangs]
    return ONE_LEVEL not in features or max(required, default=0) <= 1


def contended(instance: Instance) -> bool:
    """Return whether something waits, there are several nodes, and not everything fits."""
    demand = sum(group.asks.get("gpus", 0) * group.desired for gang in instance.gangs for group in gang.groups)
    supply = sum(node.capacity.get("gpus", 0) for node in instance.nodes if node.schedulable)
    waits = any(gang.name not in {pod.gang for pod in instance.running} for gang in instance.gangs)
    return waits and len(instance.nodes) > 1 and 0 < supply < demand
