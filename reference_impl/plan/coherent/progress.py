"""The entries that an update has created, and whether the next sub-step may start (spec COH-150 to COH-157,
COH-223)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from reference_impl.plan.components import Component, cliques
from reference_impl.plan.layout import Entry, Layout
from reference_impl.plan.observed import Observed


def own_entries(layout: Layout, generation: str, components: Sequence[Component], observed: Observed) -> Layout:
    """Return the entries that the current update has created, which are the entries of its generation that are newer
    than all other entries.

    An entry of the same generation that is older than some other entry existed before, because the update reverts to a
    generation that still has members (COH-206). Its members are up to date, but the update does not wait for it, and no
    other pods join it (COH-164). The same applies to an entry with members that the update still has to move: other
    strategies give all entries the current generation before they have replaced the members (GM-71), and the set may be
    switched to Coherent in between.
    """

    def is_new(entry: Entry) -> bool:
        outdated = any(observed.outdated(entry, component.key) for component in components)
        return entry.generation == generation and not outdated

    return tuple(reversed(list(takewhile(is_new, reversed(layout)))))


def open_anchor(update_entries: Layout) -> Entry | None:
    """Return the anchor that standalone pods join, which is the newest anchor that this update has created
    (COH-038)."""
    return next((entry for entry in reversed(update_entries) if entry.anchor), None)


def unready_entries(update_entries: Layout, components: Sequence[Component], observed: Observed) -> tuple[str, ...]:
    """Return the entries of this update with gangs that have never been Ready. Only the newest sub-step can have such
    gangs, since each sub-step waits for the gangs of the previous sub-step. The update does not wait for gangs of an
    abandoned generation (COH-198)."""
    return tuple(
        entry.key
        for entry in update_entries
        if entry.key not in observed.once_ready_entries and any(entry.count(component.key) for component in components)
    )


def incomplete_reason(update_entries: Layout, components: Sequence[Component], observed: Observed) -> str | None:
    """Return why the open anchor is incomplete: it has taken in pods above its minimum and some are not Ready. Return
    None if it is complete, or there is none (COH-151, COH-226)."""
    anchor = open_anchor(update_entries)
    if anchor is None:
        return None
    for component in cliques(components):
        expected = anchor.count(component.key)
        ready = sum(pod.ready for pod in observed.pods_in(component.key.name, anchor.key))
        if expected > component.minimum and ready < expected:
            return f"epoch {anchor.key} has {ready} of {expected} Ready pods of {component.key}"
    return None


def in_flight_entries(update_entries: Layout, components: Sequence[Component], observed: Observed) -> tuple[str, ...]:
    """Return the entries that the next sub-step waits for. They are derived from the observed state, so that they are
    the same after a restart (COH-069, COH-156)."""
    if waiting := unready_entries(update_entries, components, observed):
        return waiting
    anchor = open_anchor(update_entries)
    if anchor is not None and incomplete_reason(update_entries, components, observed) is not None:
        return (anchor.key,)
    return ()
