"""The entries that an update has created, and whether the next sub-step may begin (spec COH-150 to COH-157,
COH-223)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from reference_impl.plan.components import Component, cliques
from reference_impl.plan.layout import Entry, Layout
from reference_impl.plan.observed import Observed


def own_entries(layout: Layout, generation: str, components: Sequence[Component], observed: Observed) -> Layout:
    """The entries that the present update has created: those of its generation that are newer than all others.

    An entry of the same generation that is older than another one was created before: the update reverts to a
    generation that is still there (COH-206). It is done, but neither awaited nor joined by other pods (COH-164).
    Neither is an entry with members that the update still has to move: another strategy gives all entries the present
    generation before it has replaced their members (GM-71), and the set may be switched to Coherent in between.
    """

    def is_new(entry: Entry) -> bool:
        outdated = any(observed.outdated(entry, component.key) for component in components)
        return entry.generation == generation and not outdated

    return tuple(reversed(list(takewhile(is_new, reversed(layout)))))


def open_anchor(update_entries: Layout) -> Entry | None:
    """The anchor that standalone pods join: the newest one that this update has created (COH-038)."""
    return next((entry for entry in reversed(update_entries) if entry.anchor), None)


def not_ready(update_entries: Layout, components: Sequence[Component], observed: Observed) -> tuple[str, ...]:
    """Entries of this update with gangs that have never been Ready. Only the newest sub-step can have any,
    since each one waits for the gangs of the one before. Gangs of an abandoned generation are not awaited (COH-198)."""
    return tuple(
        entry.key
        for entry in update_entries
        if entry.key not in observed.been_ready and any(entry.count(component.key) for component in components)
    )


def incomplete(update_entries: Layout, components: Sequence[Component], observed: Observed) -> str | None:
    """The reason why an anchor that other pods have joined is not complete: all its pods of a clique have to be Ready
    (COH-151, COH-226)."""
    anchor = open_anchor(update_entries)
    if anchor is None:
        return None
    for component in cliques(components):
        expected = anchor.count(component.key)
        ready = sum(pod.ready for pod in observed.pods_in(component.key.name, anchor.key))
        if expected > component.minimum and ready < expected:
            return f"epoch {anchor.key} has {ready} of {expected} Ready pods of {component.key}"
    return None


def in_flight(update_entries: Layout, components: Sequence[Component], observed: Observed) -> tuple[str, ...]:
    """The entries that the next sub-step waits for, derived from what there is, so that it is the same after a
    restart (COH-069, COH-156)."""
    if waiting := not_ready(update_entries, components, observed):
        return waiting
    anchor = open_anchor(update_entries)
    if anchor is not None and incomplete(update_entries, components, observed) is not None:
        return (anchor.key,)
    return ()
