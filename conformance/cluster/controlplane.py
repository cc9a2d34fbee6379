"""A cluster: etcd, API server, controller manager, scheduler and KWOK as plain processes on loopback.

Started through kwokctl's binary runtime; ended by ourselves, by the marker that every process of the cluster carries
(kwokctl's own way trusts pid files, which a reused pid or a zombie makes wrong: FC-026).
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import psutil
import yaml
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_fixed,
)

from conformance import disk
from conformance.cluster import owner_watch, processes
from conformance.cluster.assets import Assets, programs, resolve_all
from conformance.cluster.components import Components, last_words, reap
from conformance.cluster.health import COMPONENTS, Health
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.cluster.ports import FREE_PORTS, Port, Ports, is_free
from conformance.cluster.progress import Report, silent
from conformance.cluster.settings import ClusterSettings, extra_files, kwokctl_configuration
from conformance.cluster.state import Owner, Record, State
from conformance.errors import HarnessError, UsageError

__all__ = ["Cluster", "ClusterSettings", "find", "list_clusters"]

READY_WITHIN = 60.0
"""Seconds that a control plane may take to become well; it takes about 4."""

LEAST = 64 << 20
"""Bytes that etcd allocates at once: with less free, it is the disk that a start fails of."""


class Cluster:
    """A cluster that is up, or was. Made by `Cluster.up`, `find` or `list_clusters`."""

    def __init__(self, state: State, record: Record) -> None:
        self._state, self.record = state, record
        self._components = Components(record.name, state.directory(record.name), self.marker())

    @classmethod
    def up(
        cls,
        name: str,
        *,
        settings: ClusterSettings | None = None,
        owner: bool = True,
        report: Report = silent,
        state: State | None = None,
    ) -> Cluster:
        """Brings a new cluster up and returns when it is well, in about 4 s once the programs are in the cache.

        `owner`: whether it belongs to this process, so that prune removes it when this process is gone. Raises
        UsageError (name or port taken, state folder full or read-only) or HarnessError (it did not come up). Then
        nothing of it is left.
        """
        settings, state = settings or ClusterSettings(), state or State()
        assets = resolve_all(report)
        me = Owner.this_process()
        record = Record(
            name=name,
            uid=secrets.token_hex(8),
            creator=me,
            owner=me if owner else None,
            scheduler=settings.scheduler,
            apiserver_port=settings.apiserver_port,
            versions={program.group.name: program.group.version for program in programs()},
        )
        if settings.apiserver_port and not is_free(settings.apiserver_port):
            raise UsageError(
                f"port {settings.apiserver_port} of 127.0.0.1 is taken",
                where="--apiserver-port",
                hint="choose another, or leave it out",
            )
        state.require()
        state.add(record, report)
        cluster = cls(state, record)
        try:
            for attempt in Retrying(
                retry=retry_if_exception_type(_PortClash), stop=stop_after_attempt(3), reraise=True
            ):
                with attempt, state.errors():
                    cluster._start(settings, assets, report)
        except BaseException as error:  # Ctrl-C included
            try:
                if isinstance(error, HarnessError):
                    state.require(LEAST)  # on a full disk components die with words of their own
            finally:
                cluster.down()
            raise
        return cluster

    @property
    def name(self) -> str:
        """Name of the cluster, unique within the checkout."""
        return self.record.name

    @property
    def uid(self) -> str:
        """Random identity: no other cluster ever had it."""
        return self.record.uid

    @property
    def directory(self) -> Path:
        """The cluster's own folder (0700)."""
        return self._state.directory(self.name)

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig (0600) with the certificates in it."""
        return self.directory / "kubeconfig"

    @property
    def kubectl(self) -> Path:
        """A kubectl of the cluster's version."""
        return self.directory / "tools" / "kubectl"

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.ports[Port.APISERVER]}"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, JSON lines; absent if the settings turned it off."""
        return self._components.workspace / "logs" / "audit.log"

    @property
    def ports(self) -> dict[Port, int]:
        """Ports of the components on 127.0.0.1."""
        ports = {port: self.record.ports + port for port in Port}
        if self.record.apiserver_port:
            ports[Port.APISERVER] = self.record.apiserver_port
        return ports

    def port(self, index: int) -> int:
        """The `index`-th (0 to 9) port of 127.0.0.1 that is kept free for drivers of implementations."""
        if not 0 <= index < FREE_PORTS:
            raise ValueError(f"a cluster keeps {FREE_PORTS} ports for drivers, there is no number {index}")
        return self.record.ports + Port.FREE + index

    def environment(self) -> dict[str, str]:
        """The whole environment for a process that belongs to this cluster, with its marker: it ends with it."""
        return os.environ | self.marker()

    def marker(self) -> dict[str, str]:
        """The two variables by which a process of this cluster is known."""
        return {processes.CLUSTER: self.uid, processes.STATE_ROOT: str(self._state.root)}

    def component_pids(self) -> dict[str, int]:
        """Component → pid, of those that live: `etcd`, `kube-apiserver`, `kube-controller-manager` and so on."""
        return self._components.alive()

    def process(self, component: str) -> psutil.Process | None:
        """The process of a component while it lives."""
        return self._components.process(component)

    def components(self) -> list[Port]:
        """The components of the control plane, by their ports."""
        return [port for port in COMPONENTS if port is not Port.SCHEDULER or self.record.scheduler]

    def health(self) -> Health:
        """Asks the components themselves."""
        return Health(self.ports, self._components.workspace / "pki")

    def missing_components(self) -> list[str]:
        """Components that should run and do not."""
        alive = self.component_pids()
        wanted = [*(COMPONENTS[port] for port in self.components()), kubelet.COMPONENT]
        return [name for name in wanted if name not in alive]

    def log(self, component: str) -> Path:
        """The log of a component; kwokctl empties it at each start of the component (FC-027)."""
        return self._components.log(component)

    def complaint(self) -> str:
        """What is not well with the control plane now; empty if all is."""
        try:
            with closing(self.health()) as health:
                return health.complaint(self.components()) or self._startup_complaint()
        except OSError as error:
            return str(error)

    def healthy(self) -> bool:
        """Whether every component is well now."""
        return not self.complaint()

    def kill(self, component: str) -> None:
        """SIGKILL to one component; returns when it is gone. UsageError if it does not run."""
        pid = self.component_pids().get(component)
        if pid is None:
            raise UsageError(
                f"no component {component!r} runs",
                where=f"cluster {self.name}",
                hint="running: " + ", ".join(sorted(self.component_pids())),
            )
        processes.end_one(psutil.Process(pid))

    def start(self, report: Report = silent) -> None:
        """Starts the components that are dead, and waits until all is well; data are kept (FC-025)."""
        alive = self.component_pids()
        self._components.forget_dead()
        self._components.kwokctl(resolve_all(report), self.kubectl, "start", "cluster")
        if kubelet.COMPONENT not in alive:
            self._components.start_startup_order(self.server)
        self._wait_until_well(report)

    def restart(self, report: Report = silent) -> None:
        """Kills every component and starts it again, with the data kept."""
        for component in self.component_pids():
            self.kill(component)
        self.start(report)

    def learn_new_kinds(self) -> None:
        """Has kube-controller-manager know the kinds that were installed after its start: its garbage collector looks
        for new ones only every 30 s, and until then orphans of new kinds stay. Takes half a second."""
        self.kill(COMPONENTS[Port.CONTROLLER_MANAGER])
        self.start()

    def release(self, owner: Owner | None = None) -> Cluster:
        """Makes the cluster outlive this process: from now on only `down` ends it, or the end of its new owner."""
        self.record = self._state.update(self.record, owner=owner)
        return self

    def plays(self, implementation: str, roles: Mapping[str, Owner]) -> None:
        """Keeps what was started on the cluster, for `list`."""
        self.record = self._state.update(self.record, implementation=implementation, roles=dict(roles))

    def down(self) -> list[str]:
        """Ends every process of the cluster and removes all of it; returns what was ended. Safe to call again."""
        ended = owner_watch.take_down(self._state, self.name, self.uid)
        reap()
        return ended

    # -- within --------------------------------------------------------------------------------------------------

    def _start(self, settings: ClusterSettings, assets: Assets, report: Report) -> None:
        report(f"cluster {self.name}", "starting the control plane")
        self._components.spawn(
            owner_watch.command(self._state.root, self.name, self.uid), self.directory / "owner-watch.log"
        )
        self.record = self._state.update(self.record, ports=Ports(report=report).claim(self.directory))
        self._write_configuration(settings, assets)
        try:
            self._components.kwokctl(
                assets,
                self.kubectl,
                *("create", "cluster"),
                *("--config", str(self.directory / "kwokctl.yaml")),
                *("--kubeconfig", str(self._components.home / "kubeconfig")),
            )
            self._components.start_startup_order(self.server)
            self._wait_until_well(report)
        except HarnessError as error:
            clash = self._port_clash()
            if clash and not settings.apiserver_port:
                processes.end(self._components.is_mine)
                # The claim of this block stays until `down`, so that the next try gets another one.
                shutil.rmtree(
                    self._components.home, ignore_errors=True
                )  # FC-027: else its old configuration is used again
                raise _PortClash(clash, where=f"cluster {self.name}") from error
            raise
        self._write_kubeconfig()
        self.record = self._state.update(self.record, phase="ready")

    def _startup_complaint(self) -> str:
        return "" if kubelet.COMPONENT in self.component_pids() else f"{kubelet.COMPONENT}: does not run"

    def _write_configuration(self, settings: ClusterSettings, assets: Assets) -> None:
        documents = kwokctl_configuration(settings, assets, self.ports, self.record.versions, self.directory)
        (self.directory / "kwokctl.yaml").write_text(yaml.safe_dump_all(documents))
        for file_name, document in extra_files(settings).items():
            (self.directory / file_name).write_text(yaml.safe_dump(document))
        self.kubectl.parent.mkdir(mode=0o700, exist_ok=True)
        self.kubectl.unlink(missing_ok=True)
        self.kubectl.symlink_to(assets.kubectl)

    def _wait_until_well(self, report: Report) -> None:
        report(f"cluster {self.name}", "waiting until every component is well")
        health, components = self.health(), self.components()

        last = ""

        def well() -> bool:
            nonlocal last
            self._components.require_alive()
            try:
                last = health.complaint(components)
            except OSError as error:
                last = str(error)
            return not last

        wait = Retrying(
            retry=retry_if_result(lambda done: not done), wait=wait_fixed(0.05), stop=stop_after_delay(READY_WITHIN)
        )
        try:
            with closing(health):
                wait(well)
        except RetryError as error:
            raise self._components.failure(f"not well after {READY_WITHIN:g} s: {last}") from error

    def _port_clash(self) -> str:
        for port in self.components():
            log = self.log(COMPONENTS[port])
            if log.exists() and "address already in use" in last_words(log, 4000):
                return f"a port of {COMPONENTS[port]} was taken by somebody else"
        return ""

    def _write_kubeconfig(self) -> None:
        def embedded(file_name: str) -> str:
            return base64.b64encode((self._components.workspace / "pki" / file_name).read_bytes()).decode()

        name = f"grove-conformance-{self.name}"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {"name": name, "cluster": {"server": self.server, "certificate-authority-data": embedded("ca.crt")}}
            ],
            "users": [
                {
                    "name": name,
                    "user": {
                        "client-certificate-data": embedded("admin.crt"),
                        "client-key-data": embedded("admin.key"),
                    },
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        disk.write(self.kubeconfig, yaml.safe_dump(document))


class _PortClash(HarnessError):
    """Somebody took a port between our test of it and the start of a component: try another block."""


def list_clusters(state: State | None = None) -> list[Cluster]:
    """Every cluster of this checkout whose record can be read, by name."""
    state = state or State()
    records = (state.read(name) for name in state.names())
    return [Cluster(state, record) for record in records if record is not None]


def find(name: str, state: State | None = None) -> Cluster:
    """The cluster `name`; UsageError if there is none."""
    state = state or State()
    record = state.read(name)
    if record is None:
        known = ", ".join(state.names()) or "none"
        raise UsageError(f"there is no cluster named {name!r}", where=str(state.clusters), hint=f"there are: {known}")
    return Cluster(state, record)
