"""Judge a placement at every step, not only at the end, by the rules about capacity and domains and the rule that base
gangs come before scaled gangs.

The steps are the changes that a watch shows, in their order. A gang may be partly bound while it is being bound (GS-23
is about time and is judged elsewhere). At the end of the history, the cluster must be at rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from conformance.grove.scheduling.instance import Instance, SchedulingOutcome, is_admitted
from conformance.grove.scheduling.rules import Breach, safety, verdict


@dataclass(frozen=True)
class PodBound:
    """A pod was bound to a node. `gang` and `group` are empty if the pod does not belong to a gang."""

    pod: str
    gang: str
    group: str
    node: str
    replaced_pod: str = ""
    """The running pod that this pod replaces after an eviction; empty if there is none."""


@dataclass(frozen=True)
class PodDeleted:
    """A pod is gone: either a running pod of the instance, or a pod that was bound in this history."""

    pod: str


def find_breaches(
    instance: Instance, steps: Iterable[PodBound | PodDeleted], *, recreated: bool = False
) -> list[Breach]:
    """Return the distinct breaches during the steps, then the breaches at the end. `recreated`: see
    `SchedulingOutcome`."""
    alive: dict[str, PodBound] = {}
    evicted: set[str] = set()
    breaches: dict[Breach, None] = {}
    admitted_gangs: set[str] = set()
    for step in steps:
        if isinstance(step, PodBound):
            alive[step.pod] = step
        elif alive.pop(step.pod, None) is None:
            evicted.add(step.pod)
        current_outcome = outcome(alive.values(), evicted, recreated=recreated)
        admitted_gangs |= {gang.name for gang in instance.gangs if is_admitted(instance, current_outcome, gang)}
        breaches |= dict.fromkeys(safety(instance, current_outcome))
    final_breaches = verdict(instance, outcome(alive.values(), evicted, recreated=recreated))
    breaches |= dict.fromkeys(
        _as_partial_eviction(breach) if breach.gang in admitted_gangs else breach for breach in final_breaches
    )
    return list(breaches)


def _as_partial_eviction(breach: Breach) -> Breach:
    """Return the breach of a gang that had its minimum earlier: such a gang was not placed partially, but evicted
    partially."""
    if breach.rule not in ("GS-20", "GS-21"):
        return breach
    return replace(breach, rule="GS-31", text=f"was placed as a whole, and pods of it were evicted: {breach.text}")


def outcome(bound: Iterable[PodBound], evicted: Iterable[str] = (), *, recreated: bool = False) -> SchedulingOutcome:
    """Return the outcome in which exactly these pods are bound."""
    placed: dict[str, dict[str, Counter[str]]] = {}
    alive = list(bound)
    for pod in (pod for pod in alive if pod.gang):
        placed.setdefault(pod.gang, {}).setdefault(pod.group, Counter())[pod.node] += 1
    victims = frozenset(evicted)
    return SchedulingOutcome(placed, victims, recreated, victims.intersection(pod.replaced_pod for pod in alive))
