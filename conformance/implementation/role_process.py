"""The process of one role: launch it, wait until it is ready, end it, notice its end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.errors import HarnessError
from conformance.implementation import placeholders
from conformance.implementation.certificates import write_private
from conformance.implementation.descriptor import Descriptor, Process, Role
from conformance.implementation.process import Ended, NotReady, ProcessGroup
from conformance.implementation.program import find_program
from conformance.implementation.values import Values

FOREIGN = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE")
"""Variables that would direct a client to another cluster."""


@dataclass(frozen=True)
class Failure:
    """A process that ended although the driver did not end it: a finding about the implementation."""

    role: Role
    implementation: str
    ended: Ended
    tail: str

    def __str__(self) -> str:
        return f"{self.implementation}: the {self.role} {self.ended}; {self.tail}"


class NotStarted(HarnessError):
    """A process could not be started or did not become ready. The suite decides by `role` whose fault that is."""

    def __init__(self, role: Role, implementation: str, why: str) -> None:
        self.role, self.implementation = role, implementation
        super().__init__(f"{implementation}: the {role} {why}")


class RoleProcess:
    """The process of a role. `name` is the name of its folder, its log and its ports; `descriptor` may be replaced
    while it does not run. Failures are added to `failures`."""

    def __init__(self, role: Role, name: str, descriptor: Descriptor, values: Values, failures: list[Failure]) -> None:
        self.role, self.name, self.descriptor = role, name, descriptor
        self.group: ProcessGroup | None = None
        """Its processes; None if it was never started or was ended."""
        self._values, self._failures = values, failures

    @property
    def alive(self) -> bool:
        """Return whether it runs."""
        return self.group is not None and self.group.ended is None

    @property
    def pid(self) -> int | None:
        """Return its process id; None if it does not run."""
        return self.group.pid if self.group is not None and self.group.ended is None else None

    def launch(self) -> None:
        """Start it without waiting until it is ready. Raises NotStarted."""
        self.notice()
        directory = self._values.directory(self.name)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, template in self._process.files.items():
            write_private(directory / name, self._fill(template).encode())
        argv = list(self._argv())
        find_program(argv[0], self.descriptor.document.where("processes", self.role, "argv", 0))
        inherited = os.environ | dict(self._values.cluster.environment)
        environment = {name: value for name, value in inherited.items() if name not in FOREIGN}
        environment |= {name: self._fill(value) for name, value in self._process.env.items()}
        log = self._values.log(self.name)
        try:
            self.group = ProcessGroup(argv, environment=environment, directory=directory, log=log)
        except OSError as error:
            raise self._not_started(f"cannot be started: {argv[0]}: {error.strerror}") from error

    def wait_ready(self) -> None:
        """Wait until a launched process is ready. Raises NotStarted."""
        assert self.group is not None
        ready = self._process.ready
        page = self._fill(ready.http) if ready.http is not None else None
        try:
            self.group.wait_ready(page, ready.log, ready.within)
        except NotReady as error:
            raise self._not_started(str(error)) from error

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after the grace period."""
        self._end(kill=False)

    def kill(self) -> None:
        """Send SIGKILL to the process group."""
        self._end(kill=True)

    def notice(self) -> None:
        """Record a failure if the process has ended by itself."""
        if self.group is not None and (ended := self.group.ended) is not None:
            self._failures.append(Failure(self.role, self.descriptor.name, ended, self.group.tail()))
            self.group = None

    @property
    def _process(self) -> Process:
        return self.descriptor.processes[self.role]

    def _end(self, *, kill: bool) -> None:
        self.notice()
        if self.group is not None:
            self.group.kill() if kill else self.group.stop(self._process.stop.grace)
            self.group = None

    def _argv(self) -> Iterator[str]:
        for item in self._process.argv:
            if isinstance(item, str):
                yield self._fill(item)
            elif all(self._values.value(self.name, self.descriptor, n) for t in item for n in placeholders.used(t)):
                yield from (self._fill(text) for text in item)

    def _fill(self, text: str) -> str:
        return self._values.fill(self.name, self.descriptor, text)

    def _not_started(self, why: str) -> NotStarted:
        return NotStarted(self.role, self.descriptor.name, why)


def start_all(processes: Iterable[RoleProcess]) -> None:
    """Start the processes that do not run, and return when they are ready. Raises NotStarted with the end of the log,
    after ending what this call has started."""
    started: list[RoleProcess] = []
    try:
        for process in processes:
            if not process.alive:
                started.append(process)
                process.launch()
        for process in started:
            process.wait_ready()
    except BaseException:
        for process in started:
            process.kill()
        raise
