"""The processes that play one role: they start in order, each once those before it are ready, and end in the opposite
order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.role_process import Failure, RoleProcess
from conformance.implementation.values import Values


class Player:
    """The processes of a role. `name` is the name of the role's ports, and the beginning of the names of its processes:
    `operator-2` for a second operator."""

    def __init__(self, role: Role, name: str, descriptor: Descriptor, values: Values, failures: list[Failure]) -> None:
        self.role, self.name = role, name
        self._values, self._failures = values, failures
        self.cast(descriptor)

    def cast(self, descriptor: Descriptor) -> None:
        """Have another descriptor play the role. Call it only while nothing runs."""
        self.descriptor = descriptor
        self.processes = [
            RoleProcess(self.role, self.name, number, descriptor, self._values, self._failures)
            for number in range(len(descriptor.processes[self.role]))
        ]

    @property
    def alive(self) -> bool:
        """Return whether all of its processes run."""
        return all(process.alive for process in self.processes)

    @property
    def pids(self) -> dict[str, int]:
        """Return the process ids of the processes that run, by name."""
        return {str(process.name): pid for process in self.processes if (pid := process.pid) is not None}

    def stop(self) -> None:
        """Stop the processes, the last one first."""
        for process in reversed(self.processes):
            process.stop()

    def kill(self) -> None:
        """Send SIGKILL to every process."""
        for process in reversed(self.processes):
            process.kill()

    def detach(self) -> None:
        """Let the processes outlive this one."""
        for process in self.processes:
            if process.group is not None:
                process.group.detach()

    def notice(self) -> None:
        """Record failures of processes that have ended by themselves."""
        for process in self.processes:
            process.notice()


def start_all(players: Iterable[Player]) -> None:
    """Start the processes that do not run: the first ones of all roles at once; when these are ready, the second ones;
    and so on.

    Raises NotStarted with the end of the log, after ending what this call has started.
    """
    started: list[RoleProcess] = []
    try:
        for stage in zip_longest(*(player.processes for player in players)):
            launched = [process for process in stage if process is not None and not process.alive]
            for process in launched:
                started.append(process)
                process.launch()
            for process in launched:
                process.wait_ready(started)
    except BaseException:
        for process in reversed(started):
            process.kill()
        raise
