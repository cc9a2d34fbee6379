"""The processes that play one role: they start in order, each once those before it are ready, and end in the opposite
order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Protocol

from conformance.implementation.commanded import Commanded
from conformance.implementation.deployed import Deployed
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.role_process import ProcessFailure, RoleProcess
from conformance.implementation.values import Values


class RoleRunner(Protocol):
    """A player of a role: processes of the suite, a Deployment in the cluster, or a program that commands of the user
    start."""

    role: Role
    name: str
    descriptor: Descriptor

    @property
    def alive(self) -> bool:
        """Return whether all of it runs."""

    @property
    def pids(self) -> dict[str, int]:
        """Return the process ids that are known, by name."""

    @property
    def logs(self) -> list[str]:
        """Return the names of its logs."""

    def cast(self, descriptor: Descriptor) -> None:
        """Have another descriptor play the role."""

    def stop(self) -> None:
        """Stop it as the platform does."""

    def kill(self) -> None:
        """End it at once."""

    def close(self) -> None:
        """Leave it as it was found."""

    def detach(self) -> None:
        """Let it outlive this process."""

    def notice(self) -> None:
        """Record failures of what has ended by itself."""

    def last_words(self, lines: int) -> str:
        """Return how its log ends, as one line of text."""


class ProcessRunner:
    """The processes of a role. `name` is the name of the role's ports, and the beginning of the names of its processes:
    `operator-2` for a second operator."""

    def __init__(
        self, role: Role, name: str, descriptor: Descriptor, values: Values, failures: list[ProcessFailure]
    ) -> None:
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

    @property
    def logs(self) -> list[str]:
        """Return the names of the logs of its processes."""
        return [process.name for process in self.processes]

    def last_words(self, lines: int) -> str:
        """Return the last lines of the logs of those that run, as one line of text."""
        return "; ".join(words for process in self.processes if (words := process.last_words(lines)))

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
        """Let the processes outlive this one."""
        for process in self.processes:
            if process.group is not None:
                process.group.detach()

    def notice(self) -> None:
        """Record failures of processes that have ended by themselves."""
        for process in self.processes:
            process.notice()


def start_all(players: Iterable[RoleRunner]) -> None:
    """Start what does not run. Of the processes, the first ones of all roles at once; when these are ready, the second
    ones; and so on. Before them, what is no process of the suite.

    Raises NotStarted with the end of the log, after ending the processes that this call has started.
    """
    everybody = list(players)
    for player in everybody:
        if isinstance(player, Deployed | Commanded) and not player.alive:
            player.start()
    _start_processes([player for player in everybody if isinstance(player, ProcessRunner)])


def _start_processes(players: list[ProcessRunner]) -> None:
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
