"""The processes of one cluster: the processes that kwokctl starts and records in pid files, and the additional
processes that the suite starts.

A pid alone is never trusted: a process without the cluster's marker in its environment does not belong to the cluster.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from conformance import regular
from conformance.cluster import processes
from conformance.cluster.assets import Assets
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.errors import HarnessError

_children: list[subprocess.Popen[bytes]] = []
"""Processes that may outlive their parent. References are kept so that the processes can be reaped."""


GAVE_UP_MESSAGE = "failed to wait for apiserver being healthy"
"""The message in the log of a component that has exited because the API server did not respond in time."""


class Components:
    """The processes of the cluster `name` below its folder. All of them have `marker` in their environment."""

    def __init__(self, name: str, directory: Path, marker: dict[str, str]) -> None:
        self._name, self._directory, self._marker = name, directory, marker
        self.home = directory / "kwok"
        """The home directory of kwokctl."""
        self.workspace = self.home / "clusters" / name
        self._verified: dict[str, tuple[psutil.Process, float]] = {}
        """Maps a component to its last process that was verified to belong to the cluster, and the start time of that
        process."""

    def recorded_pids(self) -> dict[str, int]:
        """Map all components that have been started to their pids, including dead components."""
        pids = {}
        for file in sorted((self.workspace / "pids").glob("*.pid")):
            if (pid := _pid_in(file)) is not None:
                pids[file.stem] = pid
        return pids

    def process(self, component: str) -> psutil.Process | None:
        """Return the running process of a component; None if it is dead. The environment of a process is read only
        once, because a pid together with a start time identifies a process permanently."""
        pid = _pid_in(self.workspace / "pids" / f"{component}.pid")
        start_time = processes.find_start_time(pid) if pid is not None else None
        if pid is None or start_time is None:
            return None
        verified_process = self._verified.get(component)
        if verified_process is not None and (verified_process[0].pid, verified_process[1]) == (pid, start_time):
            return verified_process[0]
        try:
            process = psutil.Process(pid)
            if not self.belongs_to_cluster(process.environ()):
                return None
        except psutil.Error:  # the process is gone, or its pid was reused
            return None
        self._verified[component] = process, start_time
        return process

    def alive(self) -> dict[str, int]:
        """Map the running components to their pids."""
        return {name: pid for name, pid in self.recorded_pids().items() if self.process(name) is not None}

    def belongs_to_cluster(self, environment: Mapping[str, str]) -> bool:
        """Return whether a process with this environment belongs to the cluster."""
        return environment.get(processes.CLUSTER) == self._marker[processes.CLUSTER]

    def remove_dead_pid_files(self) -> None:
        """Remove the pid files of dead components, because kwokctl takes a zombie, or another process with the same
        pid, for a running component (FC-026)."""
        for name in self.recorded_pids().keys() - self.alive().keys():
            (self.workspace / "pids" / f"{name}.pid").unlink(missing_ok=True)

    def require_alive(self) -> None:
        """Raise HarnessError if a component that was started is dead, because nothing restarts it. A component that has
        given up is left to the caller, who can restart it."""
        for name, pid in self.recorded_pids().items():
            if processes.find_start_time(pid) is None and not self._has_given_up(name):
                raise self.failure(f"{name} died: {log_tail(self.log(name))}")

    def find_given_up(self) -> list[str]:
        """Return the dead components that have given up waiting for the API server. kube-controller-manager gives up
        after 10 s, and on a busy machine the API server may need longer."""
        return [
            name
            for name, pid in self.recorded_pids().items()
            if processes.find_start_time(pid) is None and self._has_given_up(name)
        ]

    def _has_given_up(self, name: str) -> bool:
        return GAVE_UP_MESSAGE in self.log(name).read_text(errors="replace")

    def log(self, component: str) -> Path:
        """Return the log of a component. kwokctl truncates it at each start of the component (FC-027)."""
        return self.workspace / "logs" / f"{component}.log"

    def failure(self, problem: str) -> HarnessError:
        """Return an error about this cluster."""
        return HarnessError(problem, where=f"cluster {self._name}")

    def start_startup_order(self, server: str, metrics: tuple[int, int], objects: Path | None) -> None:
        """Start the process that simulates waiting init containers, serves metrics and those of GPUs on the ports
        `metrics` unless they are 0, and creates the `objects` of a file in each namespace. kwokctl does not start this
        process; apart from that it is a component like the others."""
        command = kubelet.command(server, self.workspace / "pki", metrics, objects)
        process = self.spawn(command, self.log(kubelet.COMPONENT))
        (self.workspace / "pids" / f"{kubelet.COMPONENT}.pid").write_text(str(process.pid))

    def spawn(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a process of the cluster that outlives this process."""
        process = self._popen(command, log, os.environ | self._marker)
        _children.append(process)
        return process

    def kwokctl(self, assets: Assets, kubectl: Path, *arguments: str) -> None:
        """Run kwokctl. Raises HarnessError if kwokctl fails, or if a component dies meanwhile."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KWOK_")}
        environment |= self._marker | {
            "KWOK_WORKDIR": str(self.home),
            # FC-004: kwokctl prefers a kubectl on PATH to the configured one.
            "PATH": f"{kubectl.parent}:{os.environ.get('PATH', os.defpath)}",
        }
        output = self._directory / "kwokctl.log"
        process = self._popen([str(assets.kwokctl), "--name", self._name, *arguments], output, environment)
        try:
            while process.poll() is None:
                self.require_alive()  # kwokctl itself would wait for two minutes (FC-023)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.1)
        except BaseException:  # including Ctrl-C
            process.kill()
            process.wait()
            raise
        if process.returncode:
            self.require_alive()  # kwokctl may have failed because a component is dead, which its message does not say
            raise self.failure(f"kwokctl {' '.join(arguments[:2])} failed: {log_tail(output)}")

    def _popen(self, command: list[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with log.open("w") as output:
            return subprocess.Popen(
                command,
                env=environment,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                umask=0o077,  # FC-022: kwokctl writes keys that everyone can read
                start_new_session=True,  # Ctrl-C is only for this process, which ends the whole cluster
            )


def _pid_in(file: Path) -> int | None:
    """Return the pid in a file; None if the file has none because the component is being restarted."""
    with suppress(OSError):
        text = regular.OpenFile(file).at(0, 32)
        return int(text) if text.isdigit() else None
    return None


def reap_children() -> None:
    """Reap the dead processes that `spawn` has started."""
    _children[:] = [child for child in _children if child.poll() is None]


def log_tail(log: Path, length: int = 400) -> str:
    """Return the last characters of a file, in one line."""
    text = log.read_text(errors="replace").strip()
    return " | ".join(line.strip() for line in text[-length:].splitlines()) or "(empty)"
