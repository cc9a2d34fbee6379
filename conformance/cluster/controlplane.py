"""A cluster: etcd, API server, controller manager, scheduler and KWOK as plain processes on loopback.

kwokctl's binary runtime starts the cluster. The suite itself ends the cluster's processes, which it finds by the marker
that all of them have. (kwokctl trusts pid files, which are wrong after a reused pid or a zombie: FC-026.)
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import yaml
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from conformance.cluster import etcd_data, features, kubeconfigs, locks, owner_watch, preflight, processes
from conformance.cluster.addons import volumes
from conformance.cluster.assets import Assets, check_minor, resolve_all, versions
from conformance.cluster.components import Components, reap_children
from conformance.cluster.facts import ClusterProperties
from conformance.cluster.features import Features
from conformance.cluster.health import COMPONENTS
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.cluster.monitor import Monitor
from conformance.cluster.pins import KUBERNETES, minor_of
from conformance.cluster.ports import Port, Ports, is_free
from conformance.cluster.progress import ProgressReporter, report_nothing
from conformance.cluster.settings import NAMESPACE_OBJECTS_FILE, ClusterSettings, extra_files, kwokctl_configuration
from conformance.cluster.state import ClusterRecord, Owner, StateRoot
from conformance.errors import HarnessError, UsageError
from conformance.suggestions import suggestion
from kube.client import Client
from kube.resource import LEASES

__all__ = ["Cluster", "ClusterSettings", "find", "list_clusters"]

_CANNOT_LIST = re.compile(r'failed to list [^"]+')
MIN_FREE_BYTES = 64 << 20
"""Bytes that etcd allocates at once. With less free space, a start fails because of the disk."""


class Cluster(ClusterProperties):
    """A cluster that is, or was, running. Created by `Cluster.up`, `find` or `list_clusters`.

    `monitor` observes the cluster's components and their health.
    """

    def __init__(self, state: StateRoot, record: ClusterRecord) -> None:
        super().__init__(state, record)
        self._components = Components(record.name, state.directory(record.name), self.marker())
        self.monitor = Monitor(self, self._components)

    @classmethod
    def up(
        cls,
        name: str,
        *,
        settings: ClusterSettings | None = None,
        owner: bool = True,
        report: ProgressReporter = report_nothing,
        state: StateRoot | None = None,
    ) -> Cluster:
        """Start a new cluster and return when it is healthy, in about 4 s if the programs are in the cache.

        `owner`: the cluster belongs to this process, so `prune` removes the cluster once this process is gone. Raises
        UsageError (name or port taken, state folder full or read-only) or HarnessError (the cluster did not start); in
        both cases nothing of the cluster is left.
        """
        settings, state = settings or ClusterSettings(), state or StateRoot()
        record = _record(name, settings, owner)
        if settings.apiserver_port and not is_free(settings.apiserver_port):
            raise UsageError(
                f"port {settings.apiserver_port} of 127.0.0.1 is taken",
                where="--apiserver-port",
                hint="choose another, or leave it out",
            )
        state.require_new(name)
        state.require()
        assets = resolve_all(report, settings.kubernetes)  # may take minutes, so simple mistakes are checked before
        minor = minor_of(record.versions[KUBERNETES])
        enabled_features = features.resolve_for_programs(settings.features, minor, assets.program)
        state.add(record, report)
        cluster = cls(state, record)
        try:
            for attempt in Retrying(
                retry=retry_if_exception_type(_PortClash), stop=stop_after_attempt(3), reraise=True
            ):
                with attempt, state.usage_errors():
                    cluster._start(settings, enabled_features, assets, report)
            if settings.addons:
                asyncio.run(cluster._install_addons())
                asyncio.run(cluster._wait_for_metrics())
            if settings.preflight:
                cluster._check_features(settings, enabled_features, report)
        except BaseException as error:  # including Ctrl-C
            try:
                if isinstance(error, HarnessError):
                    state.require(MIN_FREE_BYTES)  # on a full disk, the errors of components are misleading
            finally:
                cluster.down()
            raise
        return cluster

    def kill(self, component: str) -> None:
        """Send SIGKILL to one component and return when it is gone. Raises UsageError if the component is not
        running."""
        processes.end_one(psutil.Process(self._running_pids(component)[component]))

    def start(self, report: ProgressReporter = report_nothing) -> None:
        """Start the dead components and wait until all components are healthy. Data and versions are kept (FC-025)."""
        self._start_dead_components(self._own_assets(report), report)

    def restart(self, report: ProgressReporter = report_nothing) -> None:
        """Kill and restart every component. Data are kept."""
        with self.without(*self.monitor.pids(), report=report):
            pass

    @contextmanager
    def without(self, *components: str, report: ProgressReporter = report_nothing) -> Iterator[None]:
        """Kill components, and start all dead components when the block ends. Raises UsageError if a component is not
        running."""
        assets = self._own_assets(report)  # first, so that an error here kills nothing
        self._running_pids(*components)
        try:
            for component in components:
                self.kill(component)
            yield
        finally:
            self._start_dead_components(assets, report)

    @contextmanager
    def hold_lock(self, report: ProgressReporter = report_nothing) -> Iterator[None]:
        """Hold the lock of the cluster: meanwhile `prune` does not consider the cluster dead, and no other process
        stops components. Raises UsageError if another process holds the lock for too long."""
        with locks.hold(self.lock, report):
            yield

    def learn_new_kinds(self) -> None:
        """Restart kube-controller-manager, or start it if it has died, so that it learns the kinds that were installed
        after its start, which takes half a second. Its garbage collector checks for new kinds only every 30 s, and
        until then orphans of new kinds remain."""
        if (component := COMPONENTS[Port.CONTROLLER_MANAGER]) in self.monitor.pids():
            self.kill(component)
        self.start()

    def release(self, owner: Owner | None = None) -> Cluster:
        """Let the cluster outlive this process: from now on only `down` or the end of its new owner ends the
        cluster."""
        self.record = self._state.update(self.record, owner=owner)
        return self

    def record_implementation(
        self, implementation: str, roles: Mapping[str, Owner], descriptor: Path, settings: Mapping[str, str]
    ) -> None:
        """Record the implementation that was started on the cluster, so that it can be listed and restarted."""
        self.record = self._state.update(
            self.record,
            implementation=implementation,
            descriptor=str(descriptor),
            settings=dict(settings),
            roles=dict(roles),
        )

    def down(self) -> list[str]:
        """End every process of the cluster, remove its files, and return the ended processes. Idempotent."""
        ended_processes = owner_watch.take_down(self._state, self.name, self.uid)
        reap_children()
        return ended_processes

    # -- details -------------------------------------------------------------------------------------------------

    def _running_pids(self, *components: str) -> dict[str, int]:
        """Map all running components to their pids. Raises UsageError if one of `components` is not running."""
        pids = self.monitor.pids()
        for component in components:
            if component not in pids:
                hint = f"start what has ended: grove-conformance cluster start {self.name}"
                if component not in (names := self.monitor.components()):
                    hint = suggestion(component, names)
                raise UsageError(f"no component {component!r} runs", where=f"cluster {self.name}", hint=hint)
        return pids

    def _start(
        self, settings: ClusterSettings, enabled_features: Features, assets: Assets, report: ProgressReporter
    ) -> None:
        report(f"cluster {self.name}", "starting the control plane")
        self._components.spawn(
            owner_watch.command(self._state.root, self.name, self.uid), self.directory / "owner-watch.log"
        )
        self.record = self._state.update(self.record, ports=Ports(report=report).claim(self.directory))
        self._write_configuration(settings, enabled_features, assets)
        try:
            self._components.kwokctl(
                assets,
                self.kubectl,
                *("create", "cluster"),
                *("--config", str(self.directory / "kwokctl.yaml")),
                *("--kubeconfig", str(self._components.home / "kubeconfig")),
            )
            self._start_startup_order()
            self._wait_until_healthy(assets, report)
        except HarnessError as error:
            clash = self.monitor.port_clash()
            if clash and not settings.apiserver_port:
                processes.end_marked(self._components.belongs_to_cluster)
                # The claim of this block is kept until `down`, so that the next attempt gets another block.
                shutil.rmtree(
                    self._components.home, ignore_errors=True
                )  # FC-027: otherwise the old configuration is used again
                raise _PortClash(clash, where=f"cluster {self.name}") from error
            if settings.features and (mistake := self._feature_mistake()) is not None:
                raise mistake from error
            raise
        served_version = self.monitor.version()
        check_minor(served_version, self.record.versions[KUBERNETES])
        self.record = self._state.update(self.record, served=served_version)
        kubeconfigs.write_administrator_kubeconfig(self)
        self.record = self._state.update(self.record, phase="ready")

    def _own_assets(self, report: ProgressReporter) -> Assets:
        return resolve_all(report, self.record.versions[KUBERNETES])

    def _start_dead_components(self, assets: Assets, report: ProgressReporter) -> None:
        alive, kwok = self.monitor.pids(), COMPONENTS[Port.KWOK]
        if COMPONENTS[Port.ETCD] not in alive:
            etcd_data.finish_replacement(self.workspace / etcd_data.DATA)
        self._start_processes(assets)
        if kubelet.COMPONENT not in alive:
            self._start_startup_order()
        self._wait_until_healthy(assets, report)
        if kwok not in alive:
            # KWOK simulates no node until the lease of its predecessor has expired, after up to 200 s (FC-081).
            self.kill(kwok)
            asyncio.run(self._release_nodes())
            self._start_processes(assets)
            self._wait_until_healthy(assets, report)
        if self.record.addons:
            asyncio.run(self._wait_for_metrics())

    def _start_processes(self, assets: Assets) -> None:
        self._components.remove_dead_pid_files()
        self._components.kwokctl(assets, self.kubectl, "start", "cluster")

    async def _release_nodes(self) -> None:
        """Delete the leases of all nodes, so that another KWOK can simulate the nodes immediately."""
        async with Client.from_kubeconfig(self.kubeconfig, user_agent="grove-conformance") as client:
            await client.request("DELETE", LEASES.path("kube-node-lease"))

    def _start_startup_order(self) -> None:
        has_metrics = self.record.addons
        ports = (self.ports[Port.METRICS], self.ports[Port.GPU_METRICS]) if has_metrics else (0, 0)
        objects = self.directory / NAMESPACE_OBJECTS_FILE
        self._components.start_startup_order(self.server, ports, objects if objects.exists() else None)

    async def _wait_for_metrics(self) -> None:
        from conformance.cluster.addons import metrics

        async with Client.from_kubeconfig(self.kubeconfig, user_agent="grove-conformance") as client:
            await metrics.wait_until_served(client)

    async def _install_addons(self) -> None:
        from conformance.cluster.addons import metrics  # slow to import, rarely needed

        async with Client.from_kubeconfig(self.kubeconfig, user_agent="grove-conformance") as client:
            for storage_class in volumes.storage_classes():
                await client.create(volumes.STORAGE_CLASSES, storage_class)
            await metrics.register(client, self.ports[Port.METRICS])

    def _wait_until_healthy(self, assets: Assets, report: ProgressReporter) -> None:
        report(f"cluster {self.name}", "waiting until every component is healthy")
        self.monitor.wait_until_healthy(lambda: self._start_processes(assets))

    def _check_features(self, settings: ClusterSettings, enabled_features: Features, report: ProgressReporter) -> None:
        """Raise UsageError unless the cluster has its features."""
        minor = minor_of(self.record.versions[KUBERNETES])
        expected = preflight.ExpectedFeatures.of(enabled_features, minor, settings.scheduler)
        if not expected.version:
            return
        report(f"cluster {self.name}", "proving that it has the Workload API")

        async def check() -> None:
            async with Client.from_kubeconfig(self.kubeconfig, user_agent="grove-conformance") as client:
                await preflight.check(client, expected, scheduler=settings.scheduler_name, last_error=self._last_error)

        asyncio.run(check())

    def _feature_mistake(self) -> UsageError | None:
        """Return the mistake in the features that made a component exit."""
        for component in features.COMPONENTS:
            if self.monitor.process(component) is None and (log := self.monitor.log(component)).exists():
                mistake = features.explanation(component, log.read_text(errors="replace"))
                if mistake is not None:
                    return mistake
        return None

    def _last_error(self, component: str) -> str:
        """Return a component's last error about an API that it cannot list; empty if there is none."""
        complaints = _CANNOT_LIST.findall(self.monitor.log(component).read_text(errors="replace"))
        return str(complaints[-1]) if complaints else ""

    def _write_configuration(self, settings: ClusterSettings, enabled_features: Features, assets: Assets) -> None:
        memory = psutil.virtual_memory().total >> 30
        documents = kwokctl_configuration(
            settings, enabled_features, assets, self.ports, self.record.versions, self.directory, memory
        )
        (self.directory / "kwokctl.yaml").write_text(yaml.safe_dump_all(documents))
        for file_name, document in extra_files(settings).items():
            (self.directory / file_name).write_text(yaml.safe_dump(document))
        self.kubectl.parent.mkdir(mode=0o700, exist_ok=True)
        self.kubectl.unlink(missing_ok=True)
        self.kubectl.symlink_to(assets.kubectl)


