"""The filter for zones and regions of bound volumes."""

from __future__ import annotations

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod

BETA_KEYS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
KEYS = (*BETA_KEYS, *BETA_KEYS.values())


class VolumeZone(Plugin):
    """Rejects nodes in another zone or region than a bound volume of the pod. Nodes without any zone or region label
    are accepted."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._missing_object = ""
        self._required: list[tuple[str, set[str]]] = []
        for name, ephemeral in pod.claims:
            claim = None if ephemeral else state.claims_by_key.get((pod.metadata.namespace, name))
            if claim is None or not claim.spec.volume_name:
                continue  # VolumeBinding rejects nodes for claims that cannot be bound later
            volume = state.volumes_by_name.get(claim.spec.volume_name)
            if volume is None:
                self._missing_object = f'persistentvolume "{claim.spec.volume_name}" not found'
                continue
            for key in KEYS:
                values = [value.strip() for value in volume.metadata.label(key).split("__")]
                if all(values):
                    self._required.append((key, set(values)))

    def refusal(self, node: Node) -> str:
        if self._missing_object:
            return self._missing_object
        labels = node.metadata.labels or {}
        if not self._required or not any(key in labels for key in KEYS):
            return ""
        for key, values in self._required:
            if labels.get(key, labels.get(BETA_KEYS.get(key, key))) not in values:
                return "node had no available volume zone"
        return ""
