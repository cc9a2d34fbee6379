"""What NVIDIA's controller and node plugin for ComputeDomains write (DRA-23, DRA-24), computed from the observed state.
Pure functions.

A domain gets a finalizer and a ResourceClaimTemplate. A node serves the domain of the channel claim that its pods use:
it has the domain's label, and a daemon, which is an entry in the status of the domain and no pod. When the claim is no
longer used, label and daemon go. A domain that is deleted loses its template and its nodes first, and its finalizer
then, whoever else holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from conformance.cluster import compute_domains
from conformance.cluster.compute_domains import DOMAIN, NOT_READY, READY, ComputeDomain
from conformance.cluster.kubelet_sim.claims import Claim
from conformance.grove.kinds import CLAIM_TEMPLATES, COMPUTE_DOMAINS
from kube.objects import ObjectMeta
from kube.resource import NODES, Resource


class ClaimTemplate(msgspec.Struct):
    """A ResourceClaimTemplate."""

    metadata: ObjectMeta


@dataclass(frozen=True)
class ServingNode:
    """A node with a domain's label. `address` is the address of its daemon."""

    name: str
    address: str
    clique: str


@dataclass(frozen=True)
class DomainWrite:
    """A request to the API server. Without a body, it deletes the object `name`; without a name, it creates one."""

    resource: Resource
    namespace: str | None
    name: str
    body: Mapping[str, Any] | None
    subresource: str | None = None


def channels(claim: Claim) -> dict[str, str]:
    """Map the nodes whose channel is allocated to a claim to the uid of the domain that the claim's parameters name;
    the uid is empty if they name none. The driver reads the parameters in the allocation, never those of the spec."""
    devices = (claim.status.get("allocation") or {}).get("devices") or {}
    domains: dict[str, str] = {}
    for result in devices.get("results") or ():
        if result.get("driver") == compute_domains.DRIVER and str(result.get("device")).startswith("channel-"):
            domains[str(result.get("pool"))] = _domain_of(result.get("request"), devices.get("config") or ())
    return domains


def _domain_of(request: object, configuration: Iterable[Mapping[str, Any]]) -> str:
    uid = ""
    for entry in configuration:
        opaque = entry.get("opaque") or {}
        if opaque.get("driver") == compute_domains.DRIVER and request in (entry.get("requests") or [request]):
            uid = str((opaque.get("parameters") or {}).get("domainID", ""))
    return uid


def problem(claim: Claim, node: ObjectMeta, domain: ComputeDomain | None, prepared_claims: Iterable[Claim]) -> str:
    """Return why the node plugin cannot prepare a claim for a channel of a node; empty if it can, or if it only waits
    for the domain's daemon. `domain` is the domain that the claim names, if it exists, and `prepared_claims` are those
    for which the plugin has prepared the channel: it does so for one claim at a time, whatever schedulers allocate."""
    label = node.label(DOMAIN)
    if rival := next((item for item in prepared_claims if item.metadata.uid != claim.metadata.uid), None):
        return f"the channel of node {node.name} is prepared for ResourceClaim {rival.metadata.name}"
    if domain is None:
        uid = channels(claim).get(node.name)
        return f"ComputeDomain with uid {uid} does not exist" if uid else "its allocation names no ComputeDomain"
    if domain.metadata.namespace != claim.metadata.namespace:
        return f"ComputeDomain {domain.metadata.name} is in another namespace"
    if label and label != domain.metadata.uid:
        return f"node {node.name} serves another ComputeDomain than {domain.metadata.name}"
    return ""


