"""The layout of a replica whose PodGangMap does not exist, read from its live gangs (spec COH-214, COH-268 to COH-273).

Nothing is created or deleted by it: gangs keep their names, and members stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reference_impl.plan.coherent.components import Component, cliques
from reference_impl.plan.coherent.layout import Entry, Layout, compact
from reference_impl.plan.coherent.naming import NameSource, order
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.coherent.repair import repaired


@dataclass(frozen=True)
class LiveGang:
    """A PodGang that exists and is not terminating."""

    name: str
    generation: str | None
    """Its label `grove.io/podcliqueset-generation-hash`, if it has one."""
    anchor: bool
    """Its label `scheduling.grove.io/anchor`; for a gang without the generation label, that it has no label
    `grove.io/base-podgang`."""
    cliques: Mapping[str, int] = field(default_factory=dict)
    """Standalone clique by template name → its pods in this gang, also 0 if the gang has a PodGroup for the clique."""
    groups: Mapping[str, Iterable[int]] = field(default_factory=dict)
    """Scaling group by config name → its replicas in this gang."""


def adopted(
    gangs: Sequence[LiveGang],
    components: Sequence[Component],
    observed: Observed,
    generation: str,
    names: NameSource,
) -> Layout:
    """The layout of live gangs, in the order of their creation; none if there are no gangs (COH-269).

    `generation` is that of gangs without a label: the set's current one or, while an update is in progress, the one
    before it. A clique that only one gang holds has all its replicas there, also while pods are missing (COH-273).
    """
    if not gangs:
        return ()
    only = {name: holders[0] for name, holders in _holders(gangs).items() if len(holders) == 1}
    replicas = {component.key.name: component.replicas for component in cliques(components)}
    entries = [
        Entry(
            name=gang.name,
            generation=gang.generation or generation,
            cliques={
                clique: count
                for clique, found in gang.cliques.items()
                if (count := replicas.get(clique, 0) if only.get(clique) == gang.name else found) > 0
            },
            groups={group: held for group, indices in gang.groups.items() if (held := tuple(sorted(set(indices))))},
            anchor=gang.anchor,
        )
        for gang in sorted(gangs, key=lambda gang: order(gang.name))
    ]
    return repaired(compact(entries), components, observed, generation, names)


def _holders(gangs: Iterable[LiveGang]) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for gang in gangs:
        for clique in gang.cliques:
            result.setdefault(clique, []).append(gang.name)
    return result
