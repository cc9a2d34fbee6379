"""Devices in instances: the nodes that offer them, the claims of pods, and what became of the claims. Pure
functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.cluster import gpu_devices, nodes
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.grove.fields import name
from conformance.history.view import View
from conformance.lab.gaps.instances import GapInstance, NodeGroup, ServiceComponent
from conformance.suite.scenes.api import Object
from conformance.testing import devices

WHOLE = "gpu"
"""The device of a component whose pods claim a whole GPU. Any other device is the profile of a partition."""
XID = 79
"""The error of GPUs that have failed."""


def offering_devices(node: Object, group: NodeGroup) -> Object:
    """Return a node with the devices and the capacity of the group's profile."""
    [offering] = gpu_devices.offered(nodes.manifests(group.profile, 1, ""), "devices")
    annotations = dict(offering["metadata"]["annotations"])
    for index in range(group.faulty):
        failures = gpu_devices.with_failure(annotations, f"gpu-{index}", DeviceFailure(XID))
        annotations[gpu_devices.FAILED] = str(failures)
    return {**node, "metadata": {**node["metadata"], "annotations": annotations}, "status": offering["status"]}


def claim_objects(bench: str, instance: GapInstance) -> list[Object]:
    """Return the claim that components share, and the templates for claims of single pods."""
    objects = {}
    for component in instance.components:
        if component.device:
            make = devices.claim if component.shared else devices.claim_template
            claim_name = _claim_name(bench, component)
            objects[claim_name] = make(claim_name, devices.claim_spec(_request(component.device)))
    return list(objects.values())


def add_claim(pod_spec: Object, bench: str, component: ServiceComponent) -> None:
    """Add the claim of a component to the spec of one of its pods."""
    if component.device:
        kind = "resourceClaimName" if component.shared else "resourceClaimTemplateName"
        pod_spec["resourceClaims"] = [{"name": "gpu", kind: _claim_name(bench, component)}]
        cpu = {"cpu": str(component.cpu)}
        pod_spec["containers"][0]["resources"] = {"requests": cpu, "limits": cpu, "claims": [{"name": "gpu"}]}


def count_allocated(view: View, bench: str) -> int:
    """Return the number of devices that are allocated to the claims of a bench."""
    claims = [claim for claim in view.list("resourceclaims") if name(claim).startswith(f"{bench}-")]
    return sum(len(devices.allocated_devices(claim)) for claim in claims)


def find_violation(view: View, bench: str, bound_pods: Sequence[Mapping[str, Any]]) -> str:
    """Return how the allocations of a bench contradict its bound pods, or an empty string. A pod whose claim is not
    allocated never starts, and a service that waits must not hold devices."""
    for claim_name, claim in devices.claims_of(view, bound_pods).items():
        if claim is None or not devices.allocated_devices(claim):
            return f"a pod is bound without the devices of {claim_name}"
    count = count_allocated(view, bench)
    return f"it holds {count} devices while it waits" if count and not bound_pods else ""


def _claim_name(bench: str, component: ServiceComponent) -> str:
    return f"{bench}-{'shared' if component.shared else component.name}"


def _request(device: str) -> Object:
    if device == WHOLE:
        return devices.request()
    selector = {"cel": {"expression": f'device.attributes["{devices.DRIVER}"].profile == "{device}"'}}
    return {"name": "gpu", "exactly": {"deviceClassName": devices.PARTITION_CLASS, "selectors": [selector]}}
