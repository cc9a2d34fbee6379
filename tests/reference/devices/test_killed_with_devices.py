"""Tests that no device is lost if the gang scheduler is killed. It is killed after each of its writes in turn and
restarted while sets whose pods need devices are created, scaled out, scaled in and preempted. In the end, each pod that
runs has its devices, and no other device is allocated."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from conformance.cluster import gpu_devices, node_profiles, nodes
from conformance.cluster.controlplane import Cluster
from conformance.grove import pods
from conformance.grove.fields import Document, condition, items, name, text
from conformance.grove.kinds import CLAIM_TEMPLATES, RESOURCE_CLAIMS
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import devices
from kube import config
from kube.client import Client
from reference_impl.api import models
from tests.reference.chaos import PARTS, SCHEDULER, Chapter, CrashRun, Predicate, all_deaths, death_count
from tests.reference.test_killed_at_any_write import with_defaults

pytestmark = [pytest.mark.cluster, pytest.mark.thorough, pytest.mark.timeout(900)]

POOL = "devices"
NODES = 3
"""Nodes with eight devices each. Every life uses all of them, because its scheduler does not see the claims of other
lives."""
WORKERS, SHARERS = 8, 2
"""Pods of a set's replica: workers have a device each, and the others share one device."""
HIGH = 16
"""Pods of the set of higher priority, with a device each; fifteen devices are free beside the other set."""


def pod_set(played: CrashRun, set_name: str, priority: str, **counts: int) -> dict[str, Any]:
    """Return a set with a clique for each count: `shared` are pods that share a device."""
    cliques = []
    for clique, count in counts.items():
        source = {"resourceClaimName": "shared"} if clique == "shared" else {"resourceClaimTemplateName": "one"}
        pod: dict[str, Any] = {
            "containers": [
                {"name": "main", "image": "registry.example/x:1", "resources": {"claims": [{"name": "gpu"}]}}
            ],
            "schedulerName": SCHEDULER,
            "priorityClassName": priority,
            "resourceClaims": [{"name": "gpu", **source}],
        }
        spec = {"roleName": clique, "replicas": count, "minAvailable": count, "podSpec": pod}
        cliques.append({"name": clique, "spec": spec})
    template = {
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "terminationDelay": "4h0m0s",
        "priorityClassName": priority,
        "cliques": cliques,
    }
    manifest = {
        "apiVersion": models.PODCLIQUESETS.api_version,
        "kind": "PodCliqueSet",
        "metadata": {"name": set_name},
        "spec": {"replicas": 1, "template": template},
    }
    nodes.restrict_to_pool(POOL, manifest)
    return with_defaults(manifest, played)


async def create_low(played: CrashRun) -> None:
    for resource, manifest in (
        (CLAIM_TEMPLATES, devices.claim_template("one", devices.claim_spec())),
        (RESOURCE_CLAIMS, devices.claim("shared", devices.claim_spec())),
    ):
        metadata = {**manifest["metadata"], "namespace": played.namespace}
        await played.client.create(resource, {**manifest, "metadata": metadata})
    await played.client.create(models.PODCLIQUESETS, pod_set(played, "low", "low", worker=WORKERS, shared=SHARERS))


async def create_high(played: CrashRun) -> None:
    await played.client.create(models.PODCLIQUESETS, pod_set(played, "high", "high", worker=HIGH))


async def scale(played: CrashRun, replicas: int) -> None:
    await played.client.patch(models.PODCLIQUESETS, played.namespace, "low", {"spec": {"replicas": replicas}})


def running(**replicas: int) -> Predicate:
    """Return a predicate that holds once exactly these replicas of the sets run, and the allocated devices are those of
    their pods."""
    sizes = {"low": WORKERS + SHARERS, "high": HIGH}

    def is_reached(view: View) -> bool | Unmet:
        bound = [pod for pod in view.list("pods") if pods.is_bound(pod)]
        members = {set_name: [pod for pod in bound if name(pod).startswith(f"{set_name}-")] for set_name in sizes}
        for set_name, size in sizes.items():
            ready = sum(map(pods.is_ready, members[set_name]))
            if not ready == len(members[set_name]) == size * replicas.get(set_name, 0):
                exist = sum(name(pod).startswith(f"{set_name}-") for pod in view.list("pods"))
                claims = len(view.list("resourceclaims"))
                counts = f"{exist} pods, {len(members[set_name])} bound, {ready} Ready; {claims} claims"
                return Unmet(f"{set_name}: {counts}")
        return allocations_match(view, bound)

    return is_reached


def is_preempted(view: View) -> bool | Unmet:
    """Return whether the set of higher priority runs, and each pod of the other set is known to wait."""
    waiting = [pod for pod in view.list("pods") if not pods.is_bound(pod)]
    unschedulable_count = sum(text(condition(pod, "PodScheduled"), "reason") == "Unschedulable" for pod in waiting)
    if unschedulable_count != WORKERS + SHARERS:
        return Unmet(f"{unschedulable_count} of {len(waiting)} pods are known to wait")
    return running(high=1)(view)


def allocations_match(view: View, bound: list[Document]) -> bool | Unmet:
    """Return whether each claim of a bound pod is reserved for its pods and has a device of their node, no device is
    in two allocations, and no other claim is allocated."""
    users: dict[str, set[str]] = defaultdict(set)
    places: dict[str, set[str]] = defaultdict(set)
    for pod in bound:
        for claim_name in devices.claims_of(view, [pod]):
            users[claim_name].add(pod["metadata"]["uid"])
            places[claim_name].add(str(pods.node(pod)))
    for claim in view.list("resourceclaims"):
        allocated = {pool for _, pool, _ in devices.allocated_devices(claim)}
        reserved = {entry["uid"] for entry in items(claim, "status", "reservedFor")}
        if (allocated, reserved) != (places[name(claim)], users[name(claim)]):
            return Unmet(f"claim {name(claim)} has a device on {allocated}, its pods run on {places[name(claim)]}")
    return devices.are_allocated_once(view)


STORY = (
    Chapter("it is made", create_low, lambda played: running(low=1)),
    Chapter("it is scaled out", lambda played: scale(played, 2), lambda played: running(low=2)),
    Chapter("it is scaled in", lambda played: scale(played, 1), lambda played: running(low=1)),
    Chapter("it is preempted", create_high, lambda played: is_preempted),
)


async def offer_devices(cluster: Cluster) -> None:
    """Create the nodes with devices."""
    profile = node_profiles.profile("dgx-h100")
    manifests = [gpu_devices.as_devices(nodes.node_manifest(profile, index, POOL)) for index in range(NODES)]
    async with Client(config.load(cluster.kubeconfig), user_agent="test") as client:
        await nodes.create_schedulable_nodes(client, manifests)


def test_no_device_is_lost(bare_cluster: Cluster) -> None:
    asyncio.run(offer_devices(bare_cluster))
    writes = asyncio.run(all_deaths(bare_cluster, "devices", STORY, "gang-scheduler"))
    # Two writes for each claim and a binding for each pod; with fewer writes, nothing was tested.
    assert writes["it is made"] >= 2 * (WORKERS + 1) + WORKERS + SHARERS
    assert writes["it is preempted"] >= 3 * HIGH
    assert PARTS > 1 or death_count(writes) >= 100
