"""The layout of a replica whose PodGangMap has been deleted, derived from its live gangs (spec GM-44, GM-45).

Adopting a layout creates and deletes no objects. Gangs keep their names, and members stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from reference_impl.api.models import PodCliqueSet, PodGang
from reference_impl.plan import children, labels, names
from reference_impl.plan.components import Component
from reference_impl.plan.epochs import Epochs, sort_key
from reference_impl.plan.fitting import fitted_layout
from reference_impl.plan.layout import Entry, Layout, Role
from reference_impl.plan.observed import Observed

ROLES = frozenset(Role)


EntryByReplica = Mapping[str, Mapping[int, str]]
"""The entry of each replica, by scaling group (config name) and replica index."""


def named_members(pcs: PodCliqueSet, index: int, gangs: Iterable[PodGang]) -> EntryByReplica:
    """Return the scaling group replicas for which gangs of a replica have PodGroups, each with the newest entry that
    has such a PodGroup."""
    entries: dict[str, str] = {}
    for gang in sorted(gangs, key=lambda gang: sort_key(gang.metadata.label(labels.EPOCH))):
        entries |= dict.fromkeys((group.name for group in gang.spec.podgroups), gang.metadata.label(labels.EPOCH))
    members: dict[str, dict[int, str]] = {}
    for config in children.group_configs(pcs):
        group = names.scaling_group(pcs.metadata.name, index, config.name)
        for clique, entry in entries.items():
            index_text, _, template = clique.removeprefix(f"{group}-").partition("-")
            if clique.startswith(f"{group}-") and index_text.isdigit() and template in config.clique_names:
                members.setdefault(config.name, {})[int(index_text)] = entry
    return members


def live_layout(gangs: Iterable[PodGang], observed: Observed, entry_by_replica: EntryByReplica | None = None) -> Layout:
    """Return the entries that the gangs' labels describe, with the members whose labels name them (GM-16). A scaling
    group replica without any pod or clique, for example because it is being moved, is placed in the entry that
    `entry_by_replica` gives for it."""
    entries_by_key: dict[str, Entry] = {}
    for gang in gangs:
        meta = gang.metadata
        key, role = meta.label(labels.EPOCH), meta.label(labels.GANG_ROLE)
        if key and role in ROLES:
            entries_by_key[key] = Entry(key, meta.label(labels.GENERATION_HASH), Role(role))
    for clique, pods in observed.pods.items():
        for pod in pods:
            if pod.entry in entries_by_key and entries_by_key[pod.entry].anchor:
                count = entries_by_key[pod.entry].cliques.get(clique, 0)
                entries_by_key[pod.entry] = entries_by_key[pod.entry].with_pods(clique, count + 1)
    for group, replicas in observed.replicas.items():
        for index, replica in replicas.items():
            if replica.entry in entries_by_key:
                indices = entries_by_key[replica.entry].groups.get(group, ())
                entries_by_key[replica.entry] = entries_by_key[replica.entry].with_indices(group, (*indices, index))
    for group, entries in (entry_by_replica or {}).items():
        for index, key in entries.items():
            if key in entries_by_key and index not in observed.replicas.get(group, {}):
                indices = entries_by_key[key].groups.get(group, ())
                entries_by_key[key] = entries_by_key[key].with_indices(group, (*indices, index))
    return _with_dependencies(sorted(entries_by_key.values(), key=lambda entry: sort_key(entry.key)))


def _with_dependencies(entries: Sequence[Entry]) -> Layout:
    """Return the entries with their dependencies. Each entry depends on the previous entry if both belong to the same
    deployment or update (GM-155). The entry for replicas that scaling adds depends on an anchor (GM-34)."""
    chained: list[Entry] = []
    for entry in entries:
        previous_entry = chained[-1] if chained else None
        follows = (
            previous_entry is not None
            and previous_entry.generation == entry.generation
            and entry.role is not Role.SCALE_OUT
        )
        chained.append(
            replace(entry, depends_on=(previous_entry.key,)) if previous_entry is not None and follows else entry
        )
    return tuple(chained)


def adopted_layout(
    live: Layout, components: Sequence[Component], observed: Observed, generation: str, epochs: Epochs
) -> Layout:
    """Return the layout of the live gangs with all members added, or the layout of a new replica if no gang is live."""
    return fitted_layout(live, components, observed, generation, epochs)
