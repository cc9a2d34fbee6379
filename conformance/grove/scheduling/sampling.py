"""Generate the instances of one run, determined by its seed."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from conformance.grove.scheduling.instance import Instance
from conformance.grove.scheduling.scenario_format import Expectation
from conformance.grove.scheduling.scenarios import Scenario

NO_PREFERENCES, ONE_LEVEL = "no-preferred-topology", "one-topology-level"
"""Features of schedulers whose API cannot express preferred domains, or nested domains."""
MAX_TRIES = 60
"""Maximum number of generated instances for each instance that is used."""


class _EnoughInstances(Exception):
    """Enough instances were found."""


def scenarios(number: int, count: int, checks: tuple[str, ...], features: Collection[str] = ()) -> list[Scenario]:
    """Return up to `count` generated instances that are worth running and that can be expressed for a scheduler with
    these features. `number` is the seed: the same seed gives the same instances. Their ids are `drawn-<i>`."""
    # hypothesis is slow to import, and most runs generate no instances.
    from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

    from conformance.grove.scheduling.strategies import instances

    chosen_instances: list[Instance] = []

    @seed(number)
    @settings(
        max_examples=count * MAX_TRIES,
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
        if len(chosen_instances) == count:
            raise _EnoughInstances
        if (
            instance not in chosen_instances
            and is_playable(instance)
            and is_contended(instance)
            and is_expressible(instance, features)
        ):
            chosen_instances.append(instance)

    with contextlib.suppress(_EnoughInstances):
        draw()
    about = f"drawn with seed {number}"
    return [_scenario(f"drawn-{i}", about, instance, checks) for i, instance in enumerate(chosen_instances)]


def _scenario(name: str, about: str, instance: Instance, checks: tuple[str, ...]) -> Scenario:
    named_instance = Instance(instance.nodes, instance.gangs, instance.running, name)
    return Scenario(name, about, named_instance, Expectation(), checks=checks)


def is_playable(instance: Instance) -> bool:
    """Return whether the contract defines the outcome of the instance. No minimum may be 0, whose meaning is open
    (GS-45). No gang may have lower priority than a scaled gang, because the gates of scaled gangs are removed only
    after such a gang may have been placed, which is not a mistake."""
    scaled_gangs = [gang for gang in instance.gangs if gang.base]
    can_be_overtaken = any(other.priority < gang.priority for gang in scaled_gangs for other in instance.gangs)
    return not can_be_overtaken and not instance.has_zero_minimum


def is_expressible(instance: Instance, features: Collection[str]) -> bool:
    """Return whether the constraints of the instance can be expressed for a scheduler with these features."""
    scopes = [scope for gang in instance.gangs for scope in gang.scopes]
    if NO_PREFERENCES in features and any(scope.preferred for scope in scopes):
        return False
    required = [sum(bool(scope.required) for scope in gang.scopes) for gang in instance.gangs]
    return ONE_LEVEL not in features or max(required, default=0) <= 1


def is_contended(instance: Instance) -> bool:
    """Return whether a gang is waiting, there are several nodes, and not everything fits."""
    demand = sum(group.requests.get("gpus", 0) * group.desired for gang in instance.gangs for group in gang.groups)
    supply = sum(node.capacity.get("gpus", 0) for node in instance.nodes if node.schedulable)
    has_waiting_gang = any(gang.name not in {pod.gang for pod in instance.running} for gang in instance.gangs)
    return has_waiting_gang and len(instance.nodes) > 1 and 0 < supply < demand
