"""Read the entries of PodGangMaps of the line `maps`, and compute the gangs that a set replica must have because of
them (gang-maps.md).

Members are identified by owner and spec, and gangs by the labels of their entry. Nothing is identified by name, so that
a wrong name fails only the checks about names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.grove import labels, names, template
from conformance.grove.fields import Document, at, controller, decimal, items, label, name, number, text, texts
from conformance.grove.labels import ANCHOR_ROLE, SCALE_OUT_ROLE, TAIL_ROLE
from conformance.grove.template import SetTemplate

MIGRATING = "PodGangMigrationInProgress"
"""The condition of a set while its gangs from an earlier operator version are being replaced."""


@dataclass(frozen=True)
class MapEntry:
    """An entry of a map (GM-31)."""

    epoch: str
    generation: str
    role: str
    cliques: Mapping[str, int]
    """Template of a standalone clique → number of pods, without zeros."""
    groups: Mapping[str, tuple[int, ...]]
    """Template of a scaling group → indices of its replicas, without empty lists."""
    depends_on: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Return whether the entry has no members."""
        return not self.cliques and not self.groups

    def summary(self) -> str:
        """Return the role and members of the entry as text: `Anchor a:2 g:[0, 1]`."""
        parts = [f"{clique}:{count}" for clique, count in sorted(self.cliques.items())]
        parts += [f"{group}:{list(indices)}" for group, indices in sorted(self.groups.items())]
        return " ".join([self.role, *parts])


@dataclass(frozen=True)
class EntryGang:
    """A gang that an entry stands for, with the full names of its PodCliques."""

    name: str
    entry: MapEntry
    cliques: tuple[str, ...]


def entries(document: Document | None) -> tuple[MapEntry, ...]:
    """Return the entries of a map in the order of their epochs; none if there is no map."""
    parsed = [
        MapEntry(
            text(item, "epoch"),
            text(item, "podCliqueSetGenerationHash"),
            text(item, "role"),
            {k: v for k, v in _mapping(item, "podCliques").items() if isinstance(v, int) and v},
            {k: _indices(v) for k, v in _mapping(item, "pcsgReplicaIndices").items() if isinstance(v, list) and v},
            tuple(texts(item, "dependsOn")),
        )
        for item in entry_documents(document)
    ]
    return tuple(sorted(parsed, key=lambda entry: (_epoch_number(entry), entry.epoch)))


def entry_documents(document: Document | None) -> list[Document]:
    """Return the entries of a map in their order, with standalone PodCliques renamed to their template names. The API's
    comment says "standalone PodClique name", which may also mean the name of the PodClique object (GM-31)."""
    prefix = names.clique(set_of(document), replica_of(document or {}), "")
    return [
        {**entry, "podCliques": {key.removeprefix(prefix): pods for key, pods in _mapping(entry, "podCliques").items()}}
        for entry in items(document, "spec", "entries")
    ]


def expected_first_entries(pcs: Document, generation: str) -> dict[str, object]:
    """Return the expected entries of a new replica, in the form of `observed_first_entries` (GM-34)."""
    set_template = template.read(pcs)
    base_replicas = {group.name: list(range(min(group.min_available, group.replicas))) for group in set_template.groups}
    tail_replicas = {
        group.name: list(range(group.min_available, group.replicas))
        for group in set_template.groups
        if group.replicas > group.min_available
    }
    return {
        ANCHOR_ROLE: [{clique.name: clique.replicas for clique in set_template.standalone}, base_replicas],
        TAIL_ROLE: tail_replicas,
        "others that hold something": [],
        "Tails that do not depend on the Anchor": [],
        "Tails that are not later than the Anchor": [],
        "generation hashes": [generation],
    }


def observed_first_entries(map_entries: Iterable[MapEntry]) -> dict[str, object]:
    """Return the contents of the entries of a new replica, for comparison with `expected_first_entries`. The number of
    Tails and the fields of empty entries, such as a ScaleOut for later replicas, are not compared because the contract
    leaves them open."""
    filled_entries = [entry for entry in map_entries if entry.role != TAIL_ROLE or not entry.is_empty]
    anchors, tails = ([entry for entry in filled_entries if entry.role == role] for role in (ANCHOR_ROLE, TAIL_ROLE))
    anchor = anchors[0] if anchors else None
    tail_replicas: dict[str, list[int]] = {}
    for tail in tails:
        for group, indices in tail.groups.items():
            tail_replicas[group] = sorted([*tail_replicas.get(group, []), *indices])
    remaining = [
        entry for entry in filled_entries if entry not in anchors[:1] and entry.role != TAIL_ROLE and not entry.is_empty
    ]
    return {
        ANCHOR_ROLE: [dict(anchor.cliques), {g: list(i) for g, i in anchor.groups.items()}] if anchor else None,
        TAIL_ROLE: tail_replicas,
        "others that hold something": [entry.summary() for entry in remaining],
        "Tails that do not depend on the Anchor": [
            tail.summary() for tail in tails if anchor is None or anchor.epoch not in tail.depends_on
        ],
        "Tails that are not later than the Anchor": [
            tail.summary() for tail in tails if anchor is None or _epoch_number(tail) <= _epoch_number(anchor)
        ],
        "generation hashes": sorted({entry.generation for entry in filled_entries if not entry.is_empty}),
    }


def _indices(values: list[object]) -> tuple[int, ...]:
    return tuple(sorted(value for value in values if isinstance(value, int)))


