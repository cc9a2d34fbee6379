"""A variant that serves PodGangMaps in another published shape of the proposal: entries are known by an epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kube.informer import typed
from mutants.profiles.admission_served_kinds import spoil
from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.api.coherent import PodGangMap
from reference_impl.api.models import PodCliqueSet, PodGang
from reference_impl.control import cache
from reference_impl.control.operator import Operator
from reference_impl.plan import labels
from reference_impl.plan.coherent import gangs, layout, maps
from reference_impl.plan.coherent.layout import Entry
from reference_impl.plan.coherent.maps import ReplicaMap

CRD = "podgangmaps.grove.io"
ENTRIES = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/entries"
EPOCH, ROLE = "grove.io/epoch", "grove.io/podgang-role"
HASH = "podCliqueSetGenerationHash"

Entries = list[dict[str, Any]]


@variant(
    "entries-by-epoch",
    "operator",
    "serves PodGangMaps whose entries are known by an epoch and have a role",
    "COHR-002",
    "COHR-011",
    "COHR-012",
    "COHR-030",
    "COHR-031",
    "COHR-032",
    "COHR-037",
    "COHR-041",
)
def _entries_by_epoch() -> None:
    _serve_epochs()
    manifest, correction, noticed = maps.manifest, maps.correction, Operator._on_gang_of_map

    def decoding(kind: Any) -> Callable[[Any], Any]:
        return _read if kind is PodGangMap else typed(kind)

    def written(pcs: PodCliqueSet, index: int, wanted: ReplicaMap) -> dict[str, Any]:
        found = manifest(pcs, index, wanted)
        return {**found, "spec": {**found["spec"], "entries": _to_epochs(found["spec"]["entries"])}}

    def corrected(wanted: Mapping[str, Any], found: PodGangMap) -> dict[str, Any]:
        named = _to_names(wanted["metadata"]["name"], wanted["spec"]["entries"])
        body = correction({**wanted, "spec": {**wanted["spec"], "entries": named}}, found)
        return {**body, "spec": wanted["spec"]} if "spec" in body else body

    def on_gang_of_map(self: Operator, old: PodGang | None, item: PodGang) -> None:
        """Each may be an anchor that others wait for: the label that would say so is another one here."""
        noticed(self, old, item)
        self._wake_replica(item)

    replace(cache, "typed", decoding)
    replace(maps, "manifest", written)
    replace(maps, "correction", corrected)
    replace(gangs, "own_labels", _labels)
    replace(Operator, "_on_gang_of_map", on_gang_of_map)


def _serve_epochs() -> None:
    items = f"{ENTRIES}/items"
    spoil(
        CRD,
        {"op": "replace", "path": f"{ENTRIES}/x-kubernetes-list-map-keys", "value": ["epoch"]},
        {"op": "replace", "path": f"{items}/required", "value": ["epoch", HASH]},
        {"op": "remove", "path": f"{items}/properties/name"},
        {"op": "remove", "path": f"{items}/properties/labels"},
        {"op": "add", "path": f"{items}/properties/epoch", "value": {"type": "string"}},
        {"op": "add", "path": f"{items}/properties/role", "value": {"type": "string"}},
        {
            "op": "replace",
            "path": f"{items}/properties/dependsOn",
            "value": {"type": "array", "items": {"type": "string"}},
        },
    )


def _labels(entry: Entry) -> dict[str, str]:
    epoch, role = entry.name.rpartition("-")[2], "Anchor" if entry.anchor else "Tail"
    return {labels.GENERATION_HASH: entry.generation, EPOCH: epoch, ROLE: role}


def _to_epochs(entries: Entries) -> Entries:
    """Entries as they are stored: a gang each, by the number at the end of its name."""
    anchors = [entry["name"].rpartition("-")[2] for entry in entries if "labels" in entry]
    return [
        {
            **{key: entry[key] for key in (HASH, "podCliques", "pcsgReplicaIndices") if key in entry},
            "epoch": entry["name"].rpartition("-")[2],
            "role": "Anchor" if "labels" in entry else "Tail",
            **({} if "labels" in entry else {"dependsOn": anchors}),
        }
        for entry in entries
    ]


def _to_names(replica: str, entries: Entries) -> Entries:
    """Entries as the reference knows them. `replica` begins the names of the gangs. Entries without an epoch were
    written before this shape was served; their sets are being deleted."""
    return [
        {
            **{key: entry[key] for key in (HASH, "podCliques", "pcsgReplicaIndices") if key in entry},
            "name": f"{replica}-{entry['epoch']}",
            **(
                {"labels": dict(layout.IS_ANCHOR)}
                if entry["role"] == "Anchor"
                else {"dependsOn": {"matchLabels": dict(layout.IS_ANCHOR)}}
            ),
        }
        for entry in entries
        if "epoch" in entry
    ]


def _read(raw: Any) -> PodGangMap:
    document = msgspec.json.decode(raw)
    spec = document.get("spec")
    if isinstance(spec, dict):
        spec["entries"] = _to_names(document["metadata"]["name"], spec.get("entries") or [])
    return msgspec.convert(document, PodGangMap)
