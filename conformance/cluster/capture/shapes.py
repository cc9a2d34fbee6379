"""The shape of a node, as a node profile describes it, and its place in the topology. Pure functions."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.cluster.capture.losses import Losses
from conformance.cluster.capture.pseudonyms import UUID, Pseudonyms
from conformance.cluster.nodes import BLOCK, HOSTNAME, POOL, PROFILE, RACK, ZONE

Document = Mapping[str, Any]

LEVELS = frozenset(
    {
        ZONE,
        BLOCK,
        RACK,
        POOL,
        "topology.kubernetes.io/region",
        "nvidia.com/gpu.clique",
        "topology.k8s.aws/network-node-layer-1",
        "topology.k8s.aws/network-node-layer-2",
        "topology.k8s.aws/network-node-layer-3",
        "cloud.google.com/gce-topology-block",
        "cloud.google.com/gce-topology-subblock",
        "network.topology.nvidia.com/accelerator",
        "network.topology.nvidia.com/block",
        "network.topology.nvidia.com/core",
        "network.topology.nvidia.com/datacenter",
        "network.topology.nvidia.com/leaf",
        "network.topology.nvidia.com/spine",
    }
)
"""Labels for the place of a node. They are kept with other values."""
_KEPT_LABELS = re.compile(
    r"nvidia\.com/.*|amd\.com/.*|node\.kubernetes\.io/instance-type|karpenter\.sh/capacity-type"
    r"|node-role\.kubernetes\.io/.*|cloud\.google\.com/gke-(accelerator|gpu|tpu).*"
)
"""Labels that describe a kind of nodes. They are kept as they are."""
_IGNORED_LABELS = re.compile(
    rf"{HOSTNAME}|{PROFILE}|type|kubernetes\.io/(os|arch)|(failure-domain\.)?beta\.kubernetes\.io/.*"
    r"|nvidia\.com/gfd\.timestamp|resource\.nvidia\.com/computeDomain"
)
"""Labels that each node has, that repeat others, or that tell of a moment."""
_OPEN_TAINT_VALUES = frozenset({"", "true", "false", "present"})
_STATE_TAINTS = re.compile(r"node(\.cloudprovider)?\.kubernetes\.io/.*")
"""Taints by which Kubernetes says how a node is, such as not-ready."""
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
_ARCHITECTURES = ("amd64", "arm64")


def values_by_key(nodes: Iterable[Document], levels: frozenset[str]) -> dict[str, set[str]]:
    """Return the values of labels and taints that get pseudonyms, by key."""
    values: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for key, value in _labels(node).items():
            if key in levels and value:
                values[key].add(value)
        for taint in _taints(node):
            if taint.get("value", "") not in _OPEN_TAINT_VALUES:
                values[taint["key"]].add(taint["value"])
    return values


def kept_uuids(nodes: Iterable[Document], levels: frozenset[str]) -> set[str]:
    """Return the UUIDs in labels that are kept, and in taints."""
    return {
        uuid
        for node in nodes
        for value in (
            *(value for key, value in _labels(node).items() if key in levels or _KEPT_LABELS.fullmatch(key)),
            *(taint.get("value", "") for taint in _taints(node)),
        )
        for uuid in UUID.findall(value)
    }


def shape(node: Document, levels: frozenset[str], pseudonyms: Pseudonyms, losses: Losses) -> dict[str, Any] | None:
    """Return the node profile of a node, without a description and without pools; None if no fake node can have its
    shape."""
    name, labels = node["metadata"]["name"], _labels(node)
    if labels.get("kubernetes.io/os", "linux") != "linux":
        losses.add("left out: nodes of another operating system than Linux", name)
        return None
    capacity, allocatable = (_quantities(node, field, losses) for field in ("capacity", "allocatable"))
    if not {"cpu", "memory", "pods"} <= capacity.keys():
        losses.add("left out: nodes without cpu, memory or pods", name)
        return None
    architecture = labels.get("kubernetes.io/arch", "amd64")
    if architecture not in _ARCHITECTURES:
        losses.add(f"the architecture {architecture} became amd64", name)
        architecture = "amd64"
    taints = [taint for entry in _taints(node) if (taint := _taint(entry, name, pseudonyms, losses))]
    differences = {key: value for key, value in allocatable.items() if capacity.get(key) != value and key in capacity}
    _add_state_losses(node, losses)
    document: dict[str, Any] = {
        "architecture": architecture,
        "capacity": capacity,
        "allocatable": differences,
        "labels": _kept_labels(name, labels, levels, pseudonyms, losses),
        "taints": sorted(taints, key=json.dumps),
    }
    return {key: value for key, value in document.items() if value}


def place(node: Document, levels: frozenset[str], pseudonyms: Pseudonyms) -> dict[str, str]:
    """Return the labels for the place of a node, with pseudonyms."""
    return {key: pseudonyms.value(key, value) for key, value in sorted(_labels(node).items()) if key in levels}


def _kept_labels(
    name: str, labels: Mapping[str, str], levels: frozenset[str], pseudonyms: Pseudonyms, losses: Losses
) -> dict[str, str]:
    kept_labels = {}
    for key, value in sorted(labels.items()):
        if key in levels or _IGNORED_LABELS.fullmatch(key):
            continue
        if _KEPT_LABELS.fullmatch(key):
            kept_labels[key] = pseudonyms.without_shared_uuids(value)
        else:
            domain, slash, _ = key.rpartition("/")
            losses.add(f"not kept: labels {domain}/…" if slash else f"not kept: the label {key}", name)
    return kept_labels


def _taint(taint: Document, node: str, pseudonyms: Pseudonyms, losses: Losses) -> dict[str, str] | None:
    key, value = taint["key"], taint.get("value", "")
    if _STATE_TAINTS.fullmatch(key):
        return None
    if value not in _OPEN_TAINT_VALUES:
        losses.add(f"the taint {key} has another value", node)
        value = pseudonyms.value(key, value)
    return {"key": key, **({"value": value} if value else {}), "effect": taint["effect"]}


def _add_state_losses(node: Document, losses: Losses) -> None:
    name = node["metadata"]["name"]
    if node["spec"].get("unschedulable"):
        losses.add("not kept: cordoned, the nodes will be schedulable", name)
    conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions") or ()}
    if conditions.get("Ready", "True") != "True":
        losses.add("not kept: not Ready, the nodes will be Ready", name)


def _quantities(node: Document, field: str, losses: Losses) -> dict[str, str]:
    amounts: dict[str, str] = {}
    for resource, amount in sorted((node["status"].get(field) or {}).items()):
        if _QUANTITY.fullmatch(str(amount)):
            amounts[resource] = str(amount)
        else:
            losses.add(f"not kept: {field} of {resource}, no plain number", node["metadata"]["name"])
    return amounts


def _labels(node: Document) -> Mapping[str, str]:
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    return labels


def _taints(node: Document) -> list[dict[str, str]]:
    taints: list[dict[str, str]] = node["spec"].get("taints") or []
    return taints
