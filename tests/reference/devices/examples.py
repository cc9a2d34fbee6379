"""Slices, classes, claims and pods for the tests of devices."""

from __future__ import annotations

from typing import Any

import msgspec

from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.devices import objects
from reference_impl.scheduler.devices.decisions import ClaimDecision, decisions
from reference_impl.scheduler.devices.inventory import Inventory
from reference_impl.scheduler.devices.ledger import Ledger
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.gang import Gang, Group
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.snapshot import used_resources
from tests.reference.filters.scenes import pod

DRIVER = "gpu.example.com"
CLASSES = [
    {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}
]


def device_slice(node: str, *devices: dict[str, Any] | str, counters: dict[str, int] | None = None, **spec: Any) -> Any:
    """Return a slice of a node's devices: names, or devices as dicts. `counters` are the counters of the set `card`,
    which make it a slice of counters."""
    content = [{"name": d} if isinstance(d, str) else d for d in devices]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1} | spec.pop("pool", {})
    body: dict[str, Any] = {"driver": DRIVER, "pool": pool, "nodeName": node, **spec}
    body["devices"] = content
    if counters:
        totals = {name: {"value": str(amount)} for name, amount in counters.items()}
        body["sharedCounters"] = [{"name": "card", "counters": totals}]
    name = f"{node}-{'counters' if counters else 'devices'}-{pool['generation']}"
    return msgspec.convert({"metadata": {"name": name}, "spec": body}, objects.ResourceSlice)


def request(count: int = 1, name: str = "r", **fields: Any) -> dict[str, Any]:
    """Return a request for devices of the class `gpu`."""
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count, **fields}}


def claim(name: str, *requests: dict[str, Any], owner: str = "", **fields: Any) -> objects.ResourceClaim:
    """Return a claim, created for the pod `owner` if the name is not empty. `fields` may contain `constraints` of the
    claim and its `status`."""
    meta: dict[str, Any] = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": "1"}
    if owner:
        meta["ownerReferences"] = [{"kind": "Pod", "name": owner, "uid": f"u-{owner}", "controller": True}]
    status = fields.pop("status", {})
    devices = {"requests": list(requests) or [request()], **fields}
    content = {"metadata": meta, "spec": {"devices": devices}, "status": status}
    return msgspec.convert(content, objects.ResourceClaim)


def allocated(node: str, *devices: str, users: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the status of a claim with devices of a node, reserved for pods."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": device} for device in devices]
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    reserved = [{"resource": "pods", "name": user, "uid": f"u-{user}"} for user in users]
    return {"allocation": {"devices": {"results": results}, "nodeSelector": selector}, "reservedFor": reserved}


def with_own_claim(name: str, **fields: Any) -> Pod:
    """Return a pod with a claim from a template; the claim has the name of the pod."""
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
    return pod(name, status=status, **{**spec, **fields})


def with_shared_claim(name: str, claim_name: str, **fields: Any) -> Pod:
    """Return a pod that uses an existing claim."""
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim_name}], **fields)


def owners(pods: list[Pod], *requests: dict[str, Any], **fields: Any) -> list[objects.ResourceClaim]:
    """Return the claims of pods that have a claim from a template."""
    return [claim(p.metadata.name, *requests, owner=p.metadata.name, **fields) for p in pods]


class Cluster:
    """Nodes with devices. `plan` decides one cycle for gangs whose groups are lists of pods."""

    def __init__(
        self,
        nodes: list[Node],
        slices: list[objects.ResourceSlice],
        claims: list[objects.ResourceClaim],
        pods: tuple[Pod, ...] = (),
        classes: list[Any] = CLASSES,
    ) -> None:
        inventory = Inventory(slices, msgspec.convert(classes, list[objects.DeviceClass]))
        self.ledger = Ledger(inventory, claims, {resource for node in nodes for resource in node.allocatable})
        self.state = ClusterState(nodes, pods, devices=self.ledger)
        self.capacity = Capacity(nodes, used_resources(pods, {}), self.state)

    def plan(self, *gangs: Gang, **around: Any) -> cycle.Plan:
        """Decide one cycle."""
        return cycle.plan(gangs, self.capacity, cycle.OtherPods(**around) if around else None)

    def devices(self, plan: cycle.Plan) -> dict[str, list[str]]:
        """Return the devices of each claim that the plan allocates, as `pool/device`."""
        return {
            decision.claim.metadata.name: [f"{result.pool}/{result.device}" for result in decision.results]
            for decision in self.decisions(plan)
            if decision.results is not None
        }

    def decisions(self, plan: cycle.Plan) -> list[ClaimDecision]:
        """Return what the plan decides about claims."""
        bindings = ((p, self.capacity.shape(p).pod, node) for p, node in plan.bindings)
        claim_decisions, without_devices = decisions(bindings, self.ledger)
        assert not without_devices
        return claim_decisions


def gang(name: str, *groups: list[Pod], minimum: int | None = None, **fields: Any) -> Gang:
    """Return a gang whose groups must be placed whole, or up to a minimum."""
    parts = [Group(f"{name}-{i}", len(pods) if minimum is None else minimum, pods) for i, pods in enumerate(groups)]
    return Gang(name, parts, **fields)
