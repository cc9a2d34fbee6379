"""The processes that play one role. They start in order, each one when the processes before it are ready, and end in
the opposite order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Protocol

from conformance.implementation.commanded import CommandedRole
from conformance.implementation.deployed import DeployedRole
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.role_process import ProcessFailure, RoleProcess
from conformance.implementation.values import Values


class RoleRunner(Protocol):
    """Plays a role: processes of the suite, a Deployment in the cluster, or a program that the user's commands
    start."""

    role: Role
    name: str
    descriptor: Descriptor

    @property
    def is_alive(self) -> bool:
        """Return whether everything that plays the role is running."""

    @property
    def pids(self) -> dict[str, int]:
        """Return the known process ids, by the names of the processes."""

    @property
    def logs(self) -> list[str]:
        """Return the names of the role's logs."""

    def assign(self, descriptor: Descriptor) -> None:
        """Assign another descriptor to the role."""

    def stop(self) -> None:
        """Stop the role in the way that the platform does."""

    def kill(self) -> None:
        """End the role immediately."""

    def close(self) -> None:
        """Leave the role as it was found."""

    def detach(self) -> None:
        """Let the role outlive this process."""

    def record_failures(self) -> None:
        """Record a failure for everything that has ended by itself."""

    def last_log_lines(self, lines: int) -> str:
        """Return the end of the role's log as one line of text."""


class ProcessRunner:
    """The processes of a role. `name` is the name of the role's ports and the first part of its processes' names:
    `operator-2` for a second operator."""

    def __init__(
        self, role: Role, name: str, descriptor: Descriptor, values: Values, failures: list[ProcessFailure]
    ) -> None:
        self.role, self.name = role, name
        self._values, self._failures = values, failures
        self.assign(descriptor)

    def assign(self, descriptor: Descriptor) -> None:
        """Assign another descriptor to the role. May be called only while nothing is running."""
        self.descriptor = descriptor
        self.processes = [
            RoleProcess(self.role, self.name, number, descriptor, self._values, self._failures)
            for number in range(len(descriptor.processes[self.role]))
        ]

    @property
    def is_alive(self) -> bool:
        """Return whether all processes of the role are running."""
        return all(process.is_alive for process in self.processes)

    @property
    def pids(self) -> dict[str, int]:
        """Return the ids of the running processes, by the names of the processes."""
        return {str(process.name): pid for process in self.processes if (pid := process.pid) is not None}

    @property
    def logs(self) -> list[str]:
        """Return the names of the logs of the processes."""
        return [process.name for process in self.processes]

    def last_log_lines(self, lines: int) -> str:
        """Return the last lines of the running processes' logs, as one line of text."""
        return "; ".join(log_lines for process in self.processes if (log_lines := process.last_log_lines(lines)))

    def stop(self) -> None:
        """Stop the processes, the last one first."""
        for process in reversed(self.processes):
            process.stop()

    close = stop

    def kill(self) -> None:
        """Send SIGKILL to every process."""
        for process in reversed(self.processes):
            process.kill()

    def detach(self) -> None:
        """Let the processes outlive this process."""
        for process in self.processes:
            if process.group is not None:
                process.group.detach()

    def record_failures(self) -> None:
        """Record a failure for each process that has ended by itself."""
        for process in self.processes:
            process.record_failures()


def start_all(runners: Iterable[RoleRunner]) -> None:
    """Start everything that is not running. Deployments and roles with commands are started first. Then the first
    processes of all roles are started at the same time; when they are ready, the second processes; and so on.

    Raises NotStarted with the end of the log, after killing the processes that this call has started.
    """
    all_runners = list(runners)
    for runner in all_runners:
        if isinstance(runner, DeployedRole | CommandedRole) and not runner.is_alive:
            runner.start()
    _start_processes([runner for runner in all_runners if isinstance(runner, ProcessRunner)])


def _start_processes(runners: list[ProcessRunner]) -> None:
    started_processes: list[RoleProcess] = []
    try:
        for stage in zip_longest(*(runner.processes for runner in runners)):
            launched_processes = [process for process in stage if process is not None and not process.is_alive]
            for process in launched_processes:
                started_processes.append(process)
                process.launch()
            for process in launched_processes:
                process.wait_ready(started_processes)
    except BaseException:
        for process in reversed(started_processes):
            process.kill()
        raise
