"""Randomly drawn volumes, claims, storage classes and CSI objects of a scene."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.kube_scheduler.draw import WEIGHTS, Draw, Manifest
from tests.kube_scheduler.nodes import HOSTNAME, NAMESPACES, RACK, ZONE, ZONES

DRIVERS, SUCCESSORS = ("csi.example.com", "zonal.example.com"), ("ebs.csi.aws.com", "pd.csi.storage.gke.io")
"""CSI drivers, and CSI drivers that have replaced in-tree volume plugins."""
BETA_ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"
BOUND, SELECTED = "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node"
SIZES = ("1Gi", "5Gi", "10Gi")
DELETED = "2026-01-01T00:00:00Z"
"""The deletion timestamp of a terminating object."""


class StorageDraw:
    """The storage objects of a scene by plural resource name, while they are drawn."""

    def __init__(self, draw: Draw, node_names: Sequence[str], *, attached: bool) -> None:
        """If `attached` is true, use drivers that also count disks of in-tree plugins, and add attachments that belong
        to no pod."""
        self.draw, self._node_names, self._drivers = draw, node_names, SUCCESSORS if attached else DRIVERS
        self.objects: dict[str, list[Manifest]] = defaultdict(list)
        self.claims: dict[str, list[str]] = defaultdict(list)
        """The names of the claims, by namespace."""
        self.objects["storageclasses"] += self._classes()
        self.objects["csinodes"] += [self._csi_node(name) for name in node_names if draw.chance(0.7)]
        if draw.chance(0.35):
            self.objects["csidrivers"] = [
                {"metadata": {"name": self._drivers[0]}, "spec": {"storageCapacity": draw.chance(0.85)}}
            ]
            zones = draw.some(ZONES, 1, 3)
            self.objects["csistoragecapacities"] += [self._capacity(n, zone) for n, zone in enumerate(zones)]
        for namespace in NAMESPACES:
            for number in range(draw.number(2, 6)):
                self._claim(namespace, f"claim-{number}")
        self.objects["persistentvolumes"] += [self._free_volume(number) for number in range(draw.number(3, 8))]
        self.objects["volumeattachments"] += [self._attachment(number) for number in range(6 * attached)]

    def _classes(self) -> Iterator[Manifest]:
        draw = self.draw
        zones = [{"key": ZONE, "values": draw.some(ZONES, 1, 2)}]
        if draw.chance(0.3):
            zones.append({"key": "disk", "values": ["ssd"]})
        terms = [{"matchLabelExpressions": zones}]
        if draw.chance(0.3):
            terms.append({"matchLabelExpressions": [{"key": HOSTNAME, "values": ["n1", "n2"]}]})
        delayed = {"volumeBindingMode": "WaitForFirstConsumer"}
        yield {"metadata": {"name": "immediate"}, "provisioner": self._drivers[0], "volumeBindingMode": "Immediate"}
        yield {"metadata": {"name": "late"}, "provisioner": self._drivers[0], **delayed}
        yield {"metadata": {"name": "zonal"}, "provisioner": self._drivers[1], "allowedTopologies": terms, **delayed}
        yield {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **delayed}

    def _csi_node(self, name: str) -> Manifest:
        drivers: list[Manifest] = []
        for driver in self.draw.some(self._drivers, 1, 2):
            drivers.append({"name": driver, "nodeID": name})
            if self.draw.chance(0.8):
                drivers[-1]["allocatable"] = {"count": self.draw.number(0, 3)}
        return {"metadata": {"name": name}, "spec": {"drivers": drivers}}

    def _capacity(self, number: int, zone: str) -> Manifest:
        """Draw the remaining capacity of a driver in a zone."""
        draw = self.draw
        capacity: Manifest = {"metadata": {"name": f"capacity-{number}", "namespace": "a"}}
        capacity["storageClassName"] = draw.weighted({"late": 4, "local": 1})
        if draw.chance(0.9):
            capacity["nodeTopology"] = {"matchLabels": {ZONE: zone}}
        if draw.chance(0.9):
            capacity["capacity"] = draw.one(("2Gi", "6Gi", "50Gi"))
        if draw.chance(0.3):
            capacity["maximumVolumeSize"] = draw.one(("2Gi", "50Gi"))
        return capacity

    def _volume(self, name: str, size: str, kind: str, phase: str) -> Manifest:
        draw = self.draw
        modes = ["ReadWriteOncePod"] if kind == "once" else draw.one((["ReadWriteOnce"], ["ReadWriteMany"]))
        spec: Manifest = {"capacity": {"storage": size}, "accessModes": modes}
        spec["volumeMode"] = "Filesystem" if draw.chance(0.9) else "Block"
        spec["csi"] = {"driver": draw.weighted({self._drivers[0]: 3, self._drivers[1]: 1}), "volumeHandle": name}
        metadata: Manifest = {"name": name}
        if kind == "zoned":
            key = draw.weighted({ZONE: 3, BETA_ZONE: 1, REGION: 0.5})
            metadata["labels"] = {key: draw.one((*ZONES, "z1__z2", "z2__z3"))}
        elif draw.chance(0.6):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self._node_terms()}}
        return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}

    def _node_terms(self) -> list[Manifest]:
        """Draw the node selector terms of the nodes that can reach a volume."""
        by_key = {ZONE: ZONES, RACK: ("r1", "r2", "r3"), HOSTNAME: self._node_names}
        terms = []
        for _ in range(self.draw.weighted({1: 4, 2: 1})):
            key = self.draw.one(tuple(by_key))
            operator = self.draw.weighted({"In": 5, "NotIn": 1, "Exists": 0.5})
            values = {} if operator == "Exists" else {"values": self.draw.some(by_key[key], 1, 3)}
            terms.append({"matchExpressions": [{"key": key, "operator": operator, **values}]})
        return terms

    def _free_volume(self, number: int) -> Manifest:
        draw = self.draw
        phase = draw.weighted({"Available": 8, "Released": 1, "Bound": 1})
        size = f"{number + 1}Gi"  # sizes differ, or kube-scheduler might choose either
        volume = self._volume(f"free-{number}", size, "free", phase)
        spec = volume["spec"]
        spec["storageClassName"] = draw.weighted({"local": 4, "late": 1})
        if draw.chance(0.08):
            spec["volumeAttributesClassName"] = "fast"
        if draw.chance(0.4):
            volume["metadata"]["labels"] = {"tier": draw.one(("gold", "silver"))}
        namespace = draw.one(NAMESPACES)
        if self.claims[namespace] and draw.chance(0.2):
            spec["claimRef"] = {"namespace": namespace, "name": draw.one(self.claims[namespace])}
            if draw.chance(0.3):
                spec["claimRef"]["uid"] = "00000000-0000-0000-0000-000000000001"
        if draw.chance(0.05):
            volume["metadata"]["deletionTimestamp"] = DELETED
        return volume

    def _attachment(self, number: int) -> Manifest:
        names = [volume["metadata"]["name"] for volume in self.objects["persistentvolumes"]]
        spec: Manifest = {"attacher": self.draw.one(self._drivers), "nodeName": self.draw.one(self._node_names)}
        spec["source"] = {"persistentVolumeName": self.draw.one([*names, "missing"])}
        return {"metadata": {"name": f"attachment-{number}"}, "spec": spec}

    def _claim(self, namespace: str, name: str) -> None:
        draw, kind = self.draw, self.draw.weighted(WEIGHTS["claims"])
        size = draw.one(SIZES)
        mode = "ReadWriteOncePod" if kind == "once" else draw.weighted({"ReadWriteOnce": 3, "ReadWriteMany": 1})
        metadata: Manifest = {"name": name, "namespace": namespace}
        spec: Manifest = {"accessModes": [mode], "resources": {"requests": {"storage": size}}}
        spec["volumeMode"] = "Filesystem"
        claim: Manifest = {"metadata": metadata, "spec": spec}
        if kind in ("immediate", "late", "zonal", "local"):
            spec["storageClassName"] = kind
        elif kind == "selected":
            spec["storageClassName"] = draw.one(("late", "zonal"))
            metadata["annotations"] = {SELECTED: draw.one(self._node_names)}
        elif kind in ("class missing", "no class"):
            spec["storageClassName"] = "missing" if kind == "class missing" else ""
        else:
            self._bind(claim, kind)
        if kind == "local":
            if draw.chance(0.3):
                spec["selector"] = {"matchLabels": {"tier": draw.one(("gold", "silver"))}}
            if draw.chance(0.15):
                spec["volumeMode"] = "Block"
            if draw.chance(0.08):
                spec["volumeAttributesClassName"] = "fast"
        self.objects["persistentvolumeclaims"].append(claim)
        self.claims[namespace].append(name)

    def _bind(self, claim: Manifest, kind: str) -> None:
        """Bind a claim to its own volume."""
        metadata, spec = claim["metadata"], claim["spec"]
        claim_key = {"namespace": metadata["namespace"], "name": metadata["name"]}
        spec["storageClassName"] = self.draw.weighted({"late": 2, "immediate": 2, "": 1})
        spec["volumeName"] = f"{claim_key['namespace']}-{claim_key['name']}"
        if kind != "incomplete":
            metadata["annotations"] = {BOUND: "yes"}
        claim["status"] = {"phase": "Lost" if kind == "lost" else "Bound"}
        if kind == "deleted":
            metadata["deletionTimestamp"] = DELETED
        if kind not in ("volume missing", "lost"):
            size = spec["resources"]["requests"]["storage"]
            volume = self._volume(spec["volumeName"], size, kind, "Bound")
            volume["spec"]["claimRef"] = claim_key
            if spec["storageClassName"]:
                volume["spec"]["storageClassName"] = spec["storageClassName"]
            self.objects["persistentvolumes"].append(volume)
