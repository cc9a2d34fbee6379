"""The claims for which the containers of a pod wait (DRA-05). Pure functions.

A kubelet starts the containers of a pod only if each of its ResourceClaims is allocated and reserved for the pod. The
stages leave a pod with claims unchanged until its condition PodReadyToStartContainers is True, which the process
`startup-order` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.cluster.kubelet_sim.init_wait import SimulatedPod
from kube.objects import ObjectMeta

STARTS = "PodReadyToStartContainers"


class Claim(msgspec.Struct):
    """A ResourceClaim."""

    metadata: ObjectMeta
    status: dict[str, Any] = {}

    def is_reserved_for(self, uid: str) -> bool:
        """Return whether the claim is reserved for a pod."""
        return any(consumer.get("uid") == uid for consumer in self.status.get("reservedFor") or ())


def names(pod: SimulatedPod) -> dict[str, str]:
    """Map the names by which a pod's spec refers to its claims to the names of the claims; an empty name stands for a
    claim that has not been created yet."""
    created = {
        str(item.get("name")): item.get("resourceClaimName") for item in pod.status.resource_claim_statuses or ()
    }
    claim_names: dict[str, str] = {}
    for reference in pod.spec.resource_claims or ():
        name = str(reference.get("name"))
        if "resourceClaimName" in reference:
            claim_names[name] = str(reference["resourceClaimName"])
        elif created.get(name, "") is not None:  # None: the template needs no claim
            claim_names[name] = str(created.get(name, ""))
    extended = (pod.status.extended_resource_claim_status or {}).get("resourceClaimName")
    return claim_names | ({"extended resources": str(extended)} if extended else {})


def problem(pod: SimulatedPod, claims: Mapping[str, Claim | None]) -> str:
    """Return the reason why the containers of a pod cannot start; empty if they can. `claims` maps the names of the
    pod's claims to the claims that exist."""
    for reference, name in names(pod).items():
        claim = claims.get(name)
        if claim is None:
            return f"ResourceClaim {name} does not exist" if name else f"no ResourceClaim for {reference} exists yet"
        if not claim.status.get("allocation"):
            return f"ResourceClaim {name} is not allocated"
        if not claim.is_reserved_for(pod.metadata.uid):
            return f"ResourceClaim {name} is not reserved for the pod"
    return ""


def started(now: str) -> dict[str, Any]:
    """Return the change of the status of a pod whose claims are prepared."""
    return {"conditions": [{"type": STARTS, "status": "True", "lastTransitionTime": now}]}


def creating(pod: SimulatedPod, now: str) -> dict[str, Any]:
    """Return the status of a pod whose containers wait for its claims."""
    containers = [
        {
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "ready": False,
            "started": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}},
        }
        for container in pod.spec.containers
    ]
    condition = {"type": STARTS, "status": "False", "lastTransitionTime": now}
    return {"startTime": now, "conditions": [condition], "containerStatuses": containers}
