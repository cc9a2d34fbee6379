"""The slots of a component: the places for its members in the entries of a layout, and which members an update still
has to move (spec COH-125, COH-126, COH-197, COH-206)."""

from __future__ import annotations

from dataclasses import dataclass

from reference_impl.plan.components import Key, Kind
from reference_impl.plan.layout import Entry, Layout
from reference_impl.plan.observed import Observed


@dataclass(frozen=True)
class Slot:
    """A place in an entry for a pod of a clique, or for a replica of a scaling group."""

    entry: str
    has_current_template: bool
    """Whether the slot's member has the current template, or will have it when it is created."""
    available: bool
    turn: tuple[int, ...]
    """The order in which slots of the same availability are moved."""
    index: int = -1
    """The replica index in a scaling group, or -1 for a pod."""


def slots(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
    """Return all slots of a component in the order in which an update moves them: unavailable members first.

    The progress of an update is derived from these slots and not stored as a number. An update that continues, reverts
    or replaces another update determines the remaining work from the slots. An existing member is judged by its
    template, and a slot without a member by the generation of its entry.
    """
    all_slots = [
        slot
        for position, entry in enumerate(layout)
        for slot in (
            _of_pods(entry, position, key, observed, generation)
            if key.kind is Kind.CLIQUE
            else _of_replicas(entry, key, observed, generation)
        )
    ]
    return sorted(all_slots, key=lambda slot: (slot.available, slot.turn))


def _of_pods(entry: Entry, position: int, key: Key, observed: Observed, generation: str) -> list[Slot]:
    count = entry.count(key)
    pods = observed.pods_in(key.name, entry.key)
    remaining = pods[max(0, len(pods) - count) :]  # the other pods are about to be deleted
    refilled = observed.recreates(entry, key, generation)
    lost_slots = [Slot(entry.key, refilled, False, (0, position, number)) for number in range(count - len(remaining))]
    return lost_slots + [
        Slot(entry.key, pod.current, pod.ready, (1, position, number))
        for number, pod in enumerate(remaining, len(lost_slots))
    ]


def _of_replicas(entry: Entry, key: Key, observed: Observed, generation: str) -> list[Slot]:
    result = []
    for index in entry.groups.get(key.name, ()):
        replica = observed.replica(key, index, entry.key)
        is_done = observed.recreates(entry, key, generation) if replica is None else replica.current
        available = replica is not None and replica.available
        result.append(Slot(entry.key, is_done, available, (index,), index))
    return result
