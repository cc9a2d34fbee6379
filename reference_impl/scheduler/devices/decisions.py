"""The decisions of a scheduling cycle about claims: the devices that the claims get, and the pods for which the claims
are reserved. The functions are pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reference_impl.scheduler.cycle import Bound, Plan
from reference_impl.scheduler.devices.allocator import Results
from reference_impl.scheduler.devices.inventory import Inventory
from reference_impl.scheduler.devices.ledger import Ledger, Placed
from reference_impl.scheduler.devices.objects import Request, ResourceClaim
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.selectors import NodeTerm

Binding = tuple[Pod, Pod, str]
"""A pod to bind, the pod that represents it in the ledger, and the name of its node."""


@dataclass
class ClaimDecision:
    """The allocation of a claim, and the pods for which it is reserved. Without `results`, the claim has an
    allocation."""

    claim: ResourceClaim
    results: Results | None
    node: str
    pods: list[Pod] = field(default_factory=list)
    """The pods for which the claim will additionally be reserved."""

    def status(self, inventory: Inventory) -> dict[str, Any]:
        """Return the fields of the claim's status that change."""
        consumers = [_plain(consumer) for consumer in self.claim.status.reserved_for]
        consumers += [{"resource": "pods", "name": p.metadata.name, "uid": p.metadata.uid} for p in self.pods]
        if self.results is None:
            return {"reservedFor": consumers}
        return {"allocation": allocation(self.claim, self.results, inventory, self.node), "reservedFor": consumers}


def decisions(bindings: Iterable[Binding], ledger: Ledger) -> tuple[list[ClaimDecision], set[str]]:
    """Return a decision for each claim that must be written before the pods are bound, and the pods (by uid) that must
    not be bound because devices for them are missing."""
    by_claim: dict[str, ClaimDecision] = {}
    without_devices: set[str] = set()
    used: Counter[tuple[str, int]] = Counter()
    for pod, representative, node in bindings:
        if not ledger.has_claims(pod):
            continue
        entries = [entry for entry in ledger.placed_on(node) if entry.pod is representative]
        position = used[node, id(representative)]
        used[node, id(representative)] += 1
        if position >= len(entries) or entries[position].results is None:
            without_devices.add(pod.metadata.uid)
            continue
        for claim, results in _allocations(pod, entries[position], ledger):
            decision = by_claim.setdefault(claim.metadata.uid, ClaimDecision(claim, None, node))
            if results is not None:
                decision.results, decision.node = results, node
            if pod.metadata.uid not in claim.consumers:
                decision.pods.append(pod)
    changed = [decision for decision in by_claim.values() if decision.pods or decision.results is not None]
    return changed, without_devices


def withdraw(plan: Plan, gangs: Iterable[Gang], uids: Collection[str]) -> list[Bound]:
    """Remove the bindings of the gangs that have one of these pods, and of their scaled gangs, from a plan. Return
    these bindings."""
    if not uids:
        return []
    order = list(gangs)
    names = {gang.name for gang in order if any(pod.metadata.uid in uids for pod, _ in gang.members)}
    withdrawn = {pod.metadata.uid for gang in order if names & {gang.name, gang.base} for pod, _ in gang.members}
    removed = [bound for bound in plan.bindings if bound[0].metadata.uid in withdrawn]
    plan.bindings = [bound for bound in plan.bindings if bound[0].metadata.uid not in withdrawn]
    return removed


def _allocations(pod: Pod, entry: Placed, ledger: Ledger) -> Iterable[tuple[ResourceClaim, Results | None]]:
    """Yield the claims of a pod, with the devices that they get if this pod is the first to use them."""
    claims, results = ledger.claims_of(pod), entry.results or []
    first_used = {claim.metadata.uid: i for i, claim in enumerate(entry.claims)}
    yield from ((claim, None) for claim in claims.allocated)
    yield from zip(claims.pod_owned, results, strict=False)
    for claim in claims.shared:
        index = first_used.get(claim.metadata.uid)
        yield claim, None if index is None else results[index]


def allocation(claim: ResourceClaim, results: Results, inventory: Inventory, node: str) -> dict[str, Any]:
    """Return the allocation of a claim, made for a pod on `node`, as the API server stores it."""
    content: dict[str, Any] = {"devices": {"results": [_plain(result) for result in results]}}
    if configuration := _configuration(claim, results, inventory):
        content["devices"]["config"] = configuration
    if (selector := _node_selector(results, inventory, node)) is not None:
        content["nodeSelector"] = selector
    return content


def _configuration(claim: ResourceClaim, results: Results, inventory: Inventory) -> list[dict[str, Any]]:
    """Return the parameters for drivers: first the parameters of the classes, and then the parameters of the claim."""
    chosen: dict[str, Request] = {
        request.result_name(alternative): alternative
        for request in claim.spec.devices.requests
        for alternative in request.alternatives
    }
    names = list(dict.fromkeys(result.request for result in results))
    by_class: dict[str, list[str]] = {}
    for name in names:
        by_class.setdefault(chosen[name].device_class_name, []).append(name)
    configuration: list[dict[str, Any]] = []
    for class_name, requests in by_class.items():
        entries = inventory.classes[class_name].spec.config if class_name in inventory.classes else []
        configuration += [{"source": "FromClass", "requests": requests, **entry} for entry in entries]
    served = {*names, *(name.partition("/")[0] for name in names)}
    for entry in claim.spec.devices.config:
        if not entry.get("requests") or served & set(entry["requests"]):
            configuration += [{"source": "FromClaim", **entry}]
    return configuration


def _node_selector(results: Results, inventory: Inventory, node: str) -> dict[str, Any] | None:
    """Return the nodes that all devices reach, or None for all nodes."""
    terms: list[NodeTerm] = []
    for result in results:
        device = inventory.devices[result.device_id]
        if device.node_name or device.device.binds_to_node:
            fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
            return {"nodeSelectorTerms": [{"matchFields": fields}]}
        if device.node_selector is not None:
            terms += device.node_selector.node_selector_terms or []
    parts: dict[str, list[Any]] = {"matchExpressions": [], "matchFields": []}
    for term in terms:
        parts["matchExpressions"] += [_plain(e) for e in term.match_expressions or ()]
        parts["matchFields"] += [_plain(e) for e in term.match_fields or ()]
    term_content = {name: expressions for name, expressions in parts.items() if expressions}
    return {"nodeSelectorTerms": [term_content]} if term_content else None


def _plain(item: msgspec.Struct) -> Mapping[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(item)
    return {name: value for name, value in content.items() if value not in (None, "")}
