"""Tests that a coherent set survives a kill of its operator after any write. The set is created, updated and scaled in
the same way as without kills, no pod is replaced twice, and no gang ever has pods of two versions (spec COH-220 to
COH-226, COH-S41)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.grove import labels, pods, updates, workloads
from conformance.grove.fields import label, number, text
from conformance.history.record import ADDED
from conformance.history.view import View
from conformance.suite.scenes.recorded import Span
from conformance.suite.scenes.scene import Step
from conformance.testing import replay
from reference_impl.api import models
from tests.reference.chaos import Chapter, CrashRun, Predicate, all_deaths, pods_made
from tests.reference.test_killed_at_any_write import with_defaults

pytestmark = [pytest.mark.cluster, pytest.mark.thorough, pytest.mark.timeout(900)]

SIZES = {"s-0-a": 2, "s-0-g-0-b": 1, "s-0-g-0-c": 1, "s-0-g-1-b": 1, "s-0-g-1-c": 1}
"""All cliques of the set with their number of pods. Each of the update's two steps moves a pod of `a` and a replica of
`g`."""


def the_set(played: CrashRun, tag: str) -> dict[str, Any]:
    small = {
        "alone": 2,
        "aloneMinAvailable": 1,
        "groups": 2,
        "groupsMinAvailable": 1,
        "members": 1,
        "membersMinAvailable": 1,
    }
    manifest = workloads.load("kept", {"setName": "s", **small})
    for clique in manifest["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["containers"][0]["image"] = f"registry.example/main:{tag}"
    manifest["spec"]["updateStrategy"] = {"type": "Coherent"}
    return with_defaults(manifest, played, cliqueStartupType="CliqueStartupTypeAnyOrder")


async def make(played: CrashRun) -> None:
    await played.client.create(models.PODCLIQUESETS, the_set(played, "first"))


async def update(played: CrashRun) -> None:
    played.notes["before"] = updates.generation_hash(played.history.view().get("podcliquesets", "s"))
    played.notes["since"] = Step.now("change", played.history)
    body = {"spec": {"template": {"cliques": the_set(played, "second")["spec"]["template"]["cliques"]}}}
    await played.client.patch(models.PODCLIQUESETS, played.namespace, "s", body)


async def scale(played: CrashRun, replicas: int) -> None:
    body = {"spec": {"replicas": replicas}}
    await played.client.patch(models.PODCLIQUES, played.namespace, "s-0-a", body, subresource="scale")
    await played.client.patch(models.SCALING_GROUPS, played.namespace, "s-0-g", body, subresource="scale")


def has_replicas(view: View, replicas: int) -> bool:
    """Return whether `a` and `g` have `replicas` replicas, all of them serving, and the map and the statuses agree with
    them."""
    pcs, clique = view.get("podcliquesets", "s"), view.get("podcliques", "s-0-a")
    group, gang_map = view.get("podcliquescalinggroups", "s-0-g"), view.get("podgangmaps", "s-0")
    ready = sum(map(pods.is_ready, view.list("pods"))) == len(view.list("pods")) == 3 * replicas
    entries = gang_map["spec"]["entries"] if gang_map else []
    mapped = {entry["name"]: entry["podCliques"]["a"] for entry in entries if "a" in entry.get("podCliques", {})}
    return (
        ready
        and number(pcs, "status", "availableReplicas") == 1
        and number(clique, "status", "readyReplicas") == number(group, "status", "availableReplicas") == replicas
        and (clique or {}).get("status", {}).get("podGangMapping") == mapped
        and {gang["metadata"]["name"] for gang in view.list("podgangs")} == {entry["name"] for entry in entries}
    )


def updated(played: CrashRun) -> Predicate:
    def is_updated(view: View) -> bool:
        pcs = view.get("podcliquesets", "s")
        generation = updates.generation_hash(pcs)
        parts = [view.get("podcliques", "s-0-a"), view.get("podcliquescalinggroups", "s-0-g")]
        return (
            generation != played.notes["before"]
            and updates.has_ended(pcs)
            and number(pcs, "status", "updatedReplicas") == 1
            and number(pcs, "status", "observedGeneration") == number(pcs, "metadata", "generation")
            and all(updates.has_ended(part) for part in parts)
            and all(text(part, "status", "currentPodCliqueSetGenerationHash") == generation for part in parts)
            and has_replicas(view, 2)
        )

    return is_updated


def check_pods_made_once(played: CrashRun) -> None:
    assert pods_made(played) == (sum(SIZES.values()), 0), f"{played.namespace}: pods made and deleted"


def check_pods_replaced_once(played: CrashRun) -> None:
    span = Span(played.history, played.notes["since"], Step.now("end", played.history))
    assert replay.creation_counts(span) == SIZES, f"{played.namespace}: created pods"
    shortfalls = replay.max_shortfalls(span, SIZES)
    assert max(shortfalls.values()) == 1, f"{played.namespace}: missing pods"
    assert {text(pod, "spec", "containers", 0, "image") for pod in played.history.view().list("pods")} == {
        "registry.example/main:second"
    }
    check_one_version_per_gang(played)


def check_one_version_per_gang(played: CrashRun) -> None:
    """No gang ever has pods of two versions of a clique (COH-I04)."""
    hashes_by_gang: dict[tuple[str, str], set[str]] = {}
    for record in played.history.records("pods"):
        if record.kind == ADDED:
            pod = record.object
            hashes_of_gang = hashes_by_gang.setdefault((label(pod, labels.GANG), label(pod, labels.CLIQUE)), set())
            hashes_of_gang.add(label(pod, labels.TEMPLATE_HASH))
    mixed = {gang_and_clique: hashes for gang_and_clique, hashes in hashes_by_gang.items() if len(hashes) > 1}
    assert not mixed, f"{played.namespace}: {mixed}"


STORY = (
    Chapter("it is made", make, lambda played: lambda view: has_replicas(view, 2), judge=check_pods_made_once),
    Chapter("it is updated", update, updated, judge=check_pods_replaced_once),
    Chapter(
        "it is scaled out",
        lambda p: scale(p, 3),
        lambda p: lambda view: has_replicas(view, 3),
        judge=check_one_version_per_gang,
    ),
    Chapter(
        "it is scaled in",
        lambda p: scale(p, 2),
        lambda p: lambda view: has_replicas(view, 2),
        judge=check_one_version_per_gang,
    ),
)
MIN_WRITES = {"it is made": 20, "it is updated": 40, "it is scaled out": 10, "it is scaled in": 6}
"""The minimum number of writes in each chapter. With fewer writes, the test would have tested nothing."""


def test_killing_the_operator_does_not_change_the_final_state_of_a_coherent_set(bare_cluster: Cluster) -> None:
    writes = asyncio.run(all_deaths(bare_cluster, "coherent-operator", STORY, "operator"))
    assert all(writes[chapter] >= minimum for chapter, minimum in MIN_WRITES.items()), writes