def _epoch_number(entry: MapEntry) -> int:
    epoch = decimal(entry.epoch)
    return -1 if epoch is None else epoch


def gangs(pcs: Document, replica: int, map_entries: Iterable[MapEntry]) -> list[EntryGang]:
    """Return the gangs that the entries of a replica stand for (GM-11, GM-12)."""
    set_template, set_name = template.read(pcs), name(pcs)
    result: list[EntryGang] = []
    for entry in map_entries:
        if entry.role == ANCHOR_ROLE:
            standalone = [names.clique(set_name, replica, clique) for clique in entry.cliques]
            anchor_members = [
                clique
                for group, indices in entry.groups.items()
                for index in indices
                for clique in members(set_template, replica, group, index)
            ]
            result.append(
                EntryGang(
                    names.anchor_gang(set_name, replica, entry.epoch),
                    entry,
                    tuple(sorted([*standalone, *anchor_members])),
                )
            )
            continue
        for group, indices in entry.groups.items():
            for index in indices:
                member_cliques = tuple(sorted(members(set_template, replica, group, index)))
                result.append(
                    EntryGang(names.member_gang(set_name, replica, entry.epoch, group, index), entry, member_cliques)
                )
    return [gang for gang in result if gang.cliques]


def members(set_template: SetTemplate, replica: int, group: str, index: int) -> list[str]:
    """Return the full names of the PodCliques of one replica of a scaling group."""
    group_name = names.scaling_group(set_template.name, replica, group)
    clique_names = next((config.cliques for config in set_template.groups if config.name == group), ())
    return [names.member_clique(group_name, index, clique) for clique in clique_names]


def placement_errors(
    map_entries: Iterable[MapEntry], sizes: Mapping[str, int], group_sizes: Mapping[str, int]
) -> list[str]:
    """Return an error for each component whose members the entries do not hold exactly once: pods of standalone cliques
    (`sizes`: template → replicas), and replicas of scaling groups (`group_sizes`: template → replicas)
    (GM-38)."""
    all_entries = list(map_entries)
    errors = []
    for clique, size in sorted(sizes.items()):
        if (placed := sum(entry.cliques.get(clique, 0) for entry in all_entries)) != size:
            errors.append(f"entries hold {placed} pods of {clique}, which has {size} replicas")
    for group, size in sorted(group_sizes.items()):
        indices = sorted(index for entry in all_entries for index in entry.groups.get(group, ()))
        if indices != list(range(size)):
            errors.append(f"entries hold the replicas {indices} of {group}, which has {size}")
    unknown_components = (
        {key for entry in all_entries for key in (*entry.cliques, *entry.groups)} - sizes.keys() - group_sizes.keys()
    )
    return errors + [f"entries hold {component}, which the set has not" for component in sorted(unknown_components)]


def unmet_dependencies(map_entries: Iterable[MapEntry]) -> list[str]:
    """Return an error for each dependency on an entry that the map does not have: such a dependency is never met
    (GM-64, GM-72)."""
    all_entries = list(map_entries)
    epochs = {entry.epoch for entry in all_entries}
    return [
        f"{entry.summary()} depends on {epoch or 'an is_empty epoch'}, which is no entry"
        for entry in all_entries
        for epoch in entry.depends_on
        if epoch not in epochs
    ]


def leftovers(map_entries: Iterable[MapEntry]) -> list[str]:
    """Return the empty entries that should have been removed. The newest ScaleOut may stay as long as there is an
    anchor (GM-42)."""
    all_entries = list(map_entries)
    has_anchor = any(entry.role == ANCHOR_ROLE and not entry.is_empty for entry in all_entries)
    scale_out_epochs = [entry.epoch for entry in all_entries if entry.role == SCALE_OUT_ROLE]
    exempt_epochs = scale_out_epochs[-1:] if has_anchor else []
    return [entry.summary() for entry in all_entries if entry.is_empty and entry.epoch not in exempt_epochs]


def entry_labels(gang: Document | None) -> dict[str, str]:
    """Return the labels by which a gang identifies its entry (GM-16)."""
    keys = (labels.EPOCH, labels.GANG_ROLE, labels.GENERATION_HASH)
    return {key: label(gang, key) for key in keys}


def expected_entry_labels(entry: MapEntry, generation: str) -> dict[str, str]:
    """Return the expected labels of an entry's gang that was created for this generation of the set (GM-16)."""
    return {labels.EPOCH: entry.epoch, labels.GANG_ROLE: entry.role, labels.GENERATION_HASH: generation}


def pod_group_names(gang: Document) -> tuple[str, ...]:
    """Return the sorted names of the PodCliques for which a PodGang has PodGroups."""
    return tuple(sorted(text(group, "name") for group in items(gang, "spec", "podgroups")))


def referenced_pods(gang: Document) -> Iterator[str]:
    """Yield the names of the pods that a PodGang references."""
    for group in items(gang, "spec", "podgroups"):
        yield from (text(pod, "name") for pod in items(group, "podReferences"))


def set_of(document: Document | None) -> str:
    """Return the name of the set that a map belongs to, from its controller reference or, without one, from its
    label."""
    return text(controller(document), "name") or label(document, labels.PART_OF)


def replica_of(gang_map: Document) -> int:
    """Return the index of the set replica that a map is about; -1 if the map does not contain it."""
    index = number(gang_map, "spec", "podCliqueSetReplicaIndex")
    return -1 if index is None else index


def _mapping(document: Document, key: str) -> Mapping[str, Any]:
    value = at(document, key)
    return value if isinstance(value, Mapping) else {}
