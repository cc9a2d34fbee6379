"""One scale run: the raw floor, the set deployed, the raw floor again, the set deleted; on one cluster.

Times are only meaningful relative to a raw floor of the same run. It is measured before and after, so that a machine
whose speed changes is noticed (docs/design.md, section "Scale measurements").
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conformance.cluster import nodes
from conformance.cluster.audit import AuditLog
from conformance.cluster.controlplane import Cluster
from conformance.cluster.progress import Report
from conformance.cluster.settings import DEFAULT_SCHEDULER, ClusterSettings
from conformance.errors import HarnessError
from conformance.grove.kinds import PODCLIQUESETS
from conformance.history.recorder import Recorder
from conformance.implementation import deployment, scheduler_names
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import Driver, Failure
from conformance.scale.markers import Tracker, percentiles
from conformance.scale.processes import Meter
from conformance.scale.scenario import Scenario
from conformance.scale.writes import counted
from kube.client import Client
from kube.resource import NAMESPACES, PODS

FLOOR_IN_FLIGHT = 32
"""Concurrent creations of the raw floor (spec OBS-23)."""
TIMEOUT_SECONDS = 600.0


class RunFailed(Exception):
    """The implementation was too slow: a finding, with the result so far."""


@dataclass(frozen=True)
class Plan:
    """The settings of a run. `scheduler` is `kube` (kube-scheduler binds) or `gang` (the gang scheduler of the
    implementation, or the supplied one)."""

    scenario: Scenario
    implementation: Descriptor
    supplied: Descriptor | None
    scheduler: str

    @property
    def kube_scheduler(self) -> str:
        """Return the scheduler name of kube-scheduler. Without a gang scheduler it keeps its own."""
        gang = self.scheduler == "gang"
        return scheduler_names.kube_scheduler(self.implementation, self.supplied) if gang else DEFAULT_SCHEDULER


def run(plan: Plan, report: Report) -> dict[str, Any]:
    """Run a plan on a new cluster and return the result document. Raises RunFailed or HarnessError."""
    name = f"scale-{os.getpid()}"
    cluster = Cluster.up(name, settings=ClusterSettings(scheduler_name=plan.kube_scheduler), owner=True, report=report)
    try:
        return _on(cluster, plan, report)
    finally:
        cluster.down()


def _on(cluster: Cluster, plan: Plan, report: Report) -> dict[str, Any]:
    facts = deployment.facts_of(cluster)
    with Driver(plan.implementation, facts, plan.supplied) as driver:
        report("implementation", f"installing and starting {plan.implementation.name}")
        driver.install()
        cluster.learn_new_kinds()
        # A gang scheduler without pods to bind would only use up CPU.
        driver.start(*([Role.OPERATOR] if plan.scheduler == "kube" else []))
        recorder = Recorder(cluster.kubeconfig, "grove-conformance-recorder")
        recorder.start()
        try:
            return asyncio.run(_Run(cluster, plan, driver, recorder, report).all())
        finally:
            recorder.stop()


class _Run:
    def __init__(self, cluster: Cluster, plan: Plan, driver: Driver, recorder: Recorder, report: Report) -> None:
        self._cluster, self._plan, self._driver, self._recorder = cluster, plan, driver, recorder
        self._report = report
        self._audit = AuditLog(cluster.audit_log)
        pids = dict(cluster.monitor.pids())
        pids.update({str(role): pid for role in plan.implementation.roles if (pid := driver.pid(role)) is not None})
        self._pids = pids

    async def all(self) -> dict[str, Any]:
        """Run all phases and return the result document."""
        scenario = self._plan.scenario
        started = datetime.now(UTC)
        agent = "grove-conformance-scale"
        async with Client.from_kubeconfig(self._cluster.kubeconfig, user_agent=agent) as client:
            self._report("nodes", f"{scenario.node_count} × {scenario.node_profile}")
            wanted = nodes.manifests(scenario.node_profile, scenario.node_count)
            await nodes.create_nodes(client, wanted)
            await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in wanted])
            before = await self._floor(client, "floor-before")
            deploy, delete = await self._deployed(client)
            after = await self._floor(client, "floor-after")
        floor = statistics.mean([before["podsReadySeconds"], after["podsReadySeconds"]])
        ready = deploy["markers"]["pods-ready"]
        return {
            "apiVersion": "conformance.grove.io/v1alpha1",
            "kind": "ScaleResult",
            "scenario": scenario.name,
            "startedAt": started.isoformat(timespec="seconds"),
            "pods": scenario.pods,
            "nodes": scenario.node_count,
            "binder": "kube-scheduler" if self._plan.scheduler == "kube" else "gang-scheduler",
            "implementation": {
                "name": self._plan.implementation.name,
                "version": self._plan.implementation.version,
                "digest": self._plan.implementation.digest,
            },
            "environment": {
                "cpus": os.cpu_count(),
                "machine": platform.machine(),
                "python": platform.python_version(),
                "versions": dict(self._cluster.record.versions),
            },
            "floors": {"before": before, "after": after, "podsReadySeconds": round(floor, 3)},
            "podsReadyTimesFloor": None if ready is None else round(ready / floor, 3),
            "phases": {"deploy": deploy, "delete": delete},
        }

    async def _namespace(self, client: Client, name: str) -> None:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def _follow(self, tracker: Tracker, what: str, done: Callable[[Tracker], bool], total: int) -> None:
        dead: list[Failure] = []

        def progress(now: Tracker) -> None:
            dead.extend(self._driver.failures())
            self._report(
                what,
                f"{len(now.pods)} created, {now.scheduled} bound, {now.ready} ready, {now.deleted} gone of {total}",
            )

        begin = self._recorder.now()
        await asyncio.to_thread(tracker.until, lambda t: done(t) or bool(dead), TIMEOUT_SECONDS, progress)
        if not done(tracker):
            raise RunFailed(
                f"{what}: after {self._recorder.now() - begin:.0f} s {len(tracker.pods)} pods created, "
                f"{tracker.scheduled} bound, {tracker.ready} ready, {tracker.deleted} gone of {total}"
                + "".join(f"; {failure}" for failure in dead)
            )

    async def _floor(self, client: Client, namespace: str) -> dict[str, Any]:
        """Measure plain pods of the same spec, created by one client and bound by kube-scheduler; then delete them."""
        scenario = self._plan.scenario
        await self._namespace(client, namespace)
        await self._service_account(client, namespace)
        pods = scenario.plain_pods(namespace, self._plan.kube_scheduler)
        tracker = Tracker(self._recorder, namespace)
        limit = asyncio.Semaphore(FLOOR_IN_FLIGHT)

        async def create(pod: dict[str, Any]) -> None:
            async with limit:
                await client.create(PODS, pod)

        meter, begin = Meter(self._pids), self._recorder.now()
        creating = asyncio.gather(*(create(pod) for pod in pods))
        await self._follow(tracker, namespace, lambda t: t.ready >= scenario.pods, scenario.pods)
        await creating
        ready = max(times.ready or 0.0 for times in tracker.pods.values()) - begin
        created = max(times.created for times in tracker.pods.values()) - begin
        processes = meter.read()
        await client.request("DELETE", PODS.path(namespace), body={"gracePeriodSeconds": 0})
        await self._follow(tracker, namespace, lambda t: t.deleted >= scenario.pods, scenario.pods)
        await client.delete(NAMESPACES, None, namespace)
        return {
            "podsCreatedSeconds": round(created, 3),
            "podsReadySeconds": round(ready, 3),
            "processes": processes,
        }

    async def _service_account(self, client: Client, namespace: str) -> None:
        """Wait for the account without which no pod can be created."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        params = {"watch": "true", "fieldSelector": "metadata.name=default", "timeoutSeconds": "30"}
        async with client.stream(path, params) as stream:
            async for _ in stream.iter_any():
                return
        raise HarnessError(f"namespace {namespace} has no default service account after 30 s")

    async def _deployed(self, client: Client) -> tuple[dict[str, Any], dict[str, Any]]:
        scenario, namespace = self._plan.scenario, "scale"
        await self._namespace(client, namespace)
        await self._service_account(client, namespace)
        name = DEFAULT_SCHEDULER if self._plan.scheduler == "kube" else None
        manifest = scenario.pod_clique_set(namespace, name)
        tracker = Tracker(self._recorder, namespace)

        mark, meter, begin = self._audit.mark(), Meter(self._pids), self._recorder.now()
        await client.create(PODCLIQUESETS, manifest)
        await self._follow(
            tracker,
            "deploy",
            lambda t: t.ready >= scenario.pods and t.available >= scenario.replicas,
            scenario.pods,
        )
        deploy = self._deploy_result(tracker, begin, mark, meter)

        mark, meter, begin = self._audit.mark(), Meter(self._pids), self._recorder.now()
        await client.delete(PODCLIQUESETS, namespace, manifest["metadata"]["name"])
        await self._follow(tracker, "delete", lambda t: t.left == 0, scenario.pods)
        delete = {
            "markers": {
                "pcs-deleted": _since(begin, tracker.set_gone_at),
                "pods-deleted": _since(begin, _last(times.deleted for times in tracker.pods.values())),
                "all-deleted": _since(
                    begin, _last([tracker.children_gone_at, *(times.deleted for times in tracker.pods.values())])
                ),
            },
            "writes": counted(self._audit.count(mark), scenario.pods),
            "processes": meter.read(),
        }
        await client.delete(NAMESPACES, None, namespace)
        return deploy, delete

    def _deploy_result(self, tracker: Tracker, begin: float, mark: int, meter: Meter) -> dict[str, Any]:
        pods = list(tracker.pods.values())
        return {
            "markers": {
                "first-pod-created": _since(begin, min(times.created for times in pods)),
                "pods-created": _since(begin, _last(times.created for times in pods)),
                "pods-scheduled": _since(begin, _last(times.scheduled for times in pods)),
                "pods-ready": _since(begin, _last(times.ready for times in pods)),
                "pcs-first-available": _since(begin, tracker.first_available_at),
                "pcs-available": _since(begin, tracker.available_at),
            },
            "perPod": {
                "created-to-scheduled": percentiles([t.scheduled - t.created for t in pods if t.scheduled is not None]),
                "scheduled-to-ready": percentiles(
                    [t.ready - t.scheduled for t in pods if t.ready is not None and t.scheduled is not None]
                ),
            },
            "writes": counted(self._audit.count(mark), self._plan.scenario.pods),
            "processes": meter.read(),
        }


def _last(times: Iterable[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return max(known) if known else None


def _since(begin: float, moment: float | None) -> float | None:
    """Return the seconds since the request that began a phase."""
    return None if moment is None else round(moment - begin, 3)


def file_name(result: dict[str, Any]) -> str:
    """Return a file name that sorts by time and describes the result."""
    stamp = datetime.fromisoformat(result["startedAt"]).strftime("%Y%m%d-%H%M%S")
    return f"{stamp}-{result['scenario']}-{result['implementation']['name']}-{result['binder']}.json"
