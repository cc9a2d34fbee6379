"""The environment that the parts of a scale run share: the cluster, its clients and recordings, and waits on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.cluster import etcd_data
from conformance.cluster.audit import AuditLog
from conformance.cluster.controlplane import Cluster
from conformance.cluster.progress import ProgressReporter
from conformance.errors import HarnessError
from conformance.grove.kinds import CLAIM_TEMPLATES
from conformance.history.recorder import Recorder
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import Driver, ProcessFailure
from conformance.scale.machine import ResourceMeter
from conformance.scale.tracker import Tracker
from kube.client import Client
from kube.resource import NAMESPACES

AGENT = "grove-conformance-scale"
"""The program name of a run's client."""
LIVE_BYTES_METRIC = "go_gc_heap_live_bytes"
"""The API server's metric for the memory that its live objects use."""
QUIET_SECONDS, MAX_QUIET_WAIT_SECONDS = 0.5, 5.0
"""Seconds without a request after which a phase has no more requests, and the limit for waiting for such a pause."""


class RunFailed(Exception):
    """The implementation did not reach the end of a phase. This is a finding."""


class StorageSize(NamedTuple):
    """The storage of a run at one time: the size of etcd's database, the size of the audit log, the number of the
    recorder's records, and the size of these records. Sizes are in bytes."""

    etcd: int
    audit: int
    records: int
    recorded: int

    def change_from(self, earlier: StorageSize) -> dict[str, float]:
        """Return the size of the database in MiB, and the growth of the other values."""
        return {
            "etcdMiB": _mib(self.etcd),
            "auditLogMiB": _mib(self.audit - earlier.audit),
            "records": self.records - earlier.records,
            "recordedMiB": _mib(self.recorded - earlier.recorded),
        }


def _mib(size: float) -> float:
    return round(size / 2**20, 2)


@dataclass
class ScaleEnvironment:
    """A running cluster with an implementation. `run` is the id of the run."""

    run: str
    cluster: Cluster
    driver: Driver
    recorder: Recorder
    client: Client
    report: ProgressReporter
    pids: dict[str, int] = field(default_factory=dict)
    claim_templates: Mapping[str, Any] = field(default_factory=dict)
    """ResourceClaimTemplates that each namespace gets: name → spec of the claims."""

    def __post_init__(self) -> None:
        self.audit = AuditLog.of(self.cluster)
        self.pids.update(self.cluster.monitor.pids())
        for role in Role:
            self.pids.update(self.driver.pids(role))

    def meter(self) -> ResourceMeter:
        """Start measuring the processes of the run."""
        return ResourceMeter(self.pids, self.recorder.thread_id)

    def storage_size(self) -> StorageSize:
        """Return the storage of the run so far."""
        database = self.cluster.workspace / etcd_data.DATABASE
        return StorageSize(
            database.stat().st_size, self.audit.mark(), self.recorder.last_seq(), self.recorder.received_bytes
        )

    async def live_memory(self) -> dict[str, float]:
        """Return the memory in use after the API server's last garbage collection; empty if it is unknown. The resident
        memory is several times as large, up to a limit that depends on the machine (`cluster/settings.py`)."""
        metrics = (await self.client.request("GET", "/metrics")).decode()
        metric = next((line for line in metrics.splitlines() if line.startswith(f"{LIVE_BYTES_METRIC} ")), "")
        return {"apiServerLiveMiB": _mib(float(metric.split()[1]))} if metric else {}

    def now(self) -> float:
        """Return the current time of the recorder's clock in seconds."""
        return self.recorder.now()

    async def create_namespace(self, name: str) -> None:
        """Create a namespace with the claim templates of the scenario, and wait for the service account without which
        no pod can be created. Raises HarnessError if there is none after 30 s."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.client.create(NAMESPACES, body)
        for template, spec in self.claim_templates.items():
            await self.client.create(
                CLAIM_TEMPLATES,
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaimTemplate",
                    "metadata": {"name": template, "namespace": name},
                    "spec": {"spec": spec},
                },
            )
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        params = {"watch": "true", "fieldSelector": "metadata.name=default", "timeoutSeconds": "30"}
        async with self.client.stream(path, params) as stream:
            async for _ in stream.iter_any():
                return
        raise HarnessError(f"namespace {name} has no default service account after 30 s")

    async def wait_for_pods(
        self, tracker: Tracker, subject: str, condition: Callable[[Tracker], bool], total: int, timeout: float
    ) -> None:
        """Return when `condition` is true. Raises RunFailed after `timeout` seconds, or when a process of the
        implementation ends."""
        failures: list[ProcessFailure] = []

        def report_progress(current_tracker: Tracker) -> None:
            failures.extend(self.driver.failures())
            current_tracker.drop_read()
            self.report(subject, _counts(current_tracker, total))

        start = self.now()
        await asyncio.to_thread(
            tracker.wait_until,
            lambda current_tracker: condition(current_tracker) or bool(failures),
            timeout,
            report_progress,
        )
        if not condition(tracker):
            raise RunFailed(
                f"{subject}: not over after {self.now() - start:.0f} s: {_counts(tracker, total)}"
                + "".join(f"; {failure}" for failure in failures)
            )

    async def wait_for_quiet(self) -> None:
        """Wait until no more requests are sent, so that all requests of a phase are counted in that phase."""
        deadline, last_size = self.now() + MAX_QUIET_WAIT_SECONDS, -1
        while self.now() < deadline and (size := self.audit.mark()) != last_size:
            last_size = size
            await asyncio.sleep(QUIET_SECONDS)


def _counts(tracker: Tracker, total: int) -> str:
    return (
        f"{len(tracker.pods)} pods created, {tracker.bound} bound, {tracker.ready} ready, {tracker.deleted} gone; "
        f"{total} wanted, "
        f"{tracker.status.available_replicas} replicas available"
    )
