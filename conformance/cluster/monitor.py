"""The running components of a control plane, and their health."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
from tenacity import RetryError, Retrying, retry_if_result, wait_fixed

from conformance.cluster import pace
from conformance.cluster.components import Components, log_tail
from conformance.cluster.facts import ClusterProperties
from conformance.cluster.health import COMPONENTS, Health
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.cluster.ports import Port

READY_SECONDS = 120.0
"""Seconds within which a control plane must be healthy. It normally takes about 4, and longer on a busy machine. The
limit is the same as kwokctl's (FC-023). A component that dies is reported immediately, so the limit matters only for a
component that hangs."""
STOPPED = "stopped"
"""The error message about a cluster without a running component, for example after a reboot."""


class Monitor:
    """Observes the components of the cluster that `facts` describe."""

    def __init__(self, facts: ClusterProperties, components: Components) -> None:
        self._facts, self._components = facts, components

    def pids(self) -> dict[str, int]:
        """Map the running components to their pids: `etcd`, `kube-apiserver`, `kube-controller-manager` and so on."""
        return self._components.alive()

    def process(self, component: str) -> psutil.Process | None:
        """Return the process of a component, if it is running."""
        return self._components.process(component)

    def ports(self) -> list[Port]:
        """Return the components of the control plane, by their ports."""
        return [port for port in COMPONENTS if port is not Port.SCHEDULER or self._facts.record.scheduler]

    def components(self) -> list[str]:
        """Return the components that should run."""
        return [*(COMPONENTS[port] for port in self.ports()), kubelet.COMPONENT]

    def missing(self) -> list[str]:
        """Return the components that should run but do not."""
        alive = self.pids()
        return [name for name in self.components() if name not in alive]

    def log(self, component: str) -> Path:
        """Return the log of a component. kwokctl truncates it at each start of the component (FC-027)."""
        return self._components.log(component)

    def health(self) -> Health:
        """Return a client for the components' health endpoints, which the caller must close."""
        return Health(self._facts.ports, self._components.workspace / "pki")

    def complaint(self) -> str:
        """Return the current error message about the control plane; empty if it is healthy, STOPPED if no component is
        running."""
        if missing := self.missing():
            return STOPPED if len(missing) == len(self.components()) else f"{', '.join(missing)}: does not run"
        try:
            with closing(self.health()) as health:
                return health.complaint(self.ports())
        except OSError as error:
            return str(error)

    def version(self) -> str:
        """Return the version of Kubernetes that the API server reports, such as `1.36.3`. Raises HarnessError if the
        API server does not report it."""
        try:
            with closing(self.health()) as health:
                return health.version()
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            raise self._components.failure(f"the API server does not say its version: {error}") from error

    def healthy(self) -> bool:
        """Return whether every component is healthy now."""
        return not self.complaint()

    def wait_until_healthy(self, revive: Callable[[], None]) -> None:
        """Wait until every component is healthy. `revive` starts dead components; it is called once the API server is
        healthy if a component has given up waiting for it. Raises HarnessError if a component dies, or after
        READY_SECONDS seconds."""
        health, ports = self.health(), self.ports()
        last_complaint = ""

        def is_healthy() -> bool:
            nonlocal last_complaint
            self._components.require_alive()
            if self._components.find_given_up() and not health.find_problem(Port.APISERVER):
                revive()
            try:
                last_complaint = health.complaint(ports)
            except OSError as error:
                last_complaint = str(error)
            return not last_complaint

        wait: Callable[[Callable[[], bool]], bool] = Retrying(
            retry=retry_if_result(lambda healthy: not healthy),
            wait=wait_fixed(0.05),
            stop=pace.stop_after(READY_SECONDS),
        )
        try:
            with closing(health):
                wait(is_healthy)
        except RetryError as error:
            raise self._components.failure(f"not healthy after {READY_SECONDS:g} s: {last_complaint}") from error

    def port_clash(self) -> str:
        """Return an error message about the component whose port was in use; empty if there is none."""
        for port in self.ports():
            log = self.log(COMPONENTS[port])
            if log.exists() and "address already in use" in log_tail(log, 4000):
                return f"a port of {COMPONENTS[port]} was taken by another process"
        return ""
