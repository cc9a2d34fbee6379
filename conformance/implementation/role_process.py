"""One process of a role: it is launched, becomes ready, and is ended. If it ends by itself, a failure is recorded."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.errors import HarnessError, SupervisorLost
from conformance.implementation import inherited, placeholders
from conformance.implementation.certificates import write_private
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.fields import Process
from conformance.implementation.output import TAIL_PREFIX
from conformance.implementation.process import NotReady, ProcessExit, ProcessGroup, ReadinessTimeout
from conformance.implementation.program import find_program, resolve_path
from conformance.implementation.values import ProcessLocation, Values


def process_title(role: Role, process: str) -> str:
    """Return the name of a process for a message: just the role, if this is the only process of the role."""
    return f"process {process} of the {role}" if process else str(role)


@dataclass(frozen=True)
class ProcessFailure:
    """A process that ended although the driver did not end it. This is a finding about the implementation."""

    role: Role
    process: str
    """The name of the process within the role; empty for a role's only process."""
    implementation: str
    end: ProcessExit
    log_tail: str

    def require_supervised(self) -> None:
        """Raise SupervisorLost if this is not a finding because the process ended with its supervisor."""
        if self.end.unsupervised:
            raise SupervisorLost(str(self))

    def __str__(self) -> str:
        return f"{self.implementation}: the {process_title(self.role, self.process)} {self.end}; {self.log_tail}"


def require_not_killed(failures: Iterable[object], begin: float) -> None:
    """Raise HarnessError if the only process so far that was ended by SIGKILL has ended since `begin`: the kernel or
    another program sends this signal, no program ends itself with it by mistake. From the second time on, the
    implementation is at fault, so that it cannot prevent a verdict this way."""
    killed = [death for death in failures if isinstance(death, ProcessFailure) and death.end.code == -signal.SIGKILL]
    if len(killed) == 1 and killed[0].end.at >= begin:
        raise HarnessError(str(killed[0]), hint="run it again; has the machine run out of memory?")


class NotStarted(HarnessError):
    """A process could not be started or did not become ready. The suite decides by `role` who is at fault.

    `timed_out`: the process runs but was not ready within the time that the descriptor allows. `code` is the exit code
    of a process that ended before it was ready.
    """

    def __init__(
        self,
        role: Role,
        process: str,
        implementation: str,
        reason: str,
        *,
        timed_out: bool = False,
        code: int | None = None,
    ) -> None:
        self.role, self.timed_out, self.code = role, timed_out, code
        super().__init__(f"{implementation}: the {process_title(role, process)} {reason}")


