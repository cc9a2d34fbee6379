"""A pod that has exactly one feasible node once the scheduler has seen the last object of each kind.

A watch delivers the objects of one kind in order, so the scheduler has then seen all objects of the scene.
"""

from __future__ import annotations

from typing import ClassVar

from tests.kube_scheduler.nodes import Manifest
from tests.kube_scheduler.pods import IMAGE, REQUIRED
from tests.kube_scheduler.storage import BOUND

KEY = "example.com/probe"


class Probe:
    """The objects and the pods of one probe; all have its tag.

    Node `probe` is feasible by the namespace, the bound pod, the volume, both claims and the class. Node `probe-full`
    is feasible unless its CSINode is known, and node `probe-small` unless the driver and a capacity are.
    """

    NAMESPACE: ClassVar[str] = "probe"
    EXPECTED: ClassVar[list[str]] = ["probe"]

    def __init__(self, number: int) -> None:
        self.tag = f"probe-{number}"
        self._driver = f"{self.tag}.example.com"

    def objects(self, plural: str) -> list[Manifest]:
        """Return the objects of one kind."""
        tag, driver, own = self.tag, self._driver, {KEY: self.tag}
        size = {"storage": "1Gi"}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}}
        place = {"name": "bound", "namespace": self.NAMESPACE}
        objects: dict[str, list[Manifest]] = {
            "namespaces": [{"metadata": {"name": self.NAMESPACE, "labels": own}}],
            "nodes": [self._node(name) for name in ("probe-full", "probe-small", "probe")],
            "storageclasses": [
                {"metadata": {"name": tag}, "provisioner": driver, "volumeBindingMode": "WaitForFirstConsumer"}
            ],
            "csinodes": [
                {
                    "metadata": {"name": "probe-full"},
                    "spec": {"drivers": [{"name": driver, "nodeID": "probe-full", "allocatable": {"count": 0}}]},
                }
            ],
            "csidrivers": [{"metadata": {"name": driver}, "spec": {"storageCapacity": True}}],
            "csistoragecapacities": [
                {
                    "metadata": {"name": name, "namespace": self.NAMESPACE},
                    "storageClassName": tag,
                    "nodeTopology": {"matchLabels": {**own, "example.com/name": name}},
                    "capacity": "10Gi",
                }
                for name in ("probe-full", "probe")
            ],
            "persistentvolumes": [
                {
                    "metadata": {"name": tag},
                    "spec": {
                        "capacity": size,
                        "accessModes": ["ReadWriteOnce"],
                        "csi": {"driver": driver, "volumeHandle": tag},
                        "claimRef": place,
                    },
                }
            ],
            "persistentvolumeclaims": [
                {"metadata": {"name": "late", "namespace": self.NAMESPACE}, "spec": {**claim, "storageClassName": tag}},
                {
                    "metadata": {**place, "annotations": {BOUND: "yes"}},
                    "spec": {**claim, "storageClassName": "", "volumeName": tag},
                },
            ],
            "pods": [{"metadata": {**place, "labels": own}, "spec": {**self._spec(), "nodeName": "probe"}}],
        }
        return objects[plural]

    def pod(self, number: int) -> Manifest:
        """Return a pod to be placed."""
        own = {"matchLabels": {KEY: self.tag}}
        term = {"topologyKey": KEY, "labelSelector": own, "namespaceSelector": own}
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("late", "bound")]
        spec = {
            **self._spec(),
            "affinity": {"podAffinity": {REQUIRED: [term]}},
            "tolerations": [{"operator": "Exists"}],
            "volumes": volumes,
        }
        return {"metadata": {"name": f"pod-{number}", "namespace": self.NAMESPACE, "labels": {}}, "spec": spec}

    def _node(self, name: str) -> Manifest:
        allocatable = {"cpu": "1", "memory": "1Gi", "pods": "110"}
        return {
            "metadata": {"name": name, "labels": {KEY: self.tag, "example.com/name": name}},
            "spec": {"unschedulable": True},
            "status": {"capacity": allocatable, "allocatable": allocatable},
        }

    @staticmethod
    def _spec() -> Manifest:
        return {"automountServiceAccountToken": False, "containers": [{"name": "main", "image": IMAGE}]}
