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
    """A replica of the set."""

    layout: Layout
    observed: Observed


def scope(
    changed: Iterable[Key], previous: Iterable[Key], replicas: Iterable[ReplicaState], generation: str
) -> frozenset[Key]:
    """The components in scope from the moment at which a new generation is recorded.

    `changed` are the components whose template differs from the one that their objects have, `previous` are those of
    the update that this one interrupts. Of both, the ones with nothing left to do drop out: they have converged, or the
    change has been taken back before they were touched. An empty scope ends the update at once (COH-113).
    """
    states = list(replicas)
    return frozenset(
        key
        for key in {*changed, *previous}
        if any(not slot.done for replica in states for slot in slots(replica.layout, key, replica.observed, generation))
    )
