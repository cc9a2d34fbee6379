"""Tests of the rules by which ComputeDomains are served."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster import compute_domains, gpu_devices, nodes
from conformance.cluster.compute_domains import DOMAIN, ComputeDomain
from conformance.cluster.kubelet_sim import domain_plan
from conformance.cluster.kubelet_sim.claims import Claim
from conformance.cluster.kubelet_sim.device_publisher import DOMAIN_DRIVER, PublishedSlice
from conformance.cluster.kubelet_sim.domain_plan import ClaimTemplate, DomainWrite, ServingNode
from kube.objects import ObjectMeta

NODE = "gb200-nvl72-0"
DELETED = "2026-01-01T00:00:00Z"


def node_meta(profile: str = "gb200-nvl72", form: gpu_devices.Form = "devices", label: str = "") -> ObjectMeta:
    (node,) = gpu_devices.offered(nodes.manifests(profile, 1, extra_labels={DOMAIN: label} if label else None), form)
    return msgspec.convert({**node["metadata"], "uid": "node-uid", "resourceVersion": "7"}, ObjectMeta)


def domain(uid: str = "u", status: Any = None, spec: Any = None, **metadata: Any) -> ComputeDomain:
    meta = {"name": f"domain-{uid}", "namespace": "ns", "uid": uid, "resourceVersion": "1", **metadata}
    channel = {"channel": {"resourceClaimTemplate": {"name": f"channel-{uid}"}}}
    return msgspec.convert({"metadata": meta, "spec": channel | (spec or {}), "status": status or {}}, ComputeDomain)


def template(uid: str = "u", **metadata: Any) -> ClaimTemplate:
    meta = compute_domains.claim_template(domain(uid))["metadata"]
    return msgspec.convert({"metadata": {**meta, "resourceVersion": "3", **metadata}}, ClaimTemplate)


def claim(uid: str = "u", namespace: str = "ns", source: str = "FromClaim") -> Claim:
    """Return a claim with the channel of the node, and with the parameters of a domain's template."""
    spec = compute_domains.claim_template(domain(uid))["spec"]["spec"]
    results = [{"request": "channel", "driver": compute_domains.DRIVER, "pool": NODE, "device": "channel-0"}]
    config = [{"source": source, **entry} for entry in spec["devices"]["config"]] if source else []
    allocation = {"devices": {"results": results, "config": config}}
    meta = {"name": "channel", "namespace": namespace}
    return msgspec.convert({"metadata": meta, "status": {"allocation": allocation}}, Claim)


def label_after(node: ObjectMeta, used: list[Claim], domains: list[ComputeDomain], is_lost: bool = False) -> Any:
    """Return the label that a node gets; `unchanged` if nothing is written."""
    writes = domain_plan.node_writes(node, used, domains, is_lost)
    if not writes:
        return "unchanged"
    (write,) = writes
    assert write.body is not None and write.body["metadata"].keys() == {"uid", "labels"}
    return write.body["metadata"]["labels"][DOMAIN]


def bodies(writes: Any) -> list[Any]:
    return [write.body for write in writes]


def test_a_node_with_a_fabric_has_a_channel_and_a_daemon() -> None:
    (manifest,) = compute_domains.slice_manifests(node_meta())
    devices = {device["name"]: device["attributes"] for device in manifest["spec"]["devices"]}
    assert devices == {
        "channel-0": {"type": {"string": "channel"}, "id": {"int": 0}},
        "daemon-0": {"type": {"string": "daemon"}, "id": {"int": 0}},
    }
    published = msgspec.convert(manifest, PublishedSlice)
    assert published.is_published and DOMAIN_DRIVER.selector == f"spec.driver={published.spec['driver']}"


@pytest.mark.parametrize(
    ("profile", "form"), [("gb200-nvl72", "extended"), ("dgx-h100", "devices"), ("cpu", "devices")]
)
def test_other_nodes_have_no_channel(profile: str, form: gpu_devices.Form) -> None:
    assert compute_domains.slice_manifests(node_meta(profile, form)) == []


def test_a_new_domain_gets_a_finalizer_a_template_and_a_status() -> None:
    finalizer, created, status = domain_plan.domain_writes(domain(finalizers=["other"]), None, [])
    assert finalizer.body == {"metadata": {"resourceVersion": "1", "finalizers": ["other", DOMAIN]}}
    assert created.body is not None and created.body["metadata"]["name"] == "channel-u"
    (entry,) = created.body["spec"]["spec"]["devices"]["config"]
    assert entry["opaque"]["parameters"]["domainID"] == "u"
    assert status.subresource == "status" and status.body is not None
    assert status.body["status"] == {"status": "Ready", "nodes": []}


def test_a_domain_that_is_served_is_written_once() -> None:
    served = domain(finalizers=[DOMAIN], status={"status": "Ready", "nodes": []})
    assert list(domain_plan.domain_writes(served, template(), [])) == []


def test_the_name_of_the_template_is_read_as_in_the_proposal_too() -> None:
    assert domain(spec={"channel": {"resourceClaimTemplateName": "named"}}).template_name == "named"


@pytest.mark.parametrize(
    ("current", "used", "domains", "label"),
    [
        ("", ["u"], ["u"], "u"),
        ("", [], ["u"], "unchanged"),
        ("", ["gone"], ["u"], "unchanged"),
        ("u", ["u"], ["u"], "unchanged"),
        ("u", [], ["u"], None),
        ("u", ["u"], [], None),
        ("u", ["t", "u"], ["t", "u"], "unchanged"),
        ("u", ["t"], ["t", "u"], "t"),
    ],
)
def test_a_node_has_the_label_of_the_domain_that_its_pods_use(
    current: str, used: list[str], domains: list[str], label: str | None
) -> None:
    claims, all_domains = [claim(uid) for uid in used], [domain(uid) for uid in domains]
    assert label_after(node_meta(label=current), claims, all_domains) == label