def node_writes(
    node: ObjectMeta, used_claims: Iterable[Claim], domains: Iterable[ComputeDomain], is_lost: bool
) -> list[DomainWrite]:
    """Return the writes for the label of a node. `used_claims` are the claims for its channel that its pods use. A lost
    node has no plugin that could change its label; the controller removes it with the domain. Nobody else writes the
    label, so other changes of the node do not matter."""
    live = {domain.metadata.uid: domain for domain in domains if domain.metadata.deletion_timestamp is None}
    claimed = {
        uid
        for claim in used_claims
        if (uid := channels(claim)[node.name]) in live and live[uid].metadata.namespace == claim.metadata.namespace
    }
    current = node.label(DOMAIN)
    if is_lost:
        label = current if current in live else ""
    else:
        label = current if current in claimed else min(claimed, default="")
    if label == current:
        return []
    change = {"metadata": {"uid": node.uid, "labels": {DOMAIN: label or None}}}
    return [DomainWrite(NODES, None, node.name, change)]


def domain_writes(
    domain: ComputeDomain | None, template: ClaimTemplate | None, nodes: Sequence[ServingNode]
) -> Iterator[DomainWrite]:
    """Yield the writes for a domain, or for what is left of one that is gone. `template` is the template with the
    domain's uid, and `nodes` are the nodes with the domain's label."""
    if domain is None or domain.metadata.deletion_timestamp is not None:
        yield from _end(domain, template, nodes)
        return
    meta = domain.metadata
    if DOMAIN not in (meta.finalizers or ()):
        yield _patch(COMPUTE_DOMAINS, meta, finalizers=[*(meta.finalizers or ()), DOMAIN])
    if template is None and domain.template_name:
        yield DomainWrite(CLAIM_TEMPLATES, meta.namespace, "", compute_domains.claim_template(domain))
    yield from _status_writes(domain, nodes)


def _end(
    domain: ComputeDomain | None, template: ClaimTemplate | None, nodes: Sequence[ServingNode]
) -> Iterator[DomainWrite]:
    """Yield the next step of a deletion: the template is deleted, then released, and then the domain is released. The
    status of a domain that others hold says that no node is left."""
    if template is not None and template.metadata.deletion_timestamp is None:
        yield DomainWrite(CLAIM_TEMPLATES, template.metadata.namespace, template.metadata.name, None)
    elif not nodes:
        resource, item = (COMPUTE_DOMAINS, domain) if template is None else (CLAIM_TEMPLATES, template)
        finalizers = (item.metadata.finalizers or []) if item is not None else []
        if item is not None and DOMAIN in finalizers:
            yield _patch(resource, item.metadata, finalizers=[f for f in finalizers if f != DOMAIN])
        elif item is not None and item is domain:
            yield from _status_writes(domain, nodes)


def _status_writes(domain: ComputeDomain, nodes: Sequence[ServingNode]) -> Iterator[DomainWrite]:
    """Yield the write for the status of a domain, which nobody else writes."""
    meta, desired = domain.metadata, status(domain, nodes)
    if {field: domain.status.get(field) for field in desired} != desired:
        body = {"metadata": {"uid": meta.uid}, "status": desired}
        yield DomainWrite(COMPUTE_DOMAINS, meta.namespace, meta.name, body, "status")


def status(domain: ComputeDomain, nodes: Iterable[ServingNode]) -> dict[str, Any]:
    """Return the status of a domain. A node keeps its index, and a new node gets the first one that is free in its
    clique."""
    old_entries, entries = domain.node_entries, list[dict[str, Any]]()
    for node in sorted(nodes, key=lambda node: (node.name not in old_entries, node.name)):
        used = {entry["index"] for entry in entries if entry["cliqueID"] == node.clique}
        index = old_entries.get(node.name, {}).get("index")
        if not isinstance(index, int) or index in used:
            index = next(i for i in range(len(used) + 1) if i not in used)
        entry = {"name": node.name, "ipAddress": node.address, "cliqueID": node.clique}
        entries.append({**entry, "index": index, "status": READY})
    is_complete = len(entries) >= int(domain.spec.get("numNodes") or 0)
    return {
        "status": READY if is_complete else NOT_READY,
        "nodes": sorted(entries, key=lambda entry: str(entry["name"])),
    }


def _patch(resource: Resource, meta: ObjectMeta, **fields: object) -> DomainWrite:
    change = {"metadata": {"resourceVersion": meta.resource_version, **fields}}
    return DomainWrite(resource, meta.namespace, meta.name, change)
