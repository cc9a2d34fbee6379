"""The first layout of a replica of a set (spec COH-100 to COH-105)."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.plan.coherent.components import Component, cliques, groups
from reference_impl.plan.coherent.layout import Entry, Layout, compact, tail
from reference_impl.plan.coherent.naming import NameSource


def bootstrap(components: Iterable[Component], generation: str, names: NameSource) -> Layout:
    """One anchor with all standalone pods and `minAvailable` replicas of each scaling group, then one gang for each
    further replica of a scaling group. `components` are all those of the replica, in the template's order."""
    everything = [component for component in components if component.replicas > 0]
    rest = [
        (component.key.name, index)
        for component in groups(everything)
        for index in range(component.minimum, component.replicas)
    ]
    if not everything:
        return ()
    first, *others = names(1 + len(rest))
    anchor = Entry(
        name=first,
        generation=generation,
        cliques={component.key.name: component.replicas for component in cliques(everything)},
        groups={component.key.name: tuple(range(component.minimum)) for component in groups(everything)},
        anchor=True,
    )
    tails = [tail(name, generation, group, index) for name, (group, index) in zip(others, rest, strict=True)]
    return compact([anchor, *tails])
