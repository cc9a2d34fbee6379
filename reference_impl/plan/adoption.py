"""The layout of a replica whose PodGangMap has been deleted, read from its live gangs (spec GM-44, GM-45).

Nothing is created or deleted by it: gangs keep their names, and members stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reference_impl.api.models import PodGang
from reference_impl.plan import labels
from reference_impl.plan.components import Component
from reference_impl.plan.epochs import Epochs, order
from reference_impl.plan.fitting import fitted
from reference_impl.plan.layout import Entry, Layout, Role
from reference_impl.plan.observed import Observed

ROLES = frozenset(Role)


def live_layout(gangs: Iterable[PodGang], observed: Observed) -> Layout:
    """The entries that gangs belong to by their labels, with the members that name them (GM-16)."""
    found: dict[str, Entry] = {}
    for gang in gangs:
        meta = gang.metadata
        key, role = meta.label(labels.EPOCH), meta.label(labels.GANG_ROLE)
        if key and role in ROLES:
            found[key] = Entry(key, meta.label(labels.GENERATION_HASH), Role(role))
    for clique, pods in observed.pods.items():
        for pod in pods:
            if pod.entry in found and found[pod.entry].anchor:
                count = found[pod.entry].cliques.get(clique, 0)
                found[pod.entry] = found[pod.entry].with_pods(clique, count + 1)
    for group, replicas in observed.replicas.items():
        for index, replica in replicas.items():
            if replica.entry in found:
                held = found[replica.entry].groups.get(group, ())
                found[replica.entry] = found[replica.entry].with_indices(group, (*held, index))
    return tuple(sorted(found.values(), key=lambda entry: order(entry.key)))


def adopted(
    live: Layout, components: Sequence[Component], observed: Observed, generation: str, epochs: Epochs
) -> Layout:
    """The layout that live gangs show, with all members; that of a new replica if no gang is live."""
    return fitted(live, components, observed, generation, epochs)