class RoleProcess:
    """A process of a role. `player` is the name of the role's ports. The process's folder and log are named after
    `player` and the name of the process. Failures are added to `failures`."""

    def __init__(
        self,
        role: Role,
        player: str,
        number: int,
        descriptor: Descriptor,
        values: Values,
        failures: list[ProcessFailure],
    ) -> None:
        """`number` is the position of the process among the processes of the role."""
        self.role = role
        self.group: ProcessGroup | None = None
        """The running program; None if it was never started or has been ended."""
        self._process: Process = descriptor.processes[role][number]
        self._ready = False
        self.page = ""
        """The URL that shows the readiness of the running program; empty if there is none."""
        self.name = f"{player}-{self._process.name}" if self._process.name else player
        self._location = ProcessLocation(player, self.name, role)
        self._field = ("processes", role, number) if self._process.name else ("processes", role)
        self._descriptor, self._values, self._failures = descriptor, values, failures

    @property
    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return self.group is not None and self.group.end is None

    @property
    def pid(self) -> int | None:
        """Return the process id; None if the process is not running."""
        return self.group.pid if self.group is not None and self.group.end is None else None

    def find_suspension(self) -> str:
        """Return what keeps the process or one of its descendants from running; empty if nothing does. Any thread may
        call this."""
        group = self.group
        return group.find_suspension() if group is not None else ""

    def launch(self) -> None:
        """Start the process without waiting until it is ready. Raises NotStarted if the process cannot be started, and
        SupervisorLost if its supervisor was killed."""
        self.record_failures()
        self._ready = False
        directory = self._values.directory(self.name)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, template in self._process.files.items():
                write_private(directory / name, self._fill(template).encode())
        except OSError as error:  # a process may have changed its own folder
            raise self._not_started(f"cannot be started: {error.filename}: {error.strerror}") from error
        program, *arguments = self._argv()
        argv = [resolve_path(program, self._descriptor.folder), *arguments]
        find_program(argv[0], self._descriptor.document.location(*self._field, "argv", 0))
        log = self._values.log(self.name)
        try:
            self.group = ProcessGroup(argv, environment=self._environment(), directory=directory, log=log)
        except OSError as error:
            raise self._not_started(f"cannot be started: {error.filename or argv[0]}: {error.strerror}") from error

    def wait_ready(self, siblings: list[RoleProcess]) -> None:
        """Wait until a launched process is ready. Raises NotStarted, including if one of its `siblings` ends meanwhile,
        and SupervisorLost."""
        assert self.group is not None
        ready = self._process.ready
        page = self._fill(ready.http) if ready.http is not None else None

        def check_siblings() -> None:
            for sibling in siblings:
                sibling.require_running(self)

        try:
            self.group.wait_ready(page, ready.log, ready.within, check_siblings)
        except NotReady as error:
            timed_out = isinstance(error, ReadinessTimeout)
            process_exit = self.group.end
            if process_exit is not None:
                self._failure(process_exit, self.group.log_tail()).require_supervised()
            code = process_exit.code if process_exit is not None else None
            raise self._not_started(
                str(error) + self._missing_variables(str(error)), timed_out=timed_out, code=code
            ) from error
        self._ready, self.page = True, page or ""

    def require_running(self, waiting: RoleProcess) -> None:
        """Raise NotStarted if this process ended by itself while another process was `waiting` to become ready."""
        if self is not waiting and self.group is not None and (process_exit := self.group.end) is not None:
            self._failure(process_exit, self.group.log_tail()).require_supervised()
            phase = "after it was ready, before all others were" if self._ready else "before it was ready"
            raise self._not_started(f"{process_exit} {phase}; {self.group.log_tail()}")

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after the grace period."""
        self._end_process(kill=False)

    def kill(self) -> None:
        """Send SIGKILL to the process and its descendants."""
        self._end_process(kill=True)

    def record_failures(self) -> None:
        """Record a failure if the process has ended by itself."""
        if self.group is not None and (process_exit := self.group.end) is not None:
            log_tail = self.group.log_tail()
            self._failures.append(self._failure(process_exit, log_tail + self._missing_variables(log_tail)))
            self.group = None

    def last_log_lines(self, lines: int) -> str:
        """Return the last lines of the process's log as one line of text; an empty string if the process is not
        running."""
        if self.group is None:
            return ""
        title = process_title(self.role, self._process.name)
        return f"the {title} runs, and its {TAIL_PREFIX}{self.group.last_lines(lines)}"

    def _end_process(self, *, kill: bool) -> None:
        self.record_failures()
        if self.group is not None:
            self.group.kill() if kill else self.group.stop(self._process.stop.grace)
            self.group = None

    def _failure(self, process_exit: ProcessExit, output: str) -> ProcessFailure:
        return ProcessFailure(self.role, self._process.name, self._descriptor.name, process_exit, output)

    def _environment(self) -> dict[str, str]:
        """Return the environment of the program: inherited variables, the cluster's variables, and the descriptor's
        variables. Later ones override earlier ones."""
        own_variables = {name: self._fill(value) for name, value in self._process.env.items()}
        return (
            inherited.inherited_variables(os.environ, self._process.inherit)
            | dict(self._values.cluster.environment)
            | own_variables
        )

    def _missing_variables(self, output: str) -> str:
        return inherited.missing_variables_note(os.environ, self._environment(), output)

    def _argv(self) -> Iterator[str]:
        for item in self._process.argv:
            if isinstance(item, str):
                yield self._fill(item)
            elif all(
                self._values.value(self._location, self._descriptor, n) for t in item for n in placeholders.names_in(t)
            ):
                yield from (self._fill(text) for text in item)

    def _fill(self, text: str) -> str:
        return self._values.fill(self._location, self._descriptor, text)

    def _not_started(self, reason: str, *, timed_out: bool = False, code: int | None = None) -> NotStarted:
        return NotStarted(self.role, self._process.name, self._descriptor.name, reason, timed_out=timed_out, code=code)
