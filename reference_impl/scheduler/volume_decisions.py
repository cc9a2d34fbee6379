"""Decisions about claims whose volumes are bound when their pods are placed. The scheduler decides which volume is
bound, or for which node a volume is provisioned, and binds the pods when the claims are bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reference_impl.scheduler import preemption
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import Bound, Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.shortfall import Shortfall
from reference_impl.scheduler.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim


@dataclass(frozen=True)
class Decision:
    """The volume for an unbound claim of a pod, or the node for which a volume is provisioned."""

    pods: set[str]
    """The pods (by uid) that use the claim."""
    claim: PersistentVolumeClaim
    volume: PersistentVolume | None
    node: str

    def body(self) -> dict[str, Any] | None:
        """Return the merge patch of the volume, or of the claim if there is no volume, or None if it has already been
        written."""
        meta, volume = self.claim.metadata, self.volume
        if volume is None:
            version = {"uid": meta.uid, "resourceVersion": meta.resource_version}
            annotations = {SELECTED_NODE: self.node}
            return {"metadata": {**version, "annotations": annotations}} if self.claim.selected_node is None else None
        if volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == meta.uid:
            return None
        ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta.namespace, "name": meta.name}
        annotations = {} if volume.spec.claim_ref else {"pv.kubernetes.io/bound-by-controller": "yes"}
        metadata = {"resourceVersion": volume.metadata.resource_version, "annotations": annotations}
        return {"metadata": metadata, "spec": {"claimRef": {**ref, "uid": meta.uid}}}


def decisions(bindings: Iterable[Bound], capacity: Capacity) -> list[Decision]:
    """Return one decision for each claim that must be bound before its pods."""
    by_claim: dict[tuple[str, str], Decision] = {}
    for pod, node in bindings:
        guard = capacity.shape(pod).guard
        for claim, volume in guard.choice(capacity.nodes[capacity.index[node]]) if guard else ():
            decision = by_claim.setdefault(claim.metadata.key, Decision(set(), claim, volume, node))
            decision.pods.add(pod.metadata.uid)
    return list(by_claim.values())


def postpone_gangs(gangs: Sequence[Gang], plan: Plan, decisions: Sequence[Decision]) -> set[str]:
    """Take back the bindings of gangs with claims that are not bound yet, and of their scaled gangs. Return the names
    of the gangs with unbound claims. The chosen nodes stay reserved until the next cycle, which considers these gangs
    first among gangs of their priority."""
    if not decisions:
        return set()
    uids = {uid for decision in decisions for uid in decision.pods}
    postponed = {gang.name for gang in gangs if any(pod.metadata.uid in uids for pod, _ in gang.members)}
    bound_uids = {pod.metadata.uid for pod, _ in plan.bindings}
    names = ", ".join(decision.claim.metadata.name for decision in decisions)
    for gang in gangs:
        if gang.name in postponed or gang.base in postponed:
            postponed_uids = {pod.metadata.uid for pod, _ in gang.members} & bound_uids
            for group in gang.groups:
                group.waiting += [pod for pod, _ in group.members if pod.metadata.uid in postponed_uids]
            preemption.remove_pods(gang, postponed_uids)
            plan.bindings = [bound for bound in plan.bindings if bound[0].metadata.uid not in postponed_uids]
            shortfall = Shortfall("volumes", detail=names)
            if not gang.minimum_reached:
                plan.waiting[gang.name] = shortfall
            plan.extra_pod_reasons.update(dict.fromkeys(postponed_uids, str(shortfall)))
    return postponed
