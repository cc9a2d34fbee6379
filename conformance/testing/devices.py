"""Devices and claims of a scene: workloads whose pods need devices, and which devices are allocated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove.fields import Document, at, items, name
from conformance.grove.scheduling.admits import is_selected
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object

CLASS = "gpu.nvidia.com"
DRIVER = "gpu.nvidia.com"

Device = tuple[str, str, str]
"""Driver, pool and name."""


def request(count: int = 1, request_name: str = "gpu", **fields: object) -> Object:
    """Return a request for GPUs."""
    return {"name": request_name, "exactly": {"deviceClassName": CLASS, "count": count, **fields}}


def claim_spec(*requests: Object, **fields: object) -> Object:
    """Return the spec of a claim with these requests, by default for one GPU."""
    return {"devices": {"requests": list(requests) or [request()], **fields}}


def claim_template(template_name: str, spec: Object) -> Object:
    """Return a ResourceClaimTemplate in the namespace of the scene."""
    kind = "ResourceClaimTemplate"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": template_name},
        "spec": {"spec": spec},
    }


def claim(claim_name: str, spec: Object) -> Object:
    """Return a ResourceClaim in the namespace of the scene."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": claim_name}, "spec": spec}


def with_claim(workload: Object, reference: Mapping[str, str]) -> Object:
    """Give the pods of all cliques a claim, and return the workload. `reference` is `resourceClaimName` or
    `resourceClaimTemplateName`."""
    for clique in workload["spec"]["template"]["cliques"]:
        pod = clique["spec"]["podSpec"]
        pod["resourceClaims"] = [{"name": "gpu", **reference}]
        for container in pod["containers"]:
            container.setdefault("resources", {})["claims"] = [{"name": "gpu"}]
    return workload


def allocated_devices(resource_claim: Document, request_name: str = "") -> list[Device]:
    """Return the devices of a claim, or those for one of its requests, except devices with admin access."""
    results = items(resource_claim, "status", "allocation", "devices", "results")
    return [
        (str(result.get("driver")), str(result.get("pool")), str(result.get("device")))
        for result in results
        if not result.get("adminAccess") and request_name in ("", result.get("request"))
    ]


def claims_of_devices(view: View) -> dict[Device, list[str]]:
    """Map each allocated device to the claims that it is allocated to."""
    claims: dict[Device, list[str]] = defaultdict(list)
    for resource_claim in view.list("resourceclaims"):
        for device in allocated_devices(resource_claim):
            claims[device].append(name(resource_claim))
    return dict(claims)


@predicate
def are_allocated_once(view: View) -> bool | Unmet:
    """Return whether no device is in two allocations."""
    for (_, pool, device), claims in claims_of_devices(view).items():
        if len(claims) > 1:
            return Unmet(f"device {device} of {pool} is allocated to {' and '.join(sorted(claims))}")
    return True


def attributes(view: View, device: Device) -> Mapping[str, Any]:
    """Return the attributes of a published device: name → value with its type; empty for an unknown device."""
    driver, pool, device_name = device
    for published in view.list("resourceslices"):
        if (at(published, "spec", "driver"), at(published, "spec", "pool", "name")) == (driver, pool):
            for entry in items(published, "spec", "devices"):
                if entry.get("name") == device_name:
                    return entry.get("attributes") or {}
    return {}


def claims_of(view: View, pods: Sequence[Document]) -> dict[str, Document | None]:
    """Map the names of the claims of pods to the claims; None for a claim that does not exist."""
    names = []
    for pod in pods:
        created = {status.get("name"): status for status in items(pod, "status", "resourceClaimStatuses")}
        for reference in items(pod, "spec", "resourceClaims"):
            source = reference if "resourceClaimName" in reference else created.get(reference.get("name"), {})
            names.append(str(source.get("resourceClaimName", "")))
    return {claim_name: view.get("resourceclaims", claim_name) for claim_name in names}


def available_nodes(view: View, resource_claim: Document) -> set[str]:
    """Return the nodes on which the devices of a claim are available according to its allocation."""
    selector = at(resource_claim, "status", "allocation", "nodeSelector")
    if selector is None:
        return {name(node) for node in view.list("nodes")}
    terms = [
        {"matchExpressions": [*items(term, "matchExpressions"), *items(term, "matchFields")]}
        for term in items(selector, "nodeSelectorTerms")
    ]
    return {name(node) for node in view.list("nodes") if is_selected(_labels_and_name(node), terms)}


def _labels_and_name(node: Document) -> dict[str, str]:
    """Return the labels of a node, and its name as the field metadata.name."""
    labels: dict[str, str] = (node.get("metadata") or {}).get("labels") or {}
    return {**labels, "metadata.name": name(node)}
