"""The reference's gang scheduler alone, on a real control plane: each scenario of the specification in a namespace and
on nodes of its own, all at once. What an operator would make is made by hand."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.grove.kinds import PODGANGS
from conformance.grove.scheduling import manifests, scenarios
from conformance.grove.scheduling.instance import Change, Instance, Outcome
from conformance.grove.scheduling.manifests import Ground
from conformance.grove.scheduling.rules import forbidden, verdict
from conformance.grove.scheduling.scenarios import Scenario
from conformance.history.query import History, Miss
from conformance.history.recorder import Recorder
from conformance.history.view import View
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, NODES, PODS
from reference_impl.scheduler.scheduler import GangScheduler
from tests.reference.chaos import CLASSES
from tests.reference.mortal import death

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SCHEDULER = "grove-gang-scheduler"
NOW = "2026-01-01T00:00:00Z"
HELD = "tests.example/held"
"""Finalizer of a pod that stays terminating."""
WAIT, REST = 60.0, 2.0
"""Seconds in which a scenario has to come to rest, and for how long nothing may move then."""


def ground(scenario: Scenario) -> Ground:
    name = scenario.id.lower()
    key = nodes.POOL
    return Ground(
        name,
        name,
        SCHEDULER,
        selector={key: name},
        taints=({"key": key, "value": name, "effect": "NoSchedule"},),
        tolerations=(nodes.toleration(name),),
    )


async def furnish(client: Client, instance: Instance, where: Ground) -> None:
    """The nodes, then the pods and gangs, each gang with its status."""
    fleet = manifests.nodes(instance, where)
    await nodes.create_nodes(client, fleet)
    await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in fleet])
    states = {manifests.object_name(pod.name): pod.state for pod in instance.running}
    await asyncio.gather(
        *(run(client, pod, states[pod["metadata"]["name"]]) for pod in manifests.running(instance, where))
    )
    await submit(client, instance, where)


async def submit(client: Client, instance: Instance, where: Ground) -> None:
    await asyncio.gather(*(client.create(PODS, pod) for pod in manifests.pods(instance, where)))
    for gang in manifests.gangs(instance, where):
        await client.create(PODGANGS, gang)
        name = gang["metadata"]["name"]
        await client.patch(PODGANGS, where.namespace, name, manifests.gang_status(NOW), subresource="status")


async def run(client: Client, pod: dict[str, Any], state: str) -> None:
    """A pod that runs already, is going, or has ended."""
    metadata = pod["metadata"]
    if state == "terminating":
        metadata["finalizers"] = [HELD]
    again = AsyncRetrying(retry=retry_if_exception_type(ApiError), wait=wait_fixed(0.1), stop=stop_after_delay(20))
    await again(client.create, PODS, pod)  # the namespace's service account may not be there yet
    if state == "terminating":
        await client.delete(PODS, metadata["namespace"], metadata["name"])
    if state == "finished":
        status = {"status": {"phase": "Succeeded"}}
        await client.patch(PODS, metadata["namespace"], metadata["name"], status, subresource="status")


async def change(client: Client, what: Change, where: Ground) -> None:
    more = Instance(what.nodes, what.gangs)
    fleet = manifests.nodes(more, where)
    await nodes.create_nodes(client, fleet)
    await submit(client, more, where)
    for name in what.deleted:
        for pod in await client.list(PODS, where.namespace):
            if pod["metadata"]["labels"].get("grove.io/podgang") == manifests.object_name(name):
                await client.delete(PODS, where.namespace, pod["metadata"]["name"])
        await client.delete(PODGANGS, where.namespace, manifests.object_name(name))


def afterwards(scenario: Scenario) -> Instance:
    """The instance of which all pods together are an outcome, once the change has happened."""
    assert scenario.change is not None
    changed = scenario.instance.after(Outcome(), scenario.change)
    return replace(changed, running=tuple(pod for pod in changed.running if pod.gang not in scenario.change.deleted))


def rest(cases: list[tuple[Instance, Ground]], recorder: Recorder) -> None:
    """Waits until the pods of all are where they may be; once nothing has moved for a while, they still have to be."""
    histories = [(instance, where, History(recorder, where.namespace)) for instance, where in cases]
    for instance, where, history in histories:

        def permitted(view: View, instance: Instance = instance, where: Ground = where) -> bool | Miss:
            found = manifests.outcome(instance, view.list("pods"), where)
            wrong = verdict(instance, found)
            return not wrong or Miss(f"{scenarios.notation(found)}: {wrong[0]}")

        history.wait(f"{instance.name} is at rest where it may be", permitted, WAIT)
    history.quiet(REST, WAIT, resources=("pods",))
    for instance, where, history in histories:
        found = manifests.outcome(instance, history.view().list("pods"), where)
        assert not forbidden(verdict(instance, found)), f"{instance.name}: {scenarios.notation(found)}"


async def play(cluster: Cluster) -> None:
    cases = [(scenario, ground(scenario)) for scenario in scenarios.load()]
    recorder = Recorder(cluster.kubeconfig, "scenarios")
    recorder.start()
    try:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            for _, where in cases:
                about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": where.namespace}}
                await client.create(NAMESPACES, about)
            classes = {c["value"]: c for scenario, _ in cases for c in manifests.priority_classes(scenario.instance)}
            await asyncio.gather(*(client.create(CLASSES, made) for made in classes.values()))
            await asyncio.gather(*(furnish(client, scenario.instance, where) for scenario, where in cases))
            task = asyncio.create_task(GangScheduler(client, name=SCHEDULER).run())
            await asyncio.to_thread(rest, [(scenario.instance, where) for scenario, where in cases], recorder)
            changing = [(scenario, where) for scenario, where in cases if scenario.change is not None]
            for scenario, where in changing:
                assert scenario.change is not None
                await change(client, scenario.change, where)
            await asyncio.to_thread(rest, [(afterwards(scenario), where) for scenario, where in changing], recorder)
            await death(task)
            assert len(await client.list(NODES)) > len(cases)
    finally:
        recorder.stop()


def test_every_scenario_comes_to_rest_where_it_may(bare_cluster: Cluster) -> None:
    asyncio.run(play(bare_cluster))
