"""A fleet file from the inventory of a cluster. Pure functions."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from conformance.cluster.capture import devices, shapes
from conformance.cluster.capture.lists import Inventory
from conformance.cluster.capture.losses import Losses
from conformance.cluster.capture.pseudonyms import NodeIdentifiers, Pseudonyms, natural_key, shared_uuids
from conformance.errors import UsageError

_PRODUCT, _INSTANCE_TYPE = "nvidia.com/gpu.product", "node.kubernetes.io/instance-type"


@dataclass(frozen=True)
class FleetFile:
    """A fleet file, and a line for each thing that it does not have."""

    document: dict[str, Any]
    losses: list[str]

    def text(self) -> str:
        """Return the file."""
        return yaml.safe_dump(self.document, sort_keys=False, width=120, allow_unicode=True, default_flow_style=None)


def capture(inventory: Inventory, labels: Iterable[str] = ()) -> FleetFile:
    """Return the fleet of a cluster, in which equal nodes are counted. `labels` are further labels for the place of
    nodes. Raises UsageError if no node can be captured."""
    levels = shapes.LEVELS | frozenset(labels)
    of_nodes, of_slices, of_classes = Losses(), Losses(), Losses()
    slices = devices.slices_by_node(inventory.slices, of_slices)
    device_uuids = shared_uuids({node: devices.texts(items) for node, items in slices.items()})
    pseudonyms = Pseudonyms(
        shapes.values_by_key(inventory.nodes, levels),
        device_uuids | shapes.kept_uuids(inventory.nodes, levels),
        [node["metadata"]["name"] for node in inventory.nodes],
    )
    profiles: dict[str, dict[str, Any]] = {}
    places: dict[str, list[dict[str, str]]] = defaultdict(list)
    for node in inventory.nodes:
        profile = shapes.shape(node, levels, pseudonyms, of_nodes)
        if profile is None:
            continue
        name = node["metadata"]["name"]
        pools = devices.pools(name, slices.get(name, ()), NodeIdentifiers(pseudonyms), of_nodes)
        if pools:
            profile["pools"] = msgspec.to_builtins(pools)
        key = json.dumps(profile, sort_keys=True)
        profiles[key] = profile
        places[key].append(shapes.place(node, levels, pseudonyms))
    if not profiles:
        raise UsageError("has no node that can be captured", where="--context", hint="choose another cluster")
    losses = [
        *(f"not served: {kind}, so no devices are captured" for kind in inventory.unserved),
        *of_nodes.lines("node"),
        *of_slices.lines("ResourceSlice"),
    ]
    classes = devices.classes(inventory.classes, of_classes)
    losses += of_classes.lines("DeviceClass")
    return FleetFile(_document(profiles, places, classes), losses)


def _document(
    profiles: Mapping[str, dict[str, Any]], places: Mapping[str, list[dict[str, str]]], classes: list[dict[str, Any]]
) -> dict[str, Any]:
    names = _names(profiles)
    parts = []
    for key, name in names.items():
        counts = Counter(json.dumps(place) for place in places[key])
        for place, count in sorted(counts.items(), key=lambda entry: natural_key(entry[0])):
            parts.append({"profile": name, "nodes": count, "labels": json.loads(place)})
    total = sum(part["nodes"] for part in parts)
    document: dict[str, Any] = {
        "description": f"{total} nodes of a cluster, captured by grove-conformance cluster capture.",
        "profiles": {
            name: {"description": _description(profiles[key]), **_in_order(profiles[key])}
            for key, name in names.items()
        },
    }
    return document | ({"deviceClasses": classes} if classes else {}) | {"parts": parts}


def _in_order(profile: Mapping[str, Any]) -> dict[str, Any]:
    order = ("architecture", "capacity", "allocatable", "taints", "labels", "pools")
    return {field: profile[field] for field in order if field in profile}


def _names(profiles: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of profiles, after what nodes of the profile are. Names of equal stems are numbered."""
    stems = {key: _stem(profile) for key, profile in profiles.items()}
    numbers: Counter[str] = Counter()
    names = {}
    for key in sorted(profiles, key=lambda key: (natural_key(stems[key]), key)):
        numbers[stems[key]] += 1
        names[key] = stems[key] if numbers[stems[key]] == 1 else f"{stems[key]}-v{numbers[stems[key]]}"
    return names


def _stem(profile: Mapping[str, Any]) -> str:
    labels = profile.get("labels", {})
    kind = labels.get(_PRODUCT) or labels.get(_INSTANCE_TYPE) or "node"
    return re.sub(r"[^a-z0-9]+", "-", kind.lower())[:32].strip("-") or "node"


def _description(profile: Mapping[str, Any]) -> str:
    capacity = profile["capacity"]
    devices_text = ", ".join(f"{len(pool['devices'])} devices of {pool['driver']}" for pool in profile.get("pools", ()))
    return (
        f"{capacity['cpu']} CPUs, {capacity['memory']} of memory" + (f", {devices_text}" if devices_text else "") + "."
    )
