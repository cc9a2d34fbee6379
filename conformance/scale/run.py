"""One scale run: the raw floor, the phases of the scenario, and the raw floor again, all on one new cluster."""

from __future__ import annotations

import asyncio
import os
import statistics
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import psutil

from conformance.cluster import gpu_devices, nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.features import NO_FEATURES, FeatureRequest
from conformance.cluster.progress import ProgressReporter
from conformance.cluster.settings import ClusterSettings, LoggedReads
from conformance.data import PROJECT
from conformance.errors import HarnessError
from conformance.grove.kinds import DEFAULT_SCHEDULER
from conformance.history import recorder as recorders
from conformance.history.recorder import Recorder
from conformance.implementation import deployment, scheduler_names
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import Driver
from conformance.implementation.values import ClusterFacts
from conformance.scale import floor, identity, machine, results, write_floor
from conformance.scale.environment import AGENT, RunFailed, ScaleEnvironment
from conformance.scale.play import PhaseRunner, add_floor_ratios
from conformance.scale.scenario import STAGES, LoadScenario
from conformance.scale.tracker import FOLLOWED_RESOURCES
from conformance.scale.write_floor import RecordedWrites
from kube.client import Client
from kube.resource import PODS

WATCHED_RESOURCES = tuple(
    watched for watched in recorders.WATCHED if watched.resource.plural in {PODS.plural, *FOLLOWED_RESOURCES}
)
"""The resources that the tracker follows. With events, nodes and secondary resources, twice as much would be
recorded."""
NODES_SECONDS = 300.0
"""Seconds in which all nodes, possibly a thousand, have to become schedulable."""


ProxyFactory = Callable[[Cluster], AbstractContextManager[ClusterFacts]]
"""Yields the facts of a cluster whose operator talks to a proxy instead of the API server."""


@dataclass(frozen=True)
class ScalePlan:
    """The settings of a run. `scheduler` is `kube` (kube-scheduler binds) or `gang` (the gang scheduler of the
    implementation, or the supplied one); `kubernetes` and `features` are as in ClusterSettings; `front`, if any, is put
    between the operator and the API server."""

    scenario: LoadScenario
    implementation: Descriptor
    supplied: Descriptor | None
    scheduler: str
    kubernetes: str = ""
    features: FeatureRequest = NO_FEATURES
    front: ProxyFactory | None = None

    @property
    def kube_scheduler(self) -> str:
        """Return the scheduler name of kube-scheduler. If no gang scheduler runs, it is the default name."""
        uses_gang_scheduler = self.scheduler == "gang"
        return (
            scheduler_names.kube_scheduler_name(self.implementation, self.supplied)
            if uses_gang_scheduler
            else DEFAULT_SCHEDULER
        )

    @property
    def pod_scheduler(self) -> str | None:
        """Return the scheduler name that the pods set; None if the implementation is to choose one."""
        return DEFAULT_SCHEDULER if self.scheduler == "kube" else None

    @property
    def binder(self) -> str:
        """Return the name of the scheduler that binds the pods."""
        return "kube-scheduler" if self.scheduler == "kube" else "gang-scheduler"


ResultHandler = Callable[[dict[str, Any]], None]
"""Receives the result document of a run, whether complete or not."""
WARM_UP_DIVISOR = 2
"""The raw floor has this many times as many pods as the warm-up of the cluster."""
PROXIED = "proxied"
"""The setting in a result that indicates a proxy between the operator and the API server."""
T = TypeVar("T")


