"""Extended resources that devices serve (DRA-09): a pod that requests a resource which no node offers gets a claim for
devices of the class that has the resource's name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from kube.objects import ObjectMeta, OwnerReference
from reference_impl.scheduler.devices.objects import (
    FINALIZER,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    Request,
    ResourceClaim,
    ResourceClaimSpec,
)
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.requests import amounts

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""Marks the claims that a scheduler creates for the extended resources of a pod."""


class ContainerRequest(NamedTuple):
    """The devices that a container requests by the name of an extended resource."""

    container: str
    resource: str
    request: str
    devices: int


def class_names(classes: Mapping[str, DeviceClass], offered: Collection[str]) -> dict[str, str]:
    """Map the extended resources that devices serve to their classes. `offered` are the resources of nodes."""
    by_age = sorted(classes.values(), key=lambda c: (c.metadata.creation_timestamp or "", c.metadata.name))
    names = {c.spec.extended_resource_name: c.metadata.name for c in by_age if c.spec.extended_resource_name}
    return {resource: name for resource, name in names.items() if resource not in offered}


def requests_of(pod: Pod, classes: Mapping[str, str]) -> Iterator[ContainerRequest]:
    """Yield the requests for devices of each container. `classes` maps extended resources to classes."""
    for i, container in enumerate((*(pod.spec.init_containers or ()), *pod.spec.containers)):
        requested = {**amounts(container.resources.limits), **amounts(container.resources.requests)}
        resources = sorted(resource for resource, amount in requested.items() if resource in classes and amount > 0)
        for j, resource in enumerate(resources):
            name = f"container-{i}-request-{j}"
            yield ContainerRequest(container.name, resource, name, requested[resource] // 1000)


def claim_for(pod: Pod, classes: Mapping[str, str]) -> ResourceClaim:
    """Return the claim for the extended resources of a pod, which does not exist yet and has no name."""
    requests = [
        DeviceRequest(request.request, Request(device_class_name=classes[request.resource], count=request.devices))
        for request in requests_of(pod, classes)
    ]
    owner = OwnerReference("v1", "Pod", pod.metadata.name, pod.metadata.uid, controller=True)
    meta = ObjectMeta(namespace=pod.metadata.namespace, uid=f"extended-{pod.metadata.uid}", owner_references=[owner])
    return ResourceClaim(meta, ResourceClaimSpec(DeviceClaim(requests)))


def manifest(pod: Pod, classes: Mapping[str, str]) -> dict[str, Any]:
    """Return the claim as it is created."""
    meta = pod.metadata
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
    requests = [
        {"name": r.request, "exactly": {"deviceClassName": classes[r.resource], "count": r.devices}}
        for r in requests_of(pod, classes)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{meta.name}-extended-resources-",
            "namespace": meta.namespace,
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
            "finalizers": [FINALIZER],
        },
        "spec": {"devices": {"requests": requests}},
    }


def pod_status(pod: Pod, claim_name: str, classes: Mapping[str, str]) -> dict[str, Any]:
    """Return the field of the pod's status that names the claim and says which request serves which container."""
    mappings = [
        {"containerName": r.container, "resourceName": r.resource, "requestName": r.request}
        for r in requests_of(pod, classes)
    ]
    return {"extendedResourceClaimStatus": {"resourceClaimName": claim_name, "requestMappings": mappings}}
