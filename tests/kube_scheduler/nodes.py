"""Draw the nodes and namespaces of a scene."""

from __future__ import annotations

from typing import Any

from tests.kube_scheduler.draw import Draw

Manifest = dict[str, Any]

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
ZONES, RACKS = ("z1", "z2", "z3"), ("r1", "r2", "r3", "r4")
NAMESPACES = ("a", "b", "c")
GPU, NIC, HUGEPAGES, EPHEMERAL = "nvidia.com/gpu", "example.com/nic", "hugepages-2Mi", "ephemeral-storage"
LEVELS = ("3", "5", "10", "high")
"""Values of a taint that tolerations compare with numbers."""


def namespace(draw: Draw, name: str) -> Manifest:
    labels = {"team": draw.one(("blue", "red"))} if draw.chance(0.8) else {}
    if draw.chance(0.5):
        labels["stage"] = draw.one(("test", "production"))
    return {"metadata": {"name": name, "labels": labels}}


def node(draw: Draw, name: str) -> Manifest:
    labels = {HOSTNAME: name} if draw.chance(0.95) else {}
    for key, probability, values in (
        (ZONE, 0.88, ZONES),
        (RACK, 0.8, RACKS),
        ("disk", 0.8, ("ssd", "hdd")),
        ("generation", 0.75, ("1", "3", "7", "12", "old")),
    ):
        if draw.chance(probability):
            labels[key] = draw.one(values)
    spec: Manifest = {}
    if taints := [_taint(draw, key) for key in draw.some(("dedicated", "level", "gpu"), 0, 2) if draw.chance(0.4)]:
        spec["taints"] = taints
    if draw.chance(0.08):
        spec["unschedulable"] = True
        if draw.chance(0.5):
            spec["taints"] = [*taints, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    allocatable = _allocatable(draw)
    status = {"capacity": allocatable, "allocatable": allocatable}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _taint(draw: Draw, key: str) -> Manifest:
    effect = draw.weighted({"NoSchedule": 3, "NoExecute": 1.5, "PreferNoSchedule": 1})
    values = LEVELS if key == "level" else ("team", "batch")
    return {"key": key, "effect": effect, **({"value": draw.one(values)} if draw.chance(0.85) else {})}


def _allocatable(draw: Draw) -> dict[str, str]:
    allocatable = {
        "cpu": draw.one(("1", "2", "4", "8")),
        "memory": draw.one(("2Gi", "4Gi", "16Gi")),
        "pods": draw.weighted({"2": 1, "4": 2, "110": 6}),
    }
    for name, probability, amounts in (
        (EPHEMERAL, 0.85, ("5Gi", "20Gi")),
        (HUGEPAGES, 0.4, ("0", "64Mi", "512Mi")),
        (GPU, 0.5, ("0", "1", "4")),
        (NIC, 0.25, ("2", "8")),
    ):
        if draw.chance(probability):
            allocatable[name] = draw.one(amounts)
    return allocatable
