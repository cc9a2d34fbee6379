"""Read PodGangMaps and statuses in every shape that a version of the proposal defines (COH-005 … COH-022).

A map's entries are keyed by the name of their gang or by an *epoch*. An entry with an epoch and the role Tail or
ScaleOut stands for one gang for each replica that it lists; these gangs are identified by their epoch label and their
members.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile
from typing import Any

from conformance.grove import gang_maps, updates
from conformance.grove.coherent.model import Entry, Layout
from conformance.grove.fields import (
    Document,
    at,
    condition_is,
    items,
    label,
    mapping,
    name,
    number,
    text,
    texts,
)
from conformance.grove.labels import ANCHOR_ROLE, EPOCH, GANG_ROLE

ANCHOR = "scheduling.grove.io/anchor"
"""The label that is `true` on gangs on which other gangs depend, if entries have names instead of epochs (COH-081)."""


def replica(gang_map: Document | None) -> int | None:
    """Return the index of the set replica that a map is about (COH-054)."""
    return number(gang_map, "spec", "podCliqueSetReplicaIndex")


def entries(gang_map: Document | None) -> Layout:
    """Return the gangs that a map requests, in its order; entries without members are left out."""
    gangs = (gang for entry in gang_maps.entry_documents(gang_map) for gang in _gangs(entry))
    return tuple(entry for entry in gangs if not entry.is_empty)


def is_by_epoch(gang_map: Document | None) -> bool:
    """Return whether the entries of a map are keyed by epochs. If so, the labels of a PodGang name its entry, and
    nothing is known about a PodGang before it exists."""
    return any(text(entry, "epoch") and not text(entry, "name") for entry in items(gang_map, "spec", "entries"))


def entries_without_last(gang_map: Document | None) -> list[Mapping[str, Any]]:
    """Return the entries of a map except the last one that has members."""
    all_entries = items(gang_map, "spec", "entries")
    last_filled = max(
        (place for place, entry in enumerate(all_entries) if not all(gang.is_empty for gang in _gangs(entry))),
        default=-1,
    )
    return [entry for place, entry in enumerate(all_entries) if place != last_filled]


def generations(gang_map: Document | None) -> set[str]:
    """Return the generation hashes of a map's entries."""
    return {text(entry, "podCliqueSetGenerationHash") for entry in items(gang_map, "spec", "entries")}


def is_anchor(gang: Document | None) -> bool:
    """Return whether a PodGang is marked as an anchor (COH-009, COH-081, COH-082)."""
    return label(gang, ANCHOR) == "true" or label(gang, GANG_ROLE) == ANCHOR_ROLE


def key_of(gang: Document | None, groups: Mapping[str, str]) -> str:
    """Return the key of the entry that a PodGang belongs to. `groups`: member clique → its scaling group's template
    name and replica index, as `group/index`."""
    epoch = label(gang, EPOCH)
    if not epoch:
        return name(gang)
    if label(gang, GANG_ROLE) == ANCHOR_ROLE:
        return epoch
    replicas = {
        groups[clique] for group in items(gang, "spec", "podgroups") if (clique := text(group, "name")) in groups
    }
    return f"{epoch}/{replicas.pop()}" if len(replicas) == 1 else epoch


def gang_was_ready(gang: Document | None) -> bool:
    """Return whether a PodGang's status reports that it is or was Ready (COH-015, COH-087, COH-088)."""
    if text(gang, "status", "lastReady"):
        return True
    return "True" in (condition_is(gang, "Ready"), condition_is(gang, "Available"))


def gang_was_scheduled(gang: Document | None) -> bool:
    """Return whether a PodGang's status reports that it is or was scheduled (COH-086)."""
    return text(gang, "status", "lastScheduled") != "" or condition_is(gang, "Scheduled") == "True"


def scopes(states: Iterable[Document]) -> list[tuple[str, ...]]:
    """Return the different scopes, as names, that these states of a set list. States before the first scope are
    skipped, because the start of an update may be written before its scope."""
    scope_names = (tuple(sorted(name for _, name in scope(state))) for state in states)
    return sorted(set(dropwhile(operator.not_, scope_names)))


