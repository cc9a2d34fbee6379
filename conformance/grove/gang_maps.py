"""PodGangMaps of the line `maps`: what their entries say, and what a replica must have by them (gang-maps.md).

Pure. Members are found by controllers and specs, gangs by the labels of their entry, so that a wrong name fails nothing
but what is about names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.grove import labels, names, template
from conformance.grove.fields import Document, at, controller, items, label, name, number, text, texts
from conformance.grove.labels import ANCHOR_ROLE, SCALE_OUT_ROLE, TAIL_ROLE
from conformance.grove.template import SetTemplate

MIGRATING = "PodGangMigrationInProgress"
"""The condition of a set whose gangs of an earlier version are being replaced."""


@dataclass(frozen=True)
class Entry:
    """An entry of a map (GM-31)."""

    epoch: str
    generation: str
    role: str
    cliques: Mapping[str, int]
    """Standalone clique template → pods, without zeros."""
    groups: Mapping[str, tuple[int, ...]]
    """Scaling group in the template → indices of its replicas, without empty ones."""
    depends_on: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Return whether it holds nothing."""
        return not self.cliques and not self.groups

    def said(self) -> str:
        """Return what it holds as text: `Anchor a:2 g:[0, 1]`."""
        parts = [f"{clique}:{count}" for clique, count in sorted(self.cliques.items())]
        parts += [f"{group}:{list(indices)}" for group, indices in sorted(self.groups.items())]
        return " ".join([self.role, *parts])


@dataclass(frozen=True)
class Gang:
    """A gang that an entry stands for, by the full names of its PodCliques."""

    name: str
    entry: Entry
    cliques: tuple[str, ...]


def entries(document: Document | None) -> tuple[Entry, ...]:
    """Return the entries of a map in the order of their epochs; none if there is no map."""
    found = [
        Entry(
            text(each, "epoch"),
            text(each, "podCliqueSetGenerationHash"),
            text(each, "role"),
            {k: v for k, v in _mapping(each, "podCliques").items() if isinstance(v, int) and v},
            {k: tuple(sorted(v)) for k, v in _mapping(each, "pcsgReplicaIndices").items() if isinstance(v, list) and v},
            tuple(texts(each, "dependsOn")),
        )
        for each in entry_documents(document)
    ]
    return tuple(sorted(found, key=lambda entry: (_order(entry), entry.epoch)))


def entry_documents(document: Document | None) -> list[Document]:
    """Return the entries of a map as it lists them, with the names that the template has for standalone PodCliques. The
    comment says "standalone PodClique name", which may also be the name of the PodClique object (GM-31)."""
    prefix = names.clique(set_of(document), replica_of(document or {}), "")
    return [
        {**entry, "podCliques": {key.removeprefix(prefix): pods for key, pods in _mapping(entry, "podCliques").items()}}
        for entry in items(document, "spec", "entries")
    ]


def first(pcs: Document, generation: str) -> dict[str, object]:
    """Return how the entries of a new replica begin, in the form of `beginning` (GM-34)."""
    wanted = template.read(pcs)
    base = {group.name: list(range(min(group.min_available, group.replicas))) for group in wanted.groups}
    further = {
        group.name: list(range(group.min_available, group.replicas))
        for group in wanted.groups
        if group.replicas > group.min_available
    }
    return {
        ANCHOR_ROLE: [{clique.name: clique.replicas for clique in wanted.standalone}, base],
        TAIL_ROLE: further,
        "others that hold something": [],
        "Tails that do not depend on the Anchor": [],
        "Tails that are not later than the Anchor": [],
        "generation hashes": [generation],
    }


def beginning(every: Iterable[Entry]) -> dict[str, object]:
    """Return what the entries of a new replica say. How many Tails there are is open, and so is what an entry says that
    holds nothing, such as a place for replicas that scaling adds."""
    listed = [entry for entry in every if entry.role != TAIL_ROLE or not entry.empty]
    anchors, tails = ([entry for entry in listed if entry.role == role] for role in (ANCHOR_ROLE, TAIL_ROLE))
    anchor = anchors[0] if anchors else None
    further: dict[str, list[int]] = {}
    for tail in tails:
        for group, indices in tail.groups.items():
            further[group] = sorted([*further.get(group, []), *indices])
    others = [entry for entry in listed if entry not in anchors[:1] and entry.role != TAIL_ROLE and not entry.empty]
    return {
        ANCHOR_ROLE: [dict(anchor.cliques), {g: list(i) for g, i in anchor.groups.items()}] if anchor else None,
        TAIL_ROLE: further,
        "others that hold something": [entry.said() for entry in others],
        "Tails that do not depend on the Anchor": [
            tail.said() for tail in tails if anchor is None or anchor.epoch not in tail.depends_on
        ],
        "Tails that are not later than the Anchor": [
            tail.said() for tail in tails if anchor is None or _order(tail) <= _order(anchor)
        ],
        "generation hashes": sorted({entry.generation for entry in listed if not entry.empty}),
    }


