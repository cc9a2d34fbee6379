"""The pools of devices of a node, from its ResourceSlices. Pure functions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from conformance.cluster import compute_domains, device_pools
from conformance.cluster.capture.losses import Losses
from conformance.cluster.capture.pseudonyms import UUID, NodeIdentifiers, natural_key
from conformance.cluster.device_pools import CounterSet, Device, DevicePool

Document = Mapping[str, Any]

_KEPT_FIELDS = ("name", "attributes", "capacity", "allowMultipleAllocations", "consumesCounters", "taints")


def slices_by_node(slices: Iterable[Document], losses: Losses) -> dict[str, list[Document]]:
    """Group slices by the node that has their devices. Other slices, such as those of a network, are lost. The channels
    of ComputeDomains are left out: they are published wherever the label of the fabric is."""
    groups: dict[str, list[Document]] = defaultdict(list)
    for item in slices:
        if item["spec"]["driver"] == compute_domains.DRIVER:
            continue
        if node := item["spec"].get("nodeName"):
            groups[node].append(item)
        else:
            losses.add(
                f"left out: devices of {item['spec']['driver']} that belong to no node", item["metadata"]["name"]
            )
    return groups


def texts(slices: Iterable[Document]) -> Iterator[str]:
    """Generate the strings of all attributes."""
    for item in slices:
        for device in item["spec"].get("devices") or ():
            for value in (device.get("attributes") or {}).values():
                if "string" in value:
                    yield value["string"]


def pools(node: str, slices: Sequence[Document], identifiers: NodeIdentifiers, losses: Losses) -> list[DevicePool]:
    """Return the pools of a node. Of each pool, the newest generation counts, if it is complete (DRA-02)."""
    groups: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for item in slices:
        groups[item["spec"]["driver"], item["spec"]["pool"]["name"]].append(item["spec"])
    node_pools = []
    further_pools: dict[str, int] = defaultdict(int)
    for (driver, pool_name), specs in sorted(groups.items(), key=lambda entry: (entry[0][0], natural_key(entry[0][1]))):
        newest = max(spec["pool"]["generation"] for spec in specs)
        specs = [spec for spec in specs if spec["pool"]["generation"] == newest]
        if len(specs) != specs[0]["pool"]["resourceSliceCount"]:
            losses.add(f"left out: a pool of {driver} whose slices are not all there", node)
            continue
        name = ""
        if pool_name != node:
            name = f"pool-{further_pools[driver]}"
            further_pools[driver] += 1
        pool = _pool(node, driver, name, specs, identifiers, losses)
        if pool.devices:
            node_pools.append(device_pools.with_common_fields(pool))
    for attribute in identifiers.replaced_attributes:
        losses.add(f"the attribute {attribute} of devices has made-up values", node)
    return node_pools


def _pool(
    node: str, driver: str, name: str, specs: Iterable[Document], identifiers: NodeIdentifiers, losses: Losses
) -> DevicePool:
    ordered_specs = sorted(specs, key=_first_device)
    devices = [
        _device(device, identifiers, losses, node)
        for spec in ordered_specs
        for device in spec.get("devices") or ()
        if not _belongs_elsewhere(device, driver, losses, node)
    ]
    counters = [dict(entry) for spec in ordered_specs for entry in spec.get("sharedCounters") or ()]
    counters.sort(key=lambda entry: natural_key(entry["name"]))
    return DevicePool(
        driver=driver,
        name=name,
        devices=msgspec.convert(devices, list[Device]),
        shared_counters=msgspec.convert(counters, list[CounterSet]),
    )


def _first_device(spec: Document) -> tuple[str | int, ...]:
    return min((natural_key(device["name"]) for device in spec.get("devices") or ()), default=())


def _belongs_elsewhere(device: Document, driver: str, losses: Losses, node: str) -> bool:
    if any(field in device for field in ("nodeName", "nodeSelector", "allNodes")):
        losses.add(f"left out: devices of {driver} that choose their nodes themselves", node)
        return True
    return False


def _device(device: Document, identifiers: NodeIdentifiers, losses: Losses, node: str) -> dict[str, Any]:
    for field in sorted(device.keys() - {*_KEPT_FIELDS}):
        losses.add(f"not kept: {field} of devices", node)
    kept_device: dict[str, Any] = {field: device[field] for field in _KEPT_FIELDS if device.get(field)}
    if "attributes" in kept_device:
        kept_device["attributes"] = {
            name: _attribute(name, value, identifiers) for name, value in sorted(device["attributes"].items())
        }
    if "taints" in kept_device:
        kept_device["taints"] = [{k: v for k, v in taint.items() if k != "timeAdded"} for taint in device["taints"]]
    return kept_device


def _attribute(name: str, value: Document, identifiers: NodeIdentifiers) -> dict[str, Any]:
    return {
        form: identifiers.without_identity(name, text) if form == "string" else text for form, text in value.items()
    }


def classes(documents: Iterable[Document], losses: Losses) -> list[dict[str, Any]]:
    """Return the DeviceClasses of a fleet file."""
    entries = []
    for document in sorted(documents, key=lambda item: item["metadata"]["name"]):
        name, spec = document["metadata"]["name"], document["spec"]
        if UUID.search(json.dumps(spec.get("selectors"))):
            losses.add("left out: DeviceClasses whose selectors name a UUID", name)
            continue
        for field in sorted(spec.keys() - {"selectors", "extendedResourceName"}):
            losses.add(f"not kept: {field} of DeviceClasses", name)
        entry: dict[str, Any] = {"name": name}
        if resource := spec.get("extendedResourceName"):
            entry["extendedResourceName"] = resource
        if expressions := [
            selector["cel"]["expression"] for selector in spec.get("selectors") or () if "cel" in selector
        ]:
            entry["selectors"] = expressions
        entries.append(entry)
    return entries
