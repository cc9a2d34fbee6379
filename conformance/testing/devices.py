"""Devices and claims of a scene: workloads whose pods need devices, and which devices are allocated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from conformance.grove import pods
from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.expected_domains import NODE_LABEL
from conformance.grove.fields import Document, at, items, label, name, text, uid
from conformance.grove.quantities import amount
from conformance.grove.scheduling.admits import is_selected, tolerates
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.suite.scenes.scene_environment import SceneEnvironment

CLASS = "gpu.nvidia.com"
DRIVER = "gpu.nvidia.com"

PARTITION_CLASS = "mig.nvidia.com"
DOMAINS = "computedomains"

Device = tuple[str, str, str]
"""Driver, pool and name."""
Counter = tuple[str, str, str, str]
"""Driver, pool, counter set and name of a counter."""


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


def gang(env: SceneEnvironment, set_name: str, size: int, template_name: str) -> tuple[Object, list[ExpectedClique]]:
    """Return a set with one gang, each of whose pods has a claim from a template, and the cliques of the set."""
    workload = env.workload("frontend", setName=set_name, pods=size)
    workload = with_claim(workload, {"resourceClaimTemplateName": template_name})
    return workload, list(expected(workload).cliques.values())


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


@predicate
def are_in_use(view: View) -> bool | Unmet:
    """Return whether each allocated device belongs to a claim that a bound pod uses."""
    bound_pods = [pod for pod in view.list("pods") if pods.is_bound(pod)]
    used_claims = claims_of(view, bound_pods).keys()
    for (_, pool, device), claims in claims_of_devices(view).items():
        if unused := sorted(set(claims) - used_claims):
            return Unmet(f"device {device} of {pool} is allocated to {unused[0]}, which no bound pod uses")
    return True


@predicate
def counters_suffice(view: View) -> bool | Unmet:
    """Return whether the allocated devices together consume at most what each shared counter has."""
    totals: dict[Counter, Decimal] = {}
    consumption: dict[Device, dict[Counter, Decimal]] = {}
    for published in view.list("resourceslices"):
        pool = str(at(published, "spec", "driver")), str(at(published, "spec", "pool", "name"))
        for counter_set in items(published, "spec", "sharedCounters"):
            totals |= _counters(pool, counter_set["name"], counter_set)
        for device in items(published, "spec", "devices"):
            parts = [_counters(pool, part["counterSet"], part) for part in device.get("consumesCounters") or ()]
            consumption[*pool, device["name"]] = {counter: value for part in parts for counter, value in part.items()}
    consumed: dict[Counter, Decimal] = defaultdict(Decimal)
    for allocated in claims_of_devices(view):
        for counter, value in consumption.get(allocated, {}).items():
            consumed[counter] += value
    for counter, value in consumed.items():
        if value > totals.get(counter, 0):
            return Unmet(f"devices of {counter[1]} consume {value} of {totals.get(counter, 0)} {counter[3]}")
    return True


def _counters(pool: tuple[str, str], set_name: str, content: Mapping[str, Any]) -> dict[Counter, Decimal]:
    return {(*pool, set_name, key): amount(entry["value"]) or Decimal() for key, entry in content["counters"].items()}


def allocations_are_tolerant() -> Predicate:
    """Return a predicate for all states of a scene, in their order: no device is allocated that has a taint which the
    claim does not tolerate. A device that gets its taint later may stay allocated."""
    earlier: set[tuple[str, Device]] = set()

    def are_tolerant(view: View) -> bool | Unmet:
        current = {(uid(c), device): c for c in view.list("resourceclaims") for device in allocated_devices(c)}
        reasons = [
            f"{device[2]} of {device[1]} with the taint {taint} is allocated to {name(current[claim_uid, device])}"
            for claim_uid, device in sorted(current.keys() - earlier)
            for taint in _published(view, device).get("taints") or ()
            if _keeps_off(taint, current[claim_uid, device])
        ]
        earlier.clear()
        earlier.update(current)
        return not reasons or Unmet(reasons[0])

    return are_tolerant


def _keeps_off(taint: Mapping[str, str], resource_claim: Document) -> bool:
    """Return whether a device with this taint must not be allocated to a claim. All requests of the claim are expected
    to have equal tolerations."""
    requests = items(resource_claim, "spec", "devices", "requests")
    tolerations = [entry for request in requests for entry in items(request, "exactly", "tolerations")]
    is_known = taint["effect"] in ("NoSchedule", "NoExecute")
    return is_known and not any(tolerates(toleration, taint) for toleration in tolerations)


def attributes(view: View, device: Device) -> Mapping[str, Any]:
    """Return the attributes of a published device: name → value with its type; empty for an unknown device."""
    return _published(view, device).get("attributes") or {}


def _published(view: View, device: Device) -> Mapping[str, Any]:
    """Return the entry of a device in the slices; empty for an unknown device."""
    driver, pool, device_name = device
    for published in view.list("resourceslices"):
        if (at(published, "spec", "driver"), at(published, "spec", "pool", "name")) == (driver, pool):
            for entry in items(published, "spec", "devices"):
                if entry.get("name") == device_name:
                    return entry
    return {}


def claims_of(view: View, members: Sequence[Document]) -> dict[str, Document | None]:
    """Map the names of the claims of pods to the claims; None for a claim that does not exist."""
    names = []
    for pod in members:
        created = {status.get("name"): status for status in items(pod, "status", "resourceClaimStatuses")}
        for reference in items(pod, "spec", "resourceClaims"):
            source = reference if "resourceClaimName" in reference else created.get(reference.get("name"), {})
            names.append(str(source.get("resourceClaimName", "")))
    return {claim_name: view.get("resourceclaims", claim_name) for claim_name in names}


def nodes_of_domain(view: View, domain: str) -> set[str]:
    """Return the nodes that have the label of a ComputeDomain, by the domain's name. Empty if it does not exist."""
    domain_uid = uid(view.get(DOMAINS, domain))
    return {name(node) for node in view.list("nodes") if domain_uid and label(node, NODE_LABEL) == domain_uid}


def is_unserved(domain: str, nodes: Iterable[str]) -> Predicate:
    """Return a predicate: a ComputeDomain does not exist, and the nodes that it had do not have the label of one."""

    def check(view: View) -> bool | Unmet:
        if view.get(DOMAINS, domain) is not None:
            return Unmet(f"{DOMAINS}/{domain} is still there")
        served = [node for node in sorted(nodes) if label(view.get("nodes", node), NODE_LABEL)]
        return not served or Unmet(f"nodes still have the label of {domain}: {', '.join(served)}")

    return check


def are_apart(domains: Collection[str]) -> Predicate:
    """Return a predicate: no node has pods that use channels of two of these ComputeDomains. The names of the domains
    are those of their templates."""

    def check(view: View) -> bool | Unmet:
        domains_by_node: dict[str, set[str]] = defaultdict(set)
        for pod in view.list("pods"):
            if pods.is_bound(pod) and not pods.has_ended(pod):
                templates = {text(entry, "resourceClaimTemplateName") for entry in items(pod, "spec", "resourceClaims")}
                domains_by_node[pods.node(pod)] |= templates.intersection(domains)
        shared = (f"{node} has pods of {' and '.join(sorted(d))}" for node, d in domains_by_node.items() if len(d) > 1)
        return next(map(Unmet, shared), True)

    return check


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