def _order(entry: Entry) -> int:
    return int(entry.epoch) if entry.epoch.isdecimal() else -1


def gangs(pcs: Document, replica: int, every: Iterable[Entry]) -> list[Gang]:
    """Return the gangs that the entries of a replica stand for (GM-11, GM-12)."""
    wanted, set_name = template.read(pcs), name(pcs)
    found: list[Gang] = []
    for entry in every:
        if entry.role == ANCHOR_ROLE:
            alone = [names.clique(set_name, replica, each) for each in entry.cliques]
            inside = [
                each
                for group, indices in entry.groups.items()
                for index in indices
                for each in members(wanted, replica, group, index)
            ]
            found.append(
                Gang(names.anchor_gang(set_name, replica, entry.epoch), entry, tuple(sorted([*alone, *inside])))
            )
            continue
        for group, indices in entry.groups.items():
            for index in indices:
                own = tuple(sorted(members(wanted, replica, group, index)))
                found.append(Gang(names.member_gang(set_name, replica, entry.epoch, group, index), entry, own))
    return [gang for gang in found if gang.cliques]


def members(wanted: SetTemplate, replica: int, group: str, index: int) -> list[str]:
    """Return the full names of the PodCliques of one replica of a scaling group."""
    own = names.scaling_group(wanted.name, replica, group)
    every = next((each.cliques for each in wanted.groups if each.name == group), ())
    return [names.member_clique(own, index, clique) for clique in every]


def misplaced(every: Iterable[Entry], sizes: Mapping[str, int], grouped: Mapping[str, int]) -> list[str]:
    """Return what entries do not hold exactly once: pods of standalone cliques (`sizes`: template → replicas), and
    replicas of scaling groups (`grouped`) (GM-38)."""
    listed = list(every)
    wrong = []
    for clique, size in sorted(sizes.items()):
        if (held := sum(entry.cliques.get(clique, 0) for entry in listed)) != size:
            wrong.append(f"entries hold {held} pods of {clique}, which has {size} replicas")
    for group, size in sorted(grouped.items()):
        indices = sorted(index for entry in listed for index in entry.groups.get(group, ()))
        if indices != list(range(size)):
            wrong.append(f"entries hold the replicas {indices} of {group}, which has {size}")
    unknown = {key for entry in listed for key in (*entry.cliques, *entry.groups)} - sizes.keys() - grouped.keys()
    return wrong + [f"entries hold {each}, which the set has not" for each in sorted(unknown)]


def unmet(every: Iterable[Entry]) -> list[str]:
    """Return the dependencies on what is no entry of the map: what waits for them waits for good (GM-64, GM-72)."""
    listed = list(every)
    known = {entry.epoch for entry in listed}
    return [
        f"{entry.said()} depends on {epoch or 'an empty epoch'}, which is no entry"
        for entry in listed
        for epoch in entry.depends_on
        if epoch not in known
    ]


def leftovers(every: Iterable[Entry]) -> list[str]:
    """Return the entries that hold nothing and should be gone. The newest ScaleOut stays as long as there is an anchor
    (GM-42)."""
    listed = list(every)
    anchored = any(entry.role == ANCHOR_ROLE and not entry.empty for entry in listed)
    places = [entry.epoch for entry in listed if entry.role == SCALE_OUT_ROLE]
    kept = places[-1:] if anchored else []
    return [entry.said() for entry in listed if entry.empty and entry.epoch not in kept]


def belonging(gang: Document | None) -> dict[str, str]:
    """Return the labels with which a gang names its entry (GM-16)."""
    keys = (labels.EPOCH, labels.GANG_ROLE, labels.GENERATION_HASH)
    return {key: label(gang, key) for key in keys}


def tags(entry: Entry, generation: str) -> dict[str, str]:
    """Return the labels of a gang of an entry that was made for this generation of the set (GM-16)."""
    return {labels.EPOCH: entry.epoch, labels.GANG_ROLE: entry.role, labels.GENERATION_HASH: generation}


def held(gang: Document) -> tuple[str, ...]:
    """Return the PodCliques that a PodGang has PodGroups for, sorted."""
    return tuple(sorted(text(group, "name") for group in items(gang, "spec", "podgroups")))


def referenced(gang: Document) -> Iterator[str]:
    """Yield the names of the pods that a PodGang refers to."""
    for group in items(gang, "spec", "podgroups"):
        yield from (text(pod, "name") for pod in items(group, "podReferences"))


def set_of(document: Document | None) -> str:
    """Return the set that a map belongs to: its controller, or else its label."""
    return text(controller(document), "name") or label(document, labels.PART_OF)


def replica_of(found: Document) -> int:
    """Return the replica of the set that a map is of; -1 if it does not say."""
    index = number(found, "spec", "podCliqueSetReplicaIndex")
    return -1 if index is None else index


def _mapping(document: Document, key: str) -> Mapping[str, Any]:
    value = at(document, key)
    return value if isinstance(value, Mapping) else {}
