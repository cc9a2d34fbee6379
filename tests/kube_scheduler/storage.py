"""Draw the volumes, claims, storage classes and CSI objects of a scene."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.kube_scheduler.draw import Draw
from tests.kube_scheduler.nodes import HOSTNAME, RACK, ZONE, ZONES, Manifest

DRIVERS = ("csi.example.com", "zonal.example.com")
BETA_ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"
SIZES = ("1Gi", "5Gi", "10Gi")
CLAIMS = {
    "bound": 5,
    "zoned": 1.5,
    "once": 2.5,
    "local": 2.5,
    "zonal": 1.5,
    "late": 1.5,
    "selected": 0.7,
    "immediate": 0.5,
    "incomplete": 0.4,
    "volume missing": 0.5,
    "lost": 0.3,
    "deleted": 0.4,
    "class missing": 0.3,
    "no class": 0.3,
}
"""Kinds of claims, and how often they are drawn."""


@dataclass
class Storage:
    """The objects of storage of a scene by their plural names, while they are drawn."""

    nodes: Sequence[Manifest]
    objects: dict[str, list[Manifest]] = field(default_factory=dict)

    def add(self, plural: str, manifest: Manifest) -> Manifest:
        self.objects.setdefault(plural, []).append(manifest)
        return manifest

    def claims(self, namespace: str) -> list[str]:
        claims = self.objects.get("persistentvolumeclaims", ())
        return [claim["metadata"]["name"] for claim in claims if claim["metadata"]["namespace"] == namespace]


def storage(draw: Draw, nodes: Sequence[Manifest], namespaces: Sequence[str]) -> Storage:
    """Draw all storage of a scene."""
    drawn = Storage(nodes)
    for manifest in _classes(draw):
        drawn.add("storageclasses", manifest)
    for node in nodes:
        if draw.chance(0.7):
            drawn.add("csinodes", _csi_node(draw, node["metadata"]["name"]))
    if draw.chance(0.35):
        _capacities(draw, drawn)
    for namespace in namespaces:
        for number in range(draw.number(2, 6)):
            _claim(draw, drawn, namespace, f"claim-{number}")
    for number in range(draw.number(3, 8)):
        drawn.add("persistentvolumes", _free_volume(draw, drawn, number, namespaces))
    return drawn


def _classes(draw: Draw) -> Iterator[Manifest]:
    first, second = DRIVERS
    zones = [{"key": ZONE, "values": draw.some(ZONES, 1, 2)}]
    if draw.chance(0.3):
        zones.append({"key": "disk", "values": ["ssd"]})
    terms = [{"matchLabelExpressions": zones}]
    if draw.chance(0.3):
        terms.append({"matchLabelExpressions": [{"key": HOSTNAME, "values": ["n1", "n2"]}]})
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    yield {"metadata": {"name": "immediate"}, "provisioner": first, "volumeBindingMode": "Immediate"}
    yield {"metadata": {"name": "late"}, "provisioner": first, **late}
    yield {"metadata": {"name": "zonal"}, "provisioner": second, "allowedTopologies": terms, **late}
    yield {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **late}


def _csi_node(draw: Draw, name: str) -> Manifest:
    drivers = [
        {"name": driver, "nodeID": name, **({"allocatable": {"count": draw.number(0, 3)}} if draw.chance(0.8) else {})}
        for driver in draw.some(DRIVERS, 1, 2)
    ]
    return {"metadata": {"name": name}, "spec": {"drivers": drivers}}


def _capacities(draw: Draw, drawn: Storage) -> None:
    """Have a driver publish the capacity that it has left in some zones."""
    drawn.add("csidrivers", {"metadata": {"name": DRIVERS[0]}, "spec": {"storageCapacity": draw.chance(0.85)}})
    for number, zone in enumerate(draw.some(ZONES, 1, 3)):
        capacity: Manifest = {
            "metadata": {"name": f"capacity-{number}", "namespace": "a"},
            "storageClassName": draw.weighted({"late": 4, "local": 1}),
        }
        if draw.chance(0.9):
            capacity["nodeTopology"] = {"matchLabels": {ZONE: zone}}
        if draw.chance(0.9):
            capacity["capacity"] = draw.one(("2Gi", "6Gi", "50Gi"))
        if draw.chance(0.3):
            capacity["maximumVolumeSize"] = draw.one(("2Gi", "50Gi"))
        drawn.add("csistoragecapacities", capacity)


def _volume(draw: Draw, drawn: Storage, name: str, size: str, kind: str, phase: str) -> Manifest:
    spec: Manifest = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOncePod"] if kind == "once" else draw.one((["ReadWriteOnce"], ["ReadWriteMany"])),
        "volumeMode": "Filesystem" if draw.chance(0.9) else "Block",
        "csi": {"driver": draw.weighted({DRIVERS[0]: 3, DRIVERS[1]: 1}), "volumeHandle": name},
    }
    metadata: Manifest = {"name": name}
    if kind == "zoned":
        key = draw.weighted({ZONE: 3, BETA_ZONE: 1, REGION: 0.5})
        metadata["labels"] = {key: draw.one((*ZONES, "z1__z2", "z2__z3"))}
    elif draw.chance(0.6):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": _places(draw, drawn)}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def _places(draw: Draw, drawn: Storage) -> list[Manifest]:
    """Draw the nodes that reach a volume."""
    names = [node["metadata"]["name"] for node in drawn.nodes]
    by_key = {ZONE: ZONES, RACK: ("r1", "r2", "r3"), HOSTNAME: names}
    terms = []
    for _ in range(draw.weighted({1: 4, 2: 1})):
        key = draw.one(tuple(by_key))
        operator = draw.weighted({"In": 5, "NotIn": 1, "Exists": 0.5})
        values = {} if operator == "Exists" else {"values": draw.some(by_key[key], 1, 3)}
        terms.append({"matchExpressions": [{"key": key, "operator": operator, **values}]})
    return terms


def _free_volume(draw: Draw, drawn: Storage, number: int, namespaces: Sequence[str]) -> Manifest:
    phase = draw.weighted({"Available": 8, "Released": 1, "Bound": 1})
    size = f"{number + 1}Gi"  # sizes differ: of two that fit equally well, kube-scheduler takes any
    volume = _volume(draw, drawn, f"free-{number}", size, "free", phase)
    spec = volume["spec"]
    spec["storageClassName"] = draw.weighted({"local": 4, "late": 1})
    if draw.chance(0.08):
        spec["volumeAttributesClassName"] = "fast"
    if draw.chance(0.4):
        volume["metadata"]["labels"] = {"tier": draw.one(("gold", "silver"))}
    namespace = draw.one(namespaces)
    claims = drawn.claims(namespace)
    if claims and draw.chance(0.2):
        spec["claimRef"] = {"namespace": namespace, "name": draw.one(claims)}
        if draw.chance(0.3):
            spec["claimRef"]["uid"] = "00000000-0000-0000-0000-000000000001"
    if draw.chance(0.05):
        volume["metadata"]["deletionTimestamp"] = DELETED
    return volume


DELETED = "2026-01-01T00:00:00Z"
"""Stands for the time at which a terminating object was deleted."""


def _claim(draw: Draw, drawn: Storage, namespace: str, name: str) -> None:
    kind = draw.weighted(CLAIMS)
    metadata: Manifest = {"name": name, "namespace": namespace}
    size = draw.one(SIZES)
    mode = "ReadWriteOncePod" if kind == "once" else draw.weighted({"ReadWriteOnce": 3, "ReadWriteMany": 1})
    spec: Manifest = {"accessModes": [mode], "resources": {"requests": {"storage": size}}, "volumeMode": "Filesystem"}
    claim: Manifest = {"metadata": metadata, "spec": spec}
    if kind in ("immediate", "late", "zonal", "local"):
        spec["storageClassName"] = kind
    elif kind == "selected":
        spec["storageClassName"] = draw.one(("late", "zonal"))
        metadata["annotations"] = {SELECTED: draw.one(drawn.nodes)["metadata"]["name"]}
    elif kind == "class missing":
        spec["storageClassName"] = "missing"
    elif kind == "no class":
        spec["storageClassName"] = ""
    else:
        spec["storageClassName"] = draw.weighted({"late": 2, "immediate": 2, "": 1})
        spec["volumeName"] = f"{namespace}-{name}"
        if kind != "incomplete":
            metadata["annotations"] = {BOUND: "yes"}
        claim["status"] = {"phase": "Lost" if kind == "lost" else "Bound"}
        if kind == "deleted":
            metadata["deletionTimestamp"] = DELETED
        if kind not in ("volume missing", "lost"):
            volume = _volume(draw, drawn, spec["volumeName"], size, kind, "Bound")
            volume["spec"]["claimRef"] = {"namespace": namespace, "name": name}
            if spec["storageClassName"]:
                volume["spec"]["storageClassName"] = spec["storageClassName"]
            drawn.add("persistentvolumes", volume)
    if kind == "local":
        if draw.chance(0.3):
            spec["selector"] = {"matchLabels": {"tier": draw.one(("gold", "silver"))}}
        if draw.chance(0.15):
            spec["volumeMode"] = "Block"
        if draw.chance(0.08):
            spec["volumeAttributesClassName"] = "fast"
    drawn.add("persistentvolumeclaims", claim)
