"""Randomly drawn nodes and namespaces of a scene."""

from __future__ import annotations

from collections.abc import Sequence

from tests.kube_scheduler.draw import WEIGHTS, Draw, Manifest

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
GPU, NIC, HUGEPAGES, EPHEMERAL = "nvidia.com/gpu", "example.com/nic", "hugepages-2Mi", "ephemeral-storage"
ZONES, NAMESPACES = ("z1", "z2", "z3"), ("a", "b", "c")
LABELS: dict[str, tuple[float, Sequence[str]]] = WEIGHTS["node labels"]
LEVELS = ("3", "5", "10", "high")
"""Taint values that tolerations compare with numbers."""


def namespace(draw: Draw, name: str) -> Manifest:
    labels = {"team": draw.one(("blue", "red"))} if draw.chance(0.8) else {}
    if draw.chance(0.5):
        labels["stage"] = draw.one(("test", "production"))
    return {"metadata": {"name": name, "labels": labels}}


def node(draw: Draw, name: str) -> Manifest:
    labels = {HOSTNAME: name} if draw.chance(0.95) else {}
    labels |= {key: draw.one(values) for key, (share, values) in LABELS.items() if share and draw.chance(share)}
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
    cpu, memory = draw.one(("1", "2", "4", "8")), draw.one(("2Gi", "4Gi", "16Gi"))
    rarer = ((EPHEMERAL, 0.85, ("5Gi", "20Gi")), (HUGEPAGES, 0.4, ("0", "64Mi", "512Mi")))
    extended = ((GPU, 0.5, ("0", "1", "4")), (NIC, 0.25, ("2", "8")))
    allocatable = {"cpu": cpu, "memory": memory, "pods": draw.weighted({"2": 1, "4": 2, "110": 6})}
    return allocatable | {name: draw.one(amounts) for name, share, amounts in rarer + extended if draw.chance(share)}