def run(
    plan: ScalePlan,
    report: ProgressReporter,
    handle_result: ResultHandler,
    write_floor_result: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Run a plan on a new cluster and return the result document. The document is also passed to `handle_result`; if
    RunFailed or HarnessError is raised, `handle_result` gets the incomplete document before that. `write_floor_result`
    is the write floor, if it was measured."""
    load_before = machine.load_averages()

    async def measure_phases(env: ScaleEnvironment) -> dict[str, Any]:
        return await _complete_document(_document(env, plan, load_before, write_floor_result), env, plan, handle_result)

    return _run_on_cluster(plan, report, ClusterSettings(reads=LoggedReads.ALL), measure_phases)


def measure_write_floor(plan: ScalePlan, report: ProgressReporter) -> dict[str, Any]:
    """Record the writes of the implementation on one new cluster, replay them on another, and return the write floor.

    The cluster of the replay has the same history as the cluster of the run before its first phase: the nodes, the pods
    of the warm-up, and one raw floor. With a longer history, an API server and an etcd need more CPU for the same
    requests.
    """

    async def record_writes(env: ScaleEnvironment) -> RecordedWrites:
        await _create_nodes(env, plan.scenario)
        return await write_floor.record(env, plan.scenario, plan.pod_scheduler)

    async def replay_writes(env: ScaleEnvironment) -> dict[str, Any]:
        await _create_nodes(env, plan.scenario)
        await _warm_up(env, plan)
        raw_floor = await _measure_floor(env, "floor-before", plan)
        pods = plan.scenario.replicas * plan.scenario.pods_per_replica
        return {**await write_floor.measure(env, recording, pods), "rawFloor": raw_floor["markers"]}

    recording = _run_on_cluster(plan, report, ClusterSettings(bodies=True), record_writes)
    return _run_on_cluster(plan, report, ClusterSettings(reads=LoggedReads.ALL), replay_writes)


def _run_on_cluster(
    plan: ScalePlan,
    report: ProgressReporter,
    settings: ClusterSettings,
    work: Callable[[ScaleEnvironment], Coroutine[Any, Any, T]],
) -> T:
    """Do some work on a new cluster on which the implementation runs."""
    settings = replace(
        settings, scheduler_name=plan.kube_scheduler, stages=STAGES, kubernetes=plan.kubernetes, features=plan.features
    )
    cluster = Cluster.up(f"scale-{os.getpid()}", settings=settings, owner=True, report=report)
    try:
        with ExitStack() as stack:
            facts = stack.enter_context(plan.front(cluster)) if plan.front else deployment.facts_of(cluster)
            driver = stack.enter_context(Driver(plan.implementation, facts, plan.supplied))
            report("implementation", f"installing and starting {plan.implementation.name}")
            driver.install()
            cluster.learn_new_kinds()
            # A gang scheduler that has no pods to bind would only use CPU.
            driver.start(*([Role.OPERATOR] if plan.scheduler == "kube" else []))
            recorder = Recorder(facts.kubeconfig, "grove-conformance-recorder", WATCHED_RESOURCES)
            recorder.start()
            try:
                return asyncio.run(_with_client(cluster, driver, recorder, report, work))
            finally:
                recorder.stop()
    finally:
        cluster.down()


async def _with_client(
    cluster: Cluster,
    driver: Driver,
    recorder: Recorder,
    report: ProgressReporter,
    work: Callable[[ScaleEnvironment], Coroutine[Any, Any, T]],
) -> T:
    run = f"run-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
    async with Client.from_kubeconfig(driver.cluster.kubeconfig, user_agent=AGENT, in_flight=floor.IN_FLIGHT) as client:
        return await work(ScaleEnvironment(run, cluster, driver, recorder, client, report))


async def _complete_document(
    document: dict[str, Any], env: ScaleEnvironment, plan: ScalePlan, handle_result: ResultHandler
) -> dict[str, Any]:
    """Complete the document of a run."""
    runner = PhaseRunner(env, plan.scenario, plan.pod_scheduler)
    document["phases"], floors = runner.results, document["floors"]
    try:
        await _create_nodes(env, plan.scenario)
        await _warm_up(env, plan)
        floors["before"] = await _measure_floor(env, "floor-before", plan)
        await runner.run_all()
        floors["after"] = await _measure_floor(env, "floor-after", plan)
        document["complete"] = True
    except (RunFailed, HarnessError) as error:
        document["reason"] = str(error)
        raise
    finally:
        _add_floor_ratios(document)
        handle_result(document)
    return document


async def _measure_floor(env: ScaleEnvironment, namespace: str, plan: ScalePlan) -> dict[str, Any]:
    pods = plan.scenario.plain_pods(namespace, plan.kube_scheduler)
    return await floor.measure(env, namespace, pods, plan.scenario.within)


async def _warm_up(env: ScaleEnvironment, plan: ScalePlan) -> None:
    """Create and delete a part of the pods, without measuring it. New processes are slower. Without this step, the raw
    floor before the phases would therefore be higher than the one after them, even on an undisturbed machine."""
    pods = plan.scenario.plain_pods("warm-up", plan.kube_scheduler)
    await floor.measure(env, "warm-up", pods[: -(-len(pods) // WARM_UP_DIVISOR)], plan.scenario.within)


async def _create_nodes(env: ScaleEnvironment, scenario: LoadScenario) -> None:
    env.claim_templates = scenario.claim_templates
    env.report("nodes", f"{scenario.node_count} × {scenario.node_profile}")
    desired = gpu_devices.offered(nodes.manifests(scenario.node_profile, scenario.node_count), scenario.gpus)
    await nodes.create_schedulable_nodes(env.client, desired, timeout=NODES_SECONDS)


def _document(
    env: ScaleEnvironment, plan: ScalePlan, load: list[float], write_floor_result: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the result of a run that has not started yet."""
    scenario = plan.scenario
    return {
        "apiVersion": results.API_VERSION,
        "kind": results.KIND,
        "run": env.run,
        "startedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "complete": False,
        "reason": None,
        "scenario": {
            "name": scenario.name,
            "digest": scenario.digest,
            "pods": scenario.pods,
            "nodes": scenario.node_count,
            "upstreamNames": {phase.name: dict(phase.upstream_names) for phase in scenario.phases},
        },
        "binder": plan.binder,
        "implementation": _implementation(plan, env.driver),
        "environment": {
            **machine.describe(),
            "versions": env.cluster.versions,
            **({"features": env.cluster.record.features} if env.cluster.record.features else {}),
            "suite": identity.commit_of(PROJECT),
            "loadBefore": load,
        },
        "floors": {"before": None, "after": None, "write": write_floor_result, "mean": {}},
        "phases": [],
    }


def _implementation(plan: ScalePlan, driver: Driver) -> dict[str, Any]:
    descriptor, programs = plan.implementation, {}
    settings = {**descriptor.settings, **({PROXIED: "yes"} if plan.front else {})}
    for role in sorted(descriptor.roles):
        for name, pid in driver.pids(role).items():
            process = psutil.Process(pid)
            programs[name] = identity.process_identity(process.cmdline(), process.environ().get("PYTHONPATH", ""))
    return {
        "name": descriptor.name,
        "version": descriptor.version,
        "descriptor": descriptor.digest,
        "settings": identity.published_settings(settings),
        "programs": programs,
        "identity": identity.implementation_digest(programs, settings),
    }


def _add_floor_ratios(document: dict[str, Any]) -> None:
    """Add the mean of the floors before and after the measurement, and the measured times as multiples of it."""
    raw_floors = [
        raw_floor for raw_floor in (document["floors"]["before"], document["floors"]["after"]) if raw_floor is not None
    ]
    if raw_floors:
        means = {
            name: round(statistics.mean(raw_floor["markers"][name] for raw_floor in raw_floors), 3)
            for name in raw_floors[0]["markers"]
        }
        document["floors"]["mean"] = means
        add_floor_ratios(document["phases"], means)
    if (write_floor_result := document["floors"]["write"]) and document["phases"]:
        first_phase = document["phases"][0]
        first_phase["timesWriteFloor"] = {
            name: round(first_phase["markers"][name] / seconds, 3)
            for name, seconds in write_floor_result["markers"].items()
            if first_phase["markers"].get(name)
        }
