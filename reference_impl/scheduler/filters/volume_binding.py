"""The filter for nodes on which the volumes of bound claims can be used and volumes for unbound claims can be bound or
provisioned."""

from __future__ import annotations

from collections.abc import Collection

from reference_impl.scheduler.filters.cluster_state import AssumedClaim, ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.quantity import thousandths
from reference_impl.scheduler.selectors import selects, selects_node
from reference_impl.scheduler.storage import (
    NO_PROVISIONER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)

Choice = list[tuple[PersistentVolumeClaim, PersistentVolume | None]]
"""Unbound claims, each with the volume to bind, or None if a volume is to be provisioned."""


class VolumeBinding(Plugin):
    """Rejects nodes that cannot use the bound volumes, and nodes on which no volume is available for an unbound claim.
    Among pods that are placed together, a volume is given to only one claim."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._rejection = ""
        self._bound_claims: list[PersistentVolumeClaim] = []
        self._unbound_claims: list[PersistentVolumeClaim] = []
        for name, ephemeral in pod.claims:
            claim = state.claims_by_key.get((pod.metadata.namespace, name))
            self._rejection = self._rejection or _claim_problem(pod, name, claim, ephemeral=ephemeral)
            if claim is None:
                continue
            storage_class = state.storage_classes_by_name.get(claim.storage_class)
            if claim.bound:
                self._bound_claims.append(claim)
            elif storage_class and storage_class.waits_for_first_consumer and not claim.spec.volume_name:
                self._unbound_claims.append(claim)
            else:
                self._rejection = self._rejection or "pod has unbound immediate PersistentVolumeClaims"

    @property
    def dynamic(self) -> bool:
        return bool(self._unbound_claims) and not self._rejection

    @property
    def monotone(self) -> bool:
        return not self._unbound_claims  # the first pod that uses a claim determines the claim's volume

    def refusal(self, node: Node) -> str:
        if self._rejection:
            return self._rejection
        for claim in self._bound_claims:
            volume = self.state.volumes_by_name.get(claim.spec.volume_name)
            if volume is None:
                return f"bound PersistentVolume {claim.spec.volume_name} doesn't exist"
            if not _is_usable(volume, node):
                return "node had volume node affinity conflict"
        return self._choose(node)[0] if self._unbound_claims else ""

    def choice(self, node: Node) -> Choice:
        """Return the volumes for unbound claims on a node that is not rejected."""
        return self._choose(node)[1] if self._unbound_claims else []

    def update(self, other: Pod, node: Node, delta: int) -> None:
        """Record the volumes chosen for pods of this filter; no other pods change `assumed_claims`."""
        if other is not self.pod:
            return
        for claim, volume in self.choice(node) if delta > 0 else [(claim, None) for claim in self._unbound_claims]:
            for _ in range(abs(delta)):
                assumed_claims = self.state.assumed_claims.setdefault(claim.metadata.key, [])
                if delta > 0:
                    assumed_claims.append(AssumedClaim(node, assumed_claims[0].volume if assumed_claims else volume))
                else:
                    assumed_claims.pop()

    def _choose(self, node: Node) -> tuple[str, Choice]:
        state, choice, claims_to_provision = self.state, Choice(), []
        first_assumed = (assumed[0] for assumed in state.assumed_claims.values() if assumed)
        used_volumes = {first.volume.metadata.name for first in first_assumed if first.volume}
        for claim in sorted(self._unbound_claims, key=lambda claim: thousandths(claim.size)):
            if assumed := state.assumed_claims.get(claim.metadata.key):
                volume = assumed[0].volume
                if volume is not None and not _is_usable(volume, node):
                    return "node had volume node affinity conflict", []
                choice.append((claim, volume))
                continue
            if claim.selected_node is not None:
                if claim.selected_node != node.metadata.name:
                    return "node didn't find available persistent volumes to bind", []
                claims_to_provision.append(claim)
                continue
            volume = _find_volume(claim, node, state.volumes_by_class.get(claim.storage_class, ()), used_volumes)
            if volume is None:
                claims_to_provision.append(claim)
            else:
                used_volumes.add(volume.metadata.name)
                choice.append((claim, volume))
        for claim in claims_to_provision:
            if reason := _provisioning_problem(claim, node, state):
                return reason, []
            choice.append((claim, None))
        return "", choice


def _claim_problem(pod: Pod, name: str, claim: PersistentVolumeClaim | None, *, ephemeral: bool) -> str:
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owner = claim.metadata.controller
    if ephemeral and (owner is None or owner.uid != pod.metadata.uid):
        return f'persistentvolumeclaim "{name}" was not created for pod (pod is not owner)'
    return ""


def _is_usable(volume: PersistentVolume, node: Node) -> bool:
    """Return whether the node affinity of a volume admits a node."""
    return volume.affinity is None or selects_node(volume.affinity, node.metadata.name, node.metadata.labels)


def _find_volume(
    claim: PersistentVolumeClaim, node: Node, volumes: Collection[PersistentVolume], used_volumes: Collection[str]
) -> PersistentVolume | None:
    """Return the volume that is reserved for the claim, or else the smallest available volume that suits the claim, or
    None if there is no such volume."""
    size, smallest = thousandths(claim.size), None
    for volume in volumes:
        spec, ref = volume.spec, volume.spec.claim_ref
        is_reserved = ref is not None and (ref.namespace, ref.name) == claim.metadata.key
        is_reserved = is_reserved and ref is not None and ref.uid in ("", claim.metadata.uid)
        if volume.metadata.name in used_volumes or (ref is not None and not is_reserved):
            continue
        capacity = thousandths((spec.capacity or {}).get("storage", 0))
        attributes = (spec.volume_attributes_class_name or "", claim.spec.volume_attributes_class_name or "")
        if capacity < size or spec.volume_mode != claim.spec.volume_mode or attributes[0] != attributes[1]:
            continue
        if volume.metadata.deletion_timestamp is not None:
            continue
        if is_reserved:
            return volume if _is_usable(volume, node) else None
        if volume.status.phase != "Available" or not set(claim.spec.access_modes) <= set(spec.access_modes):
            continue
        if claim.spec.selector is not None and not selects(claim.spec.selector, volume.metadata.labels):
            continue
        if _is_usable(volume, node) and (smallest is None or capacity < smallest[0]):
            smallest = (capacity, volume)
    return smallest[1] if smallest else None


def _provisioning_problem(claim: PersistentVolumeClaim, node: Node, state: ClusterState) -> str:
    storage_class = state.storage_classes_by_name[claim.storage_class]
    if storage_class.provisioner in ("", NO_PROVISIONER) or not _is_topology_allowed(
        storage_class.allowed_topologies, node
    ):
        return "node didn't find available persistent volumes to bind"
    return "" if _has_capacity(claim, storage_class, node, state) else "node did not have enough free storage"


def _is_topology_allowed(terms: list[TopologyTerm] | None, node: Node) -> bool:
    labels = node.metadata.labels or {}
    return not terms or any(
        term.match_label_expressions and all(labels.get(e.key) in e.values for e in term.match_label_expressions)
        for term in terms
    )


def _has_capacity(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node, state: ClusterState) -> bool:
    """Return whether the driver has capacity for the volume, or True if the driver does not publish its capacity."""
    driver = state.csi_drivers_by_name.get(storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity or "storage" not in (claim.spec.resources.requests or {}):
        return True
    size = thousandths(claim.size)
    capacities = (c for c in state.storage_capacities if c.storage_class_name == storage_class.metadata.name)
    return any(
        limit is not None and thousandths(limit) >= size and selects(topology, node.metadata.labels)
        for limit, topology in (
            (c.capacity if c.maximum_volume_size is None else c.maximum_volume_size, c.node_topology)
            for c in capacities
        )
    )
