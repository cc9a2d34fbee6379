"""The PodGangMap of a replica of a set: its manifest, and what it remembers of the generations that its entries name
(spec COH-050 to COH-059).

An annotation of the map holds the template hashes of each of these generations. So the map alone tells which template
the pods of an entry have, even of pods that are lost: two generations may share a template (COH-197), and pods of an
old one are never replaced by new ones in the same gang (COH-210).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import orjson

from reference_impl.api import models
from reference_impl.api.coherent import PodGangMap
from reference_impl.api.models import PodCliqueSet, wire
from reference_impl.plan import children, labels, names, revisions
from reference_impl.plan.coherent import layout
from reference_impl.plan.coherent.layout import Entry, Key, Kind, Layout
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.revisions import Revision

TEMPLATES = "grove.io/generation-templates"
"""Annotation of a map: generation hash → clique template → template hash, as JSON."""

Hashes = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class ReplicaMap:
    """The gangs of a replica, and the template hashes of the generations that they name."""

    layout: Layout
    hashes: Hashes = field(default_factory=dict)

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.layout}

    @cached_property
    def _gangs(self) -> dict[tuple[str, int], str]:
        return {
            (group, index): entry.name
            for entry in self.layout
            for group, indices in entry.groups.items()
            for index in indices
        }

    @cached_property
    def anchors(self) -> Layout:
        """The anchors."""
        return layout.anchors(self.layout)

    def entry(self, gang: str) -> Entry | None:
        """The entry of a gang; None if it has none."""
        return self._entries.get(gang)

    def gang_of(self, group: str, index: int) -> str | None:
        """The gang that holds a replica of a scaling group."""
        return self._gangs.get((group, index))

    def hash(self, entry: Entry, template: str) -> str | None:
        """The template hash that the pods of a clique have in a gang; None if it is not recorded."""
        return self.hashes.get(entry.generation, {}).get(template)


@dataclass(frozen=True)
class Templates:
    """The present templates of a set: their revisions, and the generation hash."""

    generation: str
    revisions: Mapping[str, Revision]

    @property
    def hashes(self) -> dict[str, str]:
        """The template hash of each clique template."""
        return {name: revision.hash for name, revision in self.revisions.items()}


def templates(pcs: PodCliqueSet, generation: str, policy: Policy = STANDARD) -> Templates:
    """The present templates of a set, of this generation."""
    found = {each.name: revisions.of_template(pcs, each, policy) for each in pcs.spec.template.cliques}
    return Templates(generation, found)


def read(found: PodGangMap) -> ReplicaMap:
    """The stored map."""
    try:
        hashes = orjson.loads((found.metadata.annotations or {}).get(TEMPLATES, "{}"))
        hashes = msgspec.convert(hashes, dict[str, dict[str, str]])
    except (orjson.JSONDecodeError, msgspec.ValidationError):
        hashes = {}
    return ReplicaMap(layout.of_map(found), hashes)


def with_layout(old: ReplicaMap | None, gangs: Layout, present: Templates) -> ReplicaMap:
    """A map with other gangs. It remembers the generations that they name, and the present one."""
    known = {**(old.hashes if old is not None else {}), present.generation: present.hashes}
    needed = {present.generation, *(entry.generation for entry in gangs)}
    return ReplicaMap(gangs, {generation: known[generation] for generation in sorted(needed & known.keys())})


def manifest(pcs: PodCliqueSet, index: int, wanted: ReplicaMap) -> dict[str, Any]:
    """The object of a map (COH-051 to COH-054)."""
    name = names.replica(pcs.metadata.name, index)
    return {
        "apiVersion": models.PODGANGMAPS.api_version,
        "kind": "PodGangMap",
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": {
                **labels.common(pcs.metadata.name, "pcs-podgangmap", name),
                labels.REPLICA_INDEX: str(index),
            },
            "annotations": {TEMPLATES: orjson.dumps(wanted.hashes, option=orjson.OPT_SORT_KEYS).decode()},
            "ownerReferences": [children.set_reference(pcs)],
        },
        "spec": {
            "podCliqueSetReplicaIndex": index,
            "entries": [wire(entry) for entry in layout.to_entries(wanted.layout)],
        },
    }


def correction(wanted: Mapping[str, Any], found: PodGangMap) -> dict[str, Any]:
    """The merge patch that corrects a map; empty if it is as desired. The entries are replaced as a whole."""
    body: dict[str, Any] = {}
    if wire(found.spec) != wanted["spec"]:
        body["spec"] = wanted["spec"]
    metadata = wanted["metadata"]
    for key, seen in (("labels", found.metadata.labels), ("annotations", found.metadata.annotations)):
        if not metadata[key].items() <= (seen or {}).items():
            body.setdefault("metadata", {})[key] = metadata[key]
    return body


def members_of(pcs: PodCliqueSet, key: Key) -> list[str]:
    """The clique templates of a component."""
    if key.kind is Kind.CLIQUE:
        return [key.name]
    return next((config.clique_names for config in children.group_configs(pcs) if config.name == key.name), [])


def settled(pcs: PodCliqueSet, held: ReplicaMap, entry: Entry, key: Key, present: Templates) -> bool:
    """Whether what a gang holds of a component has the present templates. Without a record, its generation decides."""
    return all(_is_present(held, entry, template, present) for template in members_of(pcs, key))


def _is_present(held: ReplicaMap, entry: Entry, template: str, present: Templates) -> bool:
    revision, recorded = present.revisions.get(template), held.hash(entry, template)
    if recorded is None or revision is None:
        return entry.generation == present.generation
    return revision.has(recorded)


def fits(held: ReplicaMap, entry: Entry, template: str, own: str, present: Templates) -> bool:
    """Whether pods of a clique object whose template hash is `own` may be created in a gang: never those of another
    version than the gang's (COH-210)."""
    revision, recorded = present.revisions.get(template), held.hash(entry, template)
    if recorded == own:
        return True
    return _is_present(held, entry, template, present) and revision is not None and revision.has(own)


