"""Tests that an operator can be killed while it assigns an earlier version's pods to the gangs of PodGangMaps. The
operator is killed after each of its writes in turn and restarted. The result is the same as without a death, and no pod
is touched (GM-84). See also test_killed_at_any_write.py."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.grove import workloads
from conformance.grove.fields import condition, number
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import following
from conformance.testing.scaled import pods_are
from reference_impl.api import models
from reference_impl.plan import gang_migration
from reference_impl.plan.lines import MAPS, NAMES
from tests.reference.chaos import Chapter, CrashRun, Predicate, all_deaths, pods_made
from tests.reference.test_killed_at_any_write import with_defaults

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

LIVES = 3
"""The number of lives that run at the same time. It is smaller than in other tests, because these sets are larger and
slow lives reveal nothing more."""
OLD, NEW = "an earlier version has made it", "a version with maps takes over"


def story_of_size(replicas: int, pod_count: int, groups: int, members: int, live: Sequence[int]) -> Sequence[Chapter]:
    """Return the story of a set of this size.

    `live` holds, for each replica of the set, the number of replicas that its scaling group has at the take-over,
    regardless of the template.
    """
    pods = sum(pod_count + live_count * (1 + members) for live_count in live)

    async def make(played: CrashRun) -> None:
        await played.replace_operator(NAMES)
        sizes = {"replicas": replicas, "alone": pod_count, "groups": groups, "members": members}
        minimums = {"aloneMinAvailable": 1, "groupsMinAvailable": 1, "membersMinAvailable": 1}
        manifest = workloads.load("kept", {"setName": "s", **sizes, **minimums})
        manifest = with_defaults(manifest, played, cliqueStartupType="CliqueStartupTypeAnyOrder")
        await played.client.create(models.PODCLIQUESETS, manifest)
        await asyncio.to_thread(played.history.wait, "its groups exist", lambda view: _groups(view) == replicas, 60)
        for index, live_count in enumerate(live):
            body, name = {"spec": {"replicas": live_count}}, f"s-{index}-g"
            await played.client.patch(models.SCALING_GROUPS, played.namespace, name, body, subresource="scale")

    async def take_over(played: CrashRun) -> None:
        played.notes["pods"] = pods_made(played)
        await played.replace_operator(MAPS)

    def judge(played: CrashRun) -> None:
        assert pods_made(played) == played.notes["pods"], f"{played.namespace}: pods made and deleted"

    return (
        Chapter(OLD, make, lambda played: deployed(pods, replicas), killed=False),
        Chapter(NEW, take_over, migrated, judge=judge),
    )


def _groups(view: View) -> int:
    return len(view.list("podcliquescalinggroups"))


def deployed(pods: int, replicas: int) -> Predicate:
    """Return a predicate that holds once all pods are Ready and no other pods are left."""

    def is_deployed(view: View) -> bool:
        available = number(view.get("podcliquesets", "s"), "status", "availableReplicas") == replicas
        return available and len(view.list("pods")) == pods and pods_are(_sizes(view), ready=True)(view) is True

    return is_deployed


def _sizes(view: View) -> dict[str, int]:
    return {clique["metadata"]["name"]: number(clique, "spec", "replicas") or 0 for clique in view.list("podcliques")}


def migrated(played: CrashRun) -> Predicate:
    """Return a predicate that holds once maps, gangs and pods agree and the migration has ended."""

    def is_migrated(view: View) -> bool | Unmet:
        if condition(view.get("podcliquesets", "s"), gang_migration.CONDITION):
            return Unmet(f"the set has the condition {gang_migration.CONDITION}")
        return following.are_maps_followed("s")(view)

    return is_migrated


@pytest.mark.parametrize(
    ("name", "size", "least"),
    [
        ("small", (2, 2, 2, 1, (3, 1)), 25),
        pytest.param("as-declared", (3, 6, 3, 2, (3, 3, 3)), 90, marks=pytest.mark.thorough),
        pytest.param("scaled", (3, 6, 3, 2, (5, 2, 4)), 110, marks=pytest.mark.thorough),
    ],
)
def test_killing_the_operator_during_a_migration_restarts_no_pods(
    bare_cluster: Cluster, name: str, size: tuple[int, int, int, int, Sequence[int]], least: int
) -> None:
    writes = asyncio.run(all_deaths(bare_cluster, name, story_of_size(*size), "operator", LIVES))
    assert writes[NEW] >= least
