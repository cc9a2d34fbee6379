"""Installs, starts, stops, kills and restarts one implementation on one cluster.

Roles that the implementation does not play are supplied by another descriptor (the reference), whose processes then use
the implementation's scheduler name.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from conformance.errors import HarnessError
from conformance.implementation.commanded import CommandedRole
from conformance.implementation.deployed import DeployedRole
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.installer import Installer
from conformance.implementation.operators import SECOND_OPERATOR, Operators
from conformance.implementation.player import ProcessRunner, RoleRunner, start_all
from conformance.implementation.release import Release
from conformance.implementation.role_process import NotStarted, ProcessFailure
from conformance.implementation.values import ClusterFacts, Values

__all__ = ["ClusterFacts", "Driver", "NotStarted", "ProcessFailure"]


class Driver:
    """The processes of one implementation on one cluster. The methods block, and must be called from one thread.

    `supplied` provides the processes of the roles that `descriptor` does not play. `installer` installs CRDs and
    webhook configurations; `operators` starts other versions of the operator, and a second operator. Raises
    HarnessError if a role has no player.
    """

    def __init__(self, descriptor: Descriptor, cluster: ClusterFacts, supplied: Descriptor | None = None) -> None:
        self.descriptor, self.cluster, self.supplied = descriptor, cluster, supplied
        self._values = Values(cluster, descriptor.scheduler_name)
        self._runners: dict[Role, RoleRunner] = {}
        self._release = Release(self._values)
        """The objects that the judged implementation has deployed in the cluster."""
        self._failures: list[ProcessFailure] = []
        self.failures_at_start = 0
        """The number of processes that had ended by themselves when `start` last returned."""
        self._log_names: set[str] = {SECOND_OPERATOR}
        """The names of processes that have, or may have, a log."""
        for role in Role:
            owner = descriptor if role in descriptor.roles else supplied
            if owner is None or role not in owner.roles:
                raise HarnessError(
                    f'nobody plays the role "{role}"',
                    where=descriptor.document.location("roles"),
                    hint="supply it from the reference",
                )
            if (runner := self._runner(role, owner)) is not None:
                self._runners[role] = runner
        self.installer = Installer(descriptor, supplied, self._values)
        self.operators = Operators(descriptor, self._runners, self._values, self.installer, self._operator_runner)

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def install(self) -> None:
        """Install CRDs, other objects and webhook configurations, and return when they are in effect. Raises UsageError
        if a file is invalid, or HarnessError if the API server rejects an object."""
        self.installer.install()

    def start(self, *roles: Role) -> None:
        """Start the processes of these roles (by default of all roles) that do not run, and return when the processes
        are ready.

        Raises NotStarted with the end of the log, after ending what this call has started.
        """
        start_all(self._runners[role] for role in roles or tuple(self._runners) if role in self._runners)
        self.failures_at_start = len(self._failures)

    def stop(self, *roles: Role) -> None:
        """Stop these roles. Without arguments, end everything that the driver has started, including a second operator,
        and remove everything that it has deployed; a role that ran before the driver is left running.

        A process that is not running is not an error.
        """
        for role in roles:
            if role in self._runners:
                self._runners[role].stop()
        if not roles:
            for runner in self._all_runners():
                runner.close()
            self._release.remove()

    def detach(self) -> None:
        """Let the processes outlive this process, until the cluster ends them."""
        for runner in self._runners.values():
            runner.detach()

    def kill(self, role: Role) -> None:
        """Send SIGKILL to the processes of a role and to all of their descendants."""
        if role in self._runners:
            self._runners[role].kill()

    def restart(self, role: Role) -> None:
        """Stop and start all processes of a role. Ports, certificates and logs stay the same. Raises NotStarted if a
        process does not become ready."""
        self.stop(role)
        self.start(role)

    def controls(self, role: Role) -> bool:
        """Return whether the driver can start and stop a role. With `start: running`, it can only if `control` has the
        commands."""
        return role in self._runners

    def is_alive(self, role: Role) -> bool:
        """Return whether all processes of a role are running. False for a role that the driver does not control."""
        return role in self._runners and self._runners[role].is_alive

    def pids(self, role: Role) -> dict[str, int]:
        """Return the ids of the role's running processes, by the names of the processes."""
        return self._runners[role].pids if role in self._runners else {}

    def find_suspension(self, role: Role) -> str:
        """Return what keeps a process of a role from running, as the end of a sentence; empty if nothing does, or if
        the role is not played by processes of the suite. Any thread may call this."""
        runners = [
            runner for runner in self._all_runners() if runner.role == role and isinstance(runner, ProcessRunner)
        ]
        problems = (process.find_suspension() for runner in runners for process in runner.processes)
        return next(filter(None, problems), "")

    def log(self, role: Role) -> Path:
        """Return the log of a role with one process. A restarted process appends to the same log. A role that the
        driver does not control has no log."""
        return self._values.log(role)

    def logs(self) -> dict[str, Path]:
        """Return the logs by the names of their processes: the logs of all roles and of a second operator, even if that
        operator has been stopped."""
        for runner in self._all_runners():
            self._log_names |= set(runner.logs)
        return {name: self._values.log(name) for name in sorted(self._log_names)}

    def last_log_lines(self, lines: int = 3) -> str:
        """Return the last lines of the logs of the judged roles, as one line of text."""
        judged_runners = (runner for role, runner in self._runners.items() if role in self.descriptor.roles)
        return "; ".join(log_lines for runner in judged_runners if (log_lines := runner.last_log_lines(lines)))

    def supplied_pages(self) -> list[str]:
        """Return the URLs of the readiness pages of the roles that the judged implementation does not play."""
        supplied_runners = (runner for role, runner in self._runners.items() if role not in self.descriptor.roles)
        processes = (
            process for runner in supplied_runners if isinstance(runner, ProcessRunner) for process in runner.processes
        )
        return [process.page for process in processes if process.is_alive and process.page]

    def failures(self) -> tuple[ProcessFailure, ...]:
        """Return all processes that have ended by themselves so far, in the order in which this was noticed."""
        for runner in self._all_runners():
            runner.record_failures()
        return tuple(self._failures)

    def descriptor_of(self, role: Role) -> Descriptor:
        """Return the descriptor whose processes play a role: the descriptor of the judged implementation or the
        supplied descriptor."""
        if role in self._runners:
            return self._runners[role].descriptor
        return self.descriptor if role in self.descriptor.roles or self.supplied is None else self.supplied

    def _runner(self, role: Role, owner: Descriptor) -> RoleRunner | None:
        """Return the runner that a descriptor requires for a role; None if the role cannot be stopped and started."""
        if role in owner.processes:
            return ProcessRunner(role, role, owner, self._values, self._failures)
        if role in owner.deployments:
            return DeployedRole(role, owner, self._release, self._values, self._failures)
        return CommandedRole(role, owner, self._values) if role in owner.control else None

    def _all_runners(self) -> list[RoleRunner]:
        """Return the runners of the roles that the driver controls, and of a second operator."""
        return [*self._runners.values(), *([self.operators.second] if self.operators.second is not None else [])]

    def _operator_runner(self, name: str, descriptor: Descriptor) -> RoleRunner:
        return ProcessRunner(Role.OPERATOR, name, descriptor, self._values, self._failures)