class _PortClash(HarnessError):
    """Another process took a port between the check of the port and the start of a component. The start is repeated
    with another block."""


def _record(name: str, settings: ClusterSettings, owner: bool) -> ClusterRecord:
    me = Owner.this_process()
    return ClusterRecord(
        name=name,
        uid=secrets.token_hex(8),
        creator=me,
        owner=me if owner else None,
        scheduler=settings.scheduler,
        scheduler_name=settings.scheduler_name,
        apiserver_port=settings.apiserver_port,
        versions=versions(settings.kubernetes),
        features=settings.features.options(),
        addons=settings.addons,
        policies=list(settings.policies.words),
    )


def list_clusters(state: StateRoot | None = None) -> list[Cluster]:
    """Return every cluster of this checkout with a readable record, sorted by name."""
    state = state or StateRoot()
    records = (state.read(name) for name in state.names())
    return [Cluster(state, record) for record in records if record is not None]


def find(name: str, state: StateRoot | None = None) -> Cluster:
    """Return the cluster `name`. Raises UsageError if there is none."""
    state = state or StateRoot()
    record = state.read(name)
    if record is None:
        names = state.names()
        hint = suggestion(name, names) if names else "there are none; start one: grove-conformance cluster up NAME"
        raise UsageError(f"unknown cluster {name!r}", where=str(state.clusters), hint=hint)
    return Cluster(state, record)