def same(pcs: PodCliqueSet, held: ReplicaMap, present: Templates) -> dict[Key, frozenset[str]]:
    """Component → generations in which it has the present template (COH-197)."""
    found: dict[Key, set[str]] = {}
    for entry in held.layout:
        for key in _keys(entry):
            if settled(pcs, held, entry, key, present):
                found.setdefault(key, set()).add(entry.generation)
    return {key: frozenset(generations) for key, generations in found.items()}


def _keys(entry: Entry) -> list[Key]:
    """The components that a gang holds."""
    return [*(Key(Kind.CLIQUE, name) for name in entry.cliques), *(Key(Kind.GROUP, name) for name in entry.groups)]


def abandoned(pcs: PodCliqueSet, held: ReplicaMap, entry: Entry, present: Templates) -> set[str]:
    """The anchors of other generations than that of `entry` that hold an old version: they get no new pods any more,
    and nothing may wait for them."""
    return {
        other.name
        for other in held.anchors
        if other.generation != entry.generation
        and not all(settled(pcs, held, other, key, present) for key in _keys(other))
    }


def renewed(pcs: PodCliqueSet, held: ReplicaMap, present: Templates) -> Layout:
    """The gangs after an update, all members of which have the present templates. A gang that is recorded as older got
    them one by one, before the set was updated coherently; it is of the new generation from now on."""
    return tuple(
        entry
        if all(settled(pcs, held, entry, key, present) for key in _keys(entry))
        else replace(entry, generation=present.generation)
        for entry in held.layout
    )


def followed(pcs: PodCliqueSet, held: ReplicaMap, observed: Observed, present: Templates) -> ReplicaMap:
    """A map whose pods another strategy replaces within their gangs. A gang that holds nothing old is of the present
    generation; what OnDelete leaves old stays recorded as old, for the next coherent update (CHG-OD-07)."""
    left = {entry.name: {key for key in _keys(entry) if observed.outdated(entry, key)} for entry in held.layout}
    gangs = tuple(entry if left[entry.name] else replace(entry, generation=present.generation) for entry in held.layout)
    old: dict[str, set[str]] = {}
    for entry in gangs:
        templates = {template for key in left[entry.name] for template in members_of(pcs, key)}
        old.setdefault(entry.generation, set()).update(templates)
    hashes = {
        generation: {name: found for name, found in recorded.items() if name in old.get(generation, ())}
        for generation, recorded in held.hashes.items()
    }
    return ReplicaMap(gangs, {generation: present.hashes | found for generation, found in hashes.items()})


def outdated(pcs: PodCliqueSet, held: ReplicaMap, present: Templates, observed: Observed | None = None) -> set[Key]:
    """The components of which any gang holds an old version: as it is recorded or, with `observed`, also as its members
    show, which another strategy may have replaced within their gangs."""
    found: set[Key] = set()
    for entry in held.layout:
        for key in _keys(entry):
            mixed = observed is not None and observed.outdated(entry, key)
            if mixed or (key not in found and not settled(pcs, held, entry, key, present)):
                found.add(key)
    return found