def scope(pcs: Document | None) -> set[tuple[str, str]]:
    """Return the components that a set's update must roll: kind and template name (COH-010, COH-068). A clique may also
    be listed by the names of its PodCliques in all replicas."""
    progress, object_name = updates.progress(pcs), re.compile(rf"^{re.escape(name(pcs))}-\d+-")
    cliques = _first_texts(progress, "updatedStandalonePodCliques", "inScopeStandalonePodCliques")
    groups = _first_texts(progress, "updatedPodCliqueScalingGroups", "inScopePodCliqueScalingGroups")
    return {("clique", object_name.sub("", member, 1)) for member in cliques} | {("group", member) for member in groups}


def in_flight(pcs: Document | None) -> dict[int, list[str]]:
    """Return the gangs that a set reports as in flight, by replica: their names or epochs (COH-011)."""
    return {index: _in_flight(entry) for entry, index in _updating_entries(pcs)}


def stalls(pcs: Document | None) -> dict[int, str]:
    """Return the reasons for stalled updates that a set reports, by replica (COH-012)."""
    messages = {index: text(entry, "errorMessage") or text(entry, "message") for entry, index in _updating_entries(pcs)}
    return {index: words for index, words in messages.items() if words}


# -- within ------------------------------------------------------------------------------------------------------------


def _gangs(entry: Document) -> Iterator[Entry]:
    """Yield the gangs of one entry of a map."""
    key, generation = _key(entry), text(entry, "podCliqueSetGenerationHash")
    cliques = {member: count for member, count in _integer_values(at(entry, "podCliques")).items() if count}
    groups = {member: group_indices for member, group_indices in _groups(entry).items() if group_indices}
    dependent = _has_dependencies(entry)
    role = text(entry, "role")
    if role in ("", ANCHOR_ROLE):
        yield Entry(key, generation, cliques, groups, _entry_is_anchor(entry, cliques, dependent), dependent)
        return
    for group, group_indices in groups.items():
        for index in group_indices:
            yield Entry(f"{key}/{group}/{index}", generation, {}, {group: (index,)}, False, dependent)


def _key(entry: Document) -> str:
    return text(entry, "name") or text(entry, "epoch")


def _entry_is_anchor(entry: Document, cliques: Mapping[str, int], dependent: bool) -> bool:
    """Return whether an entry is an anchor: by its role, by the labels of its gang or, without both, if it depends on
    nothing or holds standalone pods (COH-009)."""
    if role := text(entry, "role"):
        return role == ANCHOR_ROLE
    if anchor_label := mapping(entry, "labels").get(ANCHOR):
        return anchor_label == "true"
    return bool(cliques) or not dependent


def _has_dependencies(entry: Document) -> bool:
    """Return whether an entry depends on other entries, by a selector or by names or epochs (COH-007)."""
    value = at(entry, "dependsOn")
    if isinstance(value, list):
        return any(texts(entry, "dependsOn"))
    return isinstance(value, Mapping)


def _groups(entry: Document) -> dict[str, tuple[int, ...]]:
    value = at(entry, "pcsgReplicaIndices")
    return (
        {group: _integer_items(group_indices) for group, group_indices in value.items()}
        if isinstance(value, Mapping)
        else {}
    )


def _updating_entries(pcs: Document | None) -> Iterator[tuple[Document, int]]:
    for entry in items(updates.progress(pcs), "currentlyUpdating"):
        index = number(entry, "replicaIndex")
        if not text(entry, "updateEndedAt"):
            yield entry, 0 if index is None else index  # JSON omits zeros


def _in_flight(entry: Document) -> list[str]:
    single_epoch = text(entry, "inFlightEpoch")
    return _first_texts(entry, "inFlightPodGangs", "inFlightEpochs") or ([single_epoch] if single_epoch else [])


def _first_texts(document: Document, *fields: str) -> list[str]:
    return next((values for field in fields if (values := texts(document, field))), [])


def _integer_values(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, int) and not isinstance(v, bool)}


def _integer_items(value: Any) -> tuple[int, ...]:
    return tuple(item for item in value if isinstance(item, int)) if isinstance(value, list) else ()
