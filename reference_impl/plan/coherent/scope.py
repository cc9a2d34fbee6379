"""The scope of a coherent update: the components that it changes (spec COH-111 to COH-114, COH-195, COH-207)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reference_impl.plan.coherent.slots import slots
from reference_impl.plan.components import Key
from reference_impl.plan.layout import Layout
from reference_impl.plan.observed import Observed


@dataclass(frozen=True)
class ReplicaState:
    """The layout and the observed state of one replica of the set."""

    layout: Layout
    observed: Observed


def scope(
    changed: Iterable[Key], previous: Iterable[Key], replicas: Iterable[ReplicaState], generation: str
) -> frozenset[Key]:
    """Return the components that are in scope once a new generation is recorded.

    `changed` holds the components whose template differs from the template of their objects, and `previous` holds the
    components of the update that this update interrupts. A component with nothing left to do is not in scope: it has
    converged, or the change was reverted before the component was touched. An empty scope ends the update at once
    (COH-113).
    """
    states = list(replicas)
    return frozenset(
        key
        for key in {*changed, *previous}
        if any(
            not slot.has_current_template
            for replica in states
            for slot in slots(replica.layout, key, replica.observed, generation)
        )
    )
