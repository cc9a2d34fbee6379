"""Tests that an operator can be killed while it migrates the hashes that an earlier version has left. The next operator
continues where the first operator stopped, and pods are never changed. The operator dies after each of its writes, or
after some of them with `CHAOS=i/n`.

Before a downgrade, the operator can write the hashes of the earlier version while it recognizes all other hashes. Then
the downgrade restarts no pods either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.grove import template_hashes
from conformance.grove.template_hashes import HashScheme
from conformance.grove.template_pairs import template
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED
from conformance.history.recorder import Recorder
from conformance.history.view import View
from conformance.implementation import loading
from conformance.implementation.driver import ClusterFacts, Driver
from conformance.tests.upgrade import takeover
from kube.client import Client
from kube.resource import NAMESPACES
from reference_impl.api import models
from reference_impl.control.operator import Operator
from reference_impl.plan.hashing.schemes import CANONICAL, SCHEMES
from reference_impl.plan.hashing.window import Policy
from reference_impl.scheduler.scheduler import GangScheduler
from tests.reference.chaos import PART, PARTS
from tests.reference.mortal import Mortal, death

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SCHEDULER = "grove-gang-scheduler"
NAMESPACE, SET = "migrated", "s"
REPLICAS, CLIQUES = 3, 3
PODS = REPLICAS * CLIQUES
OLD, NEW = Policy(SCHEMES["legacy-0.34"], ()), Policy()
LEGACY_POLICY = Policy(SCHEMES["legacy-0.34"])
OTHER_LIBRARIES = Policy(SCHEMES["legacy-0.35"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        control_plane = Cluster.up("migrated", settings=ClusterSettings(audit=False), owner=True)
        facts = ClusterFacts(
            control_plane.kubeconfig, control_plane.directory, control_plane.marker(), control_plane.port
        )
        Driver(loading.load("blank"), facts).install()
        control_plane.learn_new_kinds()
        yield control_plane
        control_plane.down()


def build_set() -> dict[str, Any]:
    """Return a set with three replicas of a standalone clique and a scaling group, with all defaults filled in."""
    cliques = [template(name, takeover.pod_spec()) for name in ("z-solo", *takeover.MEMBERS)]
    group = {"name": "g", "cliqueNames": list(takeover.MEMBERS), "replicas": 1, "minAvailable": 1}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": SET, "namespace": NAMESPACE},
        "spec": {
            "replicas": REPLICAS,
            "template": {
                "cliques": cliques,
                "podCliqueScalingGroups": [group],
                "cliqueStartupType": "CliqueStartupTypeAnyOrder",
                "terminationDelay": "4h0m0s",
                "headlessServiceConfig": {"publishNotReadyAddresses": True},
            },
        },
    }


def start(kubeconfig: Path, policy: Policy, k: int = 0) -> tuple[asyncio.Task[None], Mortal]:
    """Start an operator with this policy, which dies with its `k`-th write."""
    client = Mortal.from_kubeconfig(kubeconfig, user_agent=f"operator-{k}")
    client.k = k

    async def run() -> None:
        async with client:
            image = "registry.example/wait:1"
            await Operator(client, scheduler_name=SCHEDULER, init_image=image, hash_policy=policy).run()

    return asyncio.create_task(run()), client


def written_by(view: View, scheme: HashScheme) -> list[str]:
    """Return an error for each of the set's hashes that is not written in this way."""
    if (pcs := view.get("podcliquesets", SET)) is None:
        return [f"{SET} has not arrived"]
    set_template = pcs["spec"]["template"]
    generation = template_hashes.of_set(set_template, scheme)
    of_role = {clique["name"]: template_hashes.of_clique(clique, "", scheme) for clique in set_template["cliques"]}
    current = takeover.all_hashes(view, SET)
    problems = []
    for location, hash in current.items():
        kind, _, rest = location.partition("/")
        if kind == "podcliquesets" or "Generation" in rest:
            expected = generation
        else:
            expected = next(value for role, value in of_role.items() if f"-{role}" in rest)
        if hash != expected:
            problems.append(f"{location} is {hash}, not {expected}")
    return problems if len(current) == 1 + REPLICAS + 3 * REPLICAS * CLIQUES + PODS else [f"{len(current)} hashes"]


async def all_deaths(cluster: Cluster) -> int:
    """Let the operator die at each write of a migration, and return the number of the first write at which it did not
    die."""
    recorder = Recorder(cluster.kubeconfig, "killed-while-migrating")
    recorder.start()
    history = History(recorder, NAMESPACE)
    legacy, canonical, other = HashScheme("0.34", False), HashScheme("0.34", True), HashScheme("0.35", False)

    async def until(scheme: HashScheme, expectation: str) -> None:
        await asyncio.to_thread(history.wait, expectation, lambda view: not written_by(view, scheme), 60)

    async def migrated(expectation: str) -> None:
        await until(canonical, expectation)
        await asyncio.to_thread(history.quiet, 1, 30)

    try:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            manifests = nodes.manifests("dgx-h100", 2)
            await nodes.create_nodes(client, manifests)
            await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in manifests])
            scheduler = asyncio.create_task(GangScheduler(client, name=SCHEDULER).run())
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            await client.create(models.PODCLIQUESETS, build_set())
            task, _ = start(cluster.kubeconfig, OLD)
            await until(legacy, "the earlier version has made the set")
            await death(task)

            task, mortal = start(cluster.kubeconfig, NEW)
            await migrated("all hashes are canonical")
            await death(task)
            writes, deaths = mortal.writes, dict[int, bool]()
            for k in range(PART, writes, PARTS):
                task, _ = start(cluster.kubeconfig, LEGACY_POLICY)
                await until(legacy, f"before death {k}: the way back")
                await death(task)
                task, mortal = start(cluster.kubeconfig, NEW, k)
                ended = asyncio.create_task(migrated(f"death {k}: all hashes are canonical"))
                died = asyncio.create_task(mortal.dead.wait())
                await asyncio.wait({ended, died, task}, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    await task
                    raise AssertionError(f"death {k}: the operator has ended")
                # The number of status writes depends on timing, so there may be fewer than k writes this time.
                deaths[k] = died.done()
                died.cancel()
                await death(task)
                task, _ = start(cluster.kubeconfig, NEW)
                await ended
                await death(task)
            task, _ = start(cluster.kubeconfig, OTHER_LIBRARIES)
            await until(other, "all hashes are those of other libraries")
            await death(task)
            await death(scheduler)
        records = history.records("pods")
        created = [r for r in records if r.kind == ADDED]
        deleted = [r for r in records if r.kind == DELETED or r.object["metadata"].get("deletionTimestamp")]
        assert (len(created), len(deleted)) == (PODS, 0), "pods made and deleted"
        updated = [r for r in history.records("podcliquesets") if r.object.get("status", {}).get("updateProgress")]
        assert not updated
        return min((k for k, died in deaths.items() if not died), default=writes)
    finally:
        recorder.stop()


@pytest.mark.thorough
def test_killing_the_operator_during_a_migration_restarts_no_pods(cluster: Cluster) -> None:
    assert NEW.written == CANONICAL
    assert asyncio.run(all_deaths(cluster)) > 25
