"""Tests that killing a process is harmless. The operator or the gang scheduler is killed after each of its writes in
turn and restarted, and a set that is created, scaled out, scaled in, terminated or preempted still ends in its usual
state."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.cluster.nodes import PROFILE
from conformance.grove import health, labels, pods, workloads
from conformance.grove.fields import condition_is, label, name, number, text
from conformance.history.view import View
from conformance.testing import incarnations, predicates
from kube.resource import PODS
from reference_impl.api import models
from tests.reference.chaos import SCHEDULER, Chapter, CrashRun, Predicate, Role, all_deaths, pods_made

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

CREATED_PODS = 2 + 2 * 2
"""The number of pods of the created set."""
PODS_OF_A_SET = 2
"""The number of pods of each set in the preemption tests, with one GPU each; the only node with their profile has as
many GPUs."""


def with_defaults(manifest: Mapping[str, Any], played: CrashRun, **template: Any) -> dict[str, Any]:
    """Add the values that the defaulting webhook would add, because these clusters do not have the webhook."""
    spec = {**manifest["spec"]["template"], "headlessServiceConfig": {"publishNotReadyAddresses": True}, **template}
    metadata = {**manifest["metadata"], "namespace": played.namespace}
    return {**manifest, "metadata": metadata, "spec": {**manifest["spec"], "template": spec}}


# -- a set is made ----------------------------------------------------------------------------------------------------


async def make(played: CrashRun) -> None:
    """Create a set with a standalone clique and a scaling group that has a base and a scaled replica; each clique
    starts after the previous one."""
    small = {
        "routers": 2,
        "workers": 2,
        "workersMinAvailable": 1,
        "prefills": 1,
        "prefillsMinAvailable": 1,
        "decodes": 1,
    }
    manifest = workloads.load("disaggregated", {"setName": "s", **small, "prefillGpus": 1, "decodeGpus": 1})
    cliques = manifest["spec"]["template"]["cliques"]
    for clique, parent in zip(cliques[1:], cliques, strict=False):
        clique["spec"]["startsAfter"] = [parent["name"]]
    fields = {"terminationDelay": "4h0m0s", "cliqueStartupType": "CliqueStartupTypeExplicit"}
    await played.client.create(models.PODCLIQUESETS, with_defaults(manifest, played, **fields))


def is_deployed(view: View) -> bool:
    available = number(view.get("podcliquesets", "s"), "status", "availableReplicas") == 1
    return available and sum(map(pods.is_ready, view.list("pods"))) == CREATED_PODS


def check_nothing_made_twice(played: CrashRun) -> None:
    assert pods_made(played) == (CREATED_PODS, 0), f"{played.namespace}: pods made and deleted"


MAKING = (Chapter("it is made", make, lambda played: is_deployed, judge=check_nothing_made_twice),)


# -- a set is changed -------------------------------------------------------------------------------------------------


async def make_small(played: CrashRun) -> None:
    small = {
        "alone": 1,
        "aloneMinAvailable": 1,
        "groups": 1,
        "groupsMinAvailable": 1,
        "members": 1,
        "membersMinAvailable": 1,
    }
    manifest = workloads.load("kept", {"setName": "s", "delay": "1s", **small})
    fields = {"cliqueStartupType": "CliqueStartupTypeAnyOrder"}
    await played.client.create(models.PODCLIQUESETS, with_defaults(manifest, played, **fields))


async def scale(played: CrashRun, replicas: int) -> None:
    body = {"spec": {"replicas": replicas}}
    await played.client.patch(models.PODCLIQUES, played.namespace, "s-0-a", body, subresource="scale")
    await played.client.patch(models.SCALING_GROUPS, played.namespace, "s-0-g", body, subresource="scale")


async def crash(played: CrashRun) -> None:
    view = played.history.view()
    played.notes["before"] = incarnations.uids(view, "podcliques")
    played.notes["made"] = max(incarnations.counts(played.history, "podcliques").values())
    [pod] = predicates.pods_of(view, "s-0-a")
    hold = {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}}
    await played.client.patch(PODS, played.namespace, name(pod), hold)
    await played.client.patch(
        PODS, played.namespace, name(pod), health.status(pod, health.CRASHED), subresource="status"
    )


def settled(replicas: int) -> Predicate:
    """Return a predicate that holds once the set is available, its group and its clique have this many replicas, and
    nothing is being recreated."""

    def is_settled(view: View) -> bool:
        pcs, group = view.get("podcliquesets", "s"), view.get("podcliquescalinggroups", "s-0-g")
        ready = sum(map(pods.is_ready, view.list("pods"))) == len(view.list("pods")) == 3 * replicas
        flagged = condition_is(group, "GangTerminationInProgress") == "True"
        available = number(group, "status", "availableReplicas") == replicas
        return ready and available and not flagged and number(pcs, "status", "availableReplicas") == 1

    return is_settled


def is_recreated(played: CrashRun) -> Predicate:
    before = played.notes["before"]
    renewed = incarnations.are_recreated("podcliques", before, before)
    return lambda view: bool(renewed(view)) and settled(1)(view)


def check_terminated_at_most_twice(played: CrashRun) -> None:
    """Check that there is at most one more termination than without the death (CHG-GT-27)."""
    assert max(incarnations.counts(played.history, "podcliques").values()) - played.notes["made"] <= 2, played.namespace


CHANGES = (
    Chapter("it is made", make_small, lambda played: settled(1), killed=False),
    Chapter("it is terminated", crash, is_recreated, judge=check_terminated_at_most_twice),
    Chapter("it is scaled out", lambda played: scale(played, 2), lambda played: settled(2)),
    Chapter("it is scaled in", lambda played: scale(played, 1), lambda played: settled(1)),
)


# -- a set is preempted -----------------------------------------------------------------------------------------------


async def make_pair(played: CrashRun, priority: str) -> None:
    container = {"name": "main", "image": "registry.example/x:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {"containers": [container], "schedulerName": SCHEDULER, "priorityClassName": priority}
    pod["nodeSelector"] = {PROFILE: "tiny"}
    clique = {
        "name": "w",
        "spec": {"roleName": "w", "replicas": PODS_OF_A_SET, "minAvailable": PODS_OF_A_SET, "podSpec": pod},
    }
    template = {
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "terminationDelay": "4h0m0s",
        "priorityClassName": priority,
        "cliques": [clique],
    }
    manifest = {
        "apiVersion": models.PODCLIQUESETS.api_version,
        "kind": "PodCliqueSet",
        "metadata": {"name": priority},
        "spec": {"replicas": 1, "template": template},
    }
    await played.client.create(models.PODCLIQUESETS, with_defaults(manifest, played))


def gang(view: View, pcs: str) -> Mapping[str, Any] | None:
    """Return the gang of a set, or None if it has no gang yet."""
    return next((candidate for candidate in view.list("podgangs") if label(candidate, labels.PART_OF) == pcs), None)


def is_placed(view: View) -> bool:
    return text(gang(view, "low"), "status", "phase") == "Running"


def is_preempted(view: View) -> bool:
    """Return whether the gang of higher priority is placed as a whole, and the other gang waits as a whole and reports
    why."""
    low_gang = gang(view, "low")
    reported = condition_is(low_gang, "DisruptionTarget") == "True" and condition_is(low_gang, "Scheduled") == "False"
    high, low = predicates.pods_of(view, "high-0-w"), predicates.pods_of(view, "low-0-w")
    placed = sum(map(pods.is_ready, high)), sum(map(pods.is_bound, high)), sum(map(pods.is_bound, low)), len(low)
    return placed == (PODS_OF_A_SET, PODS_OF_A_SET, 0, PODS_OF_A_SET) and reported


PREEMPTION = (
    Chapter("the lower one runs", lambda played: make_pair(played, "low"), lambda played: is_placed, killed=False),
    Chapter("the higher one takes its place", lambda played: make_pair(played, "high"), lambda played: is_preempted),
)


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "story", "victim", "least"),
    [
        ("made-operator", MAKING, "operator", [30]),
        pytest.param("made-scheduler", MAKING, "gang-scheduler", [CREATED_PODS], marks=pytest.mark.thorough),
        ("changed-operator", CHANGES, "operator", [15, 10, 6]),
        pytest.param("changed-scheduler", CHANGES, "gang-scheduler", [3, 3, 0], marks=pytest.mark.thorough),
        pytest.param("preempted-operator", PREEMPTION, "operator", [10], marks=pytest.mark.thorough),
        ("preempted-scheduler", PREEMPTION, "gang-scheduler", [2 * PODS_OF_A_SET]),
    ],
)
def test_killing_a_process_does_not_change_the_final_state(
    bare_cluster: Cluster, name: str, story: Sequence[Chapter], victim: Role, least: Sequence[int]
) -> None:
    writes = asyncio.run(all_deaths(bare_cluster, name, story, victim))
    # With fewer writes, nothing was tested.
    assert all(count >= lowest for count, lowest in zip(writes.values(), least, strict=True)), writes