def test_a_node_does_not_serve_a_domain_that_is_deleted_or_in_another_namespace() -> None:
    assert label_after(node_meta(label="u"), [claim()], [domain(deletionTimestamp=DELETED)]) is None
    assert label_after(node_meta(), [claim(namespace="elsewhere")], [domain()]) == "unchanged"


def test_a_lost_node_keeps_its_label_as_long_as_the_domain_exists() -> None:
    assert label_after(node_meta(), [claim()], [domain()], is_lost=True) == "unchanged"
    assert label_after(node_meta(label="u"), [], [domain()], is_lost=True) == "unchanged"
    assert label_after(node_meta(label="u"), [], [], is_lost=True) is None


def test_the_status_lists_the_nodes_with_an_index_in_their_clique() -> None:
    entries = {"status": "Ready", "nodes": [{"name": "n2", "index": 1, "cliqueID": "a"}]}
    nodes = [ServingNode("n1", "10.0.0.1", "a"), ServingNode("n2", "10.0.0.2", "a"), ServingNode("n3", "10.0.0.3", "b")]
    status = domain_plan.status(domain(status=entries), nodes)
    assert [(entry["name"], entry["cliqueID"], entry["index"]) for entry in status["nodes"]] == [
        ("n1", "a", 0),
        ("n2", "a", 1),
        ("n3", "b", 0),
    ]
    assert status["nodes"][0] == {
        "name": "n1",
        "ipAddress": "10.0.0.1",
        "cliqueID": "a",
        "index": 0,
        "status": "Ready",
    }


@pytest.mark.parametrize(("nodes", "state"), [(0, "NotReady"), (1, "NotReady"), (2, "Ready"), (3, "Ready")])
def test_a_domain_is_ready_once_it_has_its_number_of_nodes(nodes: int, state: str) -> None:
    serving = [ServingNode(f"n{index}", "", "a") for index in range(nodes)]
    assert domain_plan.status(domain(spec={"numNodes": 2}), serving)["status"] == state


def test_a_deleted_domain_is_released_after_its_template_and_its_nodes() -> None:
    deleted = domain(deletionTimestamp=DELETED, finalizers=["other", DOMAIN])
    serving = [ServingNode(NODE, "", "a")]
    (deletion,) = domain_plan.domain_writes(deleted, template(), serving)
    assert deletion == DomainWrite(domain_plan.CLAIM_TEMPLATES, "ns", "channel-u", None)
    ending = template(deletionTimestamp=DELETED)
    assert list(domain_plan.domain_writes(deleted, ending, serving)) == []
    (release,) = domain_plan.domain_writes(deleted, ending, [])
    assert release.resource == domain_plan.CLAIM_TEMPLATES
    assert bodies([release]) == [{"metadata": {"resourceVersion": "3", "finalizers": []}}]
    (last,) = domain_plan.domain_writes(deleted, None, [])
    assert bodies([last]) == [{"metadata": {"resourceVersion": "1", "finalizers": ["other"]}}]
    nodes = {"status": "Ready", "nodes": [{"name": NODE, "index": 0, "cliqueID": "a"}]}
    remaining = domain(status=nodes, deletionTimestamp=DELETED, finalizers=["other"])
    (status,) = domain_plan.domain_writes(remaining, None, [])
    assert status.body is not None and status.body["status"] == {"status": "Ready", "nodes": []}
    ended = domain(status=status.body["status"], deletionTimestamp=DELETED, finalizers=["other"])
    assert list(domain_plan.domain_writes(ended, None, [])) == []


def test_the_template_of_a_domain_that_is_gone_is_deleted() -> None:
    (deletion,) = domain_plan.domain_writes(None, template(), [])
    (release,) = domain_plan.domain_writes(None, template(deletionTimestamp=DELETED), [])
    assert deletion.body is None and bodies([release]) == [{"metadata": {"resourceVersion": "3", "finalizers": []}}]


@pytest.mark.parametrize(
    ("used", "label", "domains", "problem"),
    [
        (claim(), "", ["u"], ""),
        (claim(), "u", ["u"], ""),
        (claim(), "t", ["u"], f"node {NODE} serves another ComputeDomain than domain-u"),
        (claim(), "", [], "ComputeDomain with uid u does not exist"),
        (claim(source=""), "", ["u"], "its allocation names no ComputeDomain"),
        (claim(namespace="elsewhere"), "", ["u"], "ComputeDomain domain-u is in another namespace"),
    ],
)
def test_a_channel_is_prepared_for_the_domain_in_the_allocation(
    used: Claim, label: str, domains: list[str], problem: str
) -> None:
    named = next((domain(uid) for uid in domains if uid == domain_plan.channels(used)[NODE]), None)
    assert domain_plan.problem(used, node_meta(label=label), named, []) == problem


def test_a_channel_is_prepared_for_one_claim_at_a_time() -> None:
    """Even if both claims are for the same domain."""
    first, second = claim(), claim()
    first.metadata.uid, second.metadata.uid = "1", "2"
    node = node_meta(label="u")
    assert domain_plan.problem(first, node, domain(), [first]) == ""
    expected = f"the channel of node {NODE} is prepared for ResourceClaim channel"
    assert domain_plan.problem(second, node, domain(), [first]) == expected
