"""PodGangMaps, in which the layouts of replicas are stored (spec GM-10 to GM-15, GM-30 to GM-33).

An annotation of the map holds the template hashes of the generations that its entries name. The map alone therefore
determines which template the pods of an entry have, even if the pods are lost. Two generations may share a template
(COH-197), and pods of an old template are never replaced with new pods in the same gang (COH-210).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from reference_impl.api import models
from reference_impl.api.coherent import MapEntry, PodGangMap
from reference_impl.api.models import PodCliqueSet, to_json
from reference_impl.plan import children, labels, names
from reference_impl.plan.epochs import sort_key
from reference_impl.plan.layout import Entry, Layout, Role

TEMPLATES = "grove.io/generation-templates"
"""Annotation of a map: the template hashes by generation hash and clique template, as JSON."""

Hashes = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class StoredMap:
    """The content of a map: the layout of its replica, and the template hashes of the generations that it names."""

    layout: Layout
    hashes: Hashes = field(default_factory=dict)

    def hash(self, entry: Entry, template: str) -> str | None:
        """Return the template hash of a clique's pods in an entry, or None if it is not recorded."""
        return self.hashes.get(entry.generation, {}).get(template)


def read(gang_map: PodGangMap) -> StoredMap:
    """Return the content of a PodGangMap."""
    try:
        hashes = orjson.loads((gang_map.metadata.annotations or {}).get(TEMPLATES, "{}"))
        hashes = msgspec.convert(hashes, dict[str, dict[str, str]])
    except (orjson.JSONDecodeError, msgspec.ValidationError):
        hashes = {}
    entries = sorted(map(_entry, gang_map.spec.entries), key=lambda entry: sort_key(entry.key))
    return StoredMap(tuple(entries), hashes)


def _entry(stored: MapEntry) -> Entry:
    return Entry(
        stored.epoch,
        stored.pod_clique_set_generation_hash,
        Role(stored.role),
        {clique: count for clique, count in (stored.pod_cliques or {}).items() if count > 0},
        {
            group: tuple(sorted(set(indices)))
            for group, indices in (stored.pcsg_replica_indices or {}).items()
            if indices
        },
        tuple(stored.depends_on or ()),
    )


def _map_entry(entry: Entry) -> MapEntry:
    return MapEntry(
        epoch=entry.key,
        pod_clique_set_generation_hash=entry.generation,
        role=entry.role,
        pod_cliques=dict(entry.cliques) or None,
        pcsg_replica_indices={group: list(indices) for group, indices in entry.groups.items()} or None,
        depends_on=list(entry.depends_on) or None,
    )


def manifest(pcs: PodCliqueSet, index: int, stored: StoredMap) -> dict[str, Any]:
    """Return the PodGangMap object with this content."""
    name = names.gang_map(pcs.metadata.name, index)
    return {
        "apiVersion": models.PODGANGMAPS.api_version,
        "kind": "PodGangMap",
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": {
                **labels.common_labels(pcs.metadata.name, "pcs-podgangmap", name),
                labels.REPLICA_INDEX: str(index),
            },
            "annotations": {TEMPLATES: orjson.dumps(stored.hashes, option=orjson.OPT_SORT_KEYS).decode()},
            "ownerReferences": [children.set_reference(pcs)],
        },
        "spec": {
            "podCliqueSetReplicaIndex": index,
            "entries": [to_json(_map_entry(entry)) for entry in stored.layout],
        },
    }


def correction(desired: Mapping[str, Any], existing: PodGangMap) -> dict[str, Any]:
    """Return the merge patch that corrects a map, or an empty dict if the map is as desired. The entries are replaced
    as a whole."""
    body: dict[str, Any] = {}
    if to_json(existing.spec) != desired["spec"]:
        body["spec"] = desired["spec"]
    metadata = desired["metadata"]
    for key, current in (("labels", existing.metadata.labels), ("annotations", existing.metadata.annotations)):
        if not metadata[key].items() <= (current or {}).items():
            body.setdefault("metadata", {})[key] = metadata[key]
    return body
