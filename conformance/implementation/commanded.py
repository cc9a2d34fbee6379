"""A role of an implementation that is already running, and that commands of the user stop and start."""

from __future__ import annotations

import os
import subprocess

from conformance.errors import HarnessError
from conformance.implementation import inherited
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.output import Output
from conformance.implementation.role_process import NotStarted
from conformance.implementation.values import ProcessLocation, Values

QUOTED_LINES = 3
"""The number of lines of a command's output that a message quotes."""


class CommandedRole:
    """A role that the commands in the descriptor's `control` stop and start. The role runs at first, and is left
    running."""

    def __init__(self, role: Role, descriptor: Descriptor, values: Values) -> None:
        self.role, self.name = role, str(role)
        self._values, self._is_running = values, True
        self.assign(descriptor)

    def assign(self, descriptor: Descriptor) -> None:
        """Assign another version to the role, with the same commands but other parameters."""
        self.descriptor = descriptor
        self._control = descriptor.control[self.role]

    @property
    def is_alive(self) -> bool:
        """Return whether the role runs, according to the commands that were called."""
        return self._is_running

    @property
    def pids(self) -> dict[str, int]:
        """Return an empty mapping: the processes of the role are not known."""
        return {}

    @property
    def logs(self) -> list[str]:
        """Return the name of the log of the role's commands, if a command has been called."""
        return [self.name] if self._values.log(self.name).exists() else []

    def start(self) -> None:
        """Call the command that starts the role. Raises NotStarted if the command fails."""
        try:
            self._run_command(self._control.start)
        except HarnessError as error:
            raise NotStarted(self.role, "", self.descriptor.name, str(error)) from error
        self._is_running = True

    def stop(self) -> None:
        """Call the command that stops the role, unless the role is stopped. Raises HarnessError if the command
        fails."""
        self._stop_with(self._control.stop)

    def kill(self) -> None:
        """Call the command that kills the role, or the command that stops it if there is no such command. Raises
        HarnessError if the command fails."""
        self._stop_with(self._control.kill or self._control.stop)

    def close(self) -> None:
        """Leave the role running, as it was found."""
        if not self._is_running:
            self.start()

    def detach(self) -> None:
        """Do nothing: the role is not a child of this process."""

    def record_failures(self) -> None:
        """Do nothing: the suite has no way to detect that the role exited on its own."""

    def last_log_lines(self, lines: int) -> str:
        """Return an empty string: the log of the role is not known."""
        return ""

    def _stop_with(self, command: list[str]) -> None:
        if self._is_running:
            self._run_command(command)
            self._is_running = False

    def _run_command(self, command: list[str]) -> None:
        """Run a command to its end. If it fails, raises HarnessError with the last lines of its output."""
        location = ProcessLocation(self.role, self.role, self.role)
        arguments = [self._values.fill(location, self.descriptor, argument) for argument in command]
        log = self._values.log(self.name)
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with log.open("ab") as file:
            output = Output(log)
            environment = inherited.inherited_variables(os.environ, self._control.inherit)
            environment |= {"KUBECONFIG": str(self._values.cluster.kubeconfig)}
            try:
                completed_process = subprocess.run(
                    arguments,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    cwd=self.descriptor.folder,
                    timeout=self._control.within,
                )
            except subprocess.TimeoutExpired as error:
                raise HarnessError(f"the command {arguments[0]} takes more than {self._control.within:g} s") from error
            except OSError as error:
                raise HarnessError(f"the command {arguments[0]} cannot be called: {error.strerror}") from error
        if completed_process.returncode:
            last_lines = " | ".join(output.last_lines(QUOTED_LINES)) or "nothing"
            raise HarnessError(
                f"the command {arguments[0]} exited with code {completed_process.returncode}; it said: {last_lines}"
            )
