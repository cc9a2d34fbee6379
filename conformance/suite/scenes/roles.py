"""Control the processes of the implementation: `env.roles`."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

from conformance.grove.fields import terminating
from conformance.history.query import History
from conformance.history.record import DELETED
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import Driver, NotStarted
from conformance.implementation.fields import Upgrade
from conformance.implementation.role_process import ProcessFailure
from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.scenes.machine import Machine

RecordSpan = tuple[int, int | None]
"""A span of a history: the number of the record after which it starts, and the number of its last record (None: it has
not ended)."""


class Roles:
    """The operator and the gang scheduler, which a test can kill, stop, and replace by earlier versions or by a second
    operator. The descriptor decides which process plays a role."""

    def __init__(
        self,
        driver: Driver,
        namespace: str,
        history: History,
        checks: Checks,
        require_fault: Callable[[], None],
        machine: Machine,
    ) -> None:
        """`require_fault` raises HarnessError if the implementation is not at fault."""
        self._machine = machine
        self._driver, self._namespace, self._history, self._checks = driver, namespace, history, checks
        self._require_fault = require_fault
        self._takeovers: list[tuple[int, bool]] = []
        """Marks of the history at which another version became the operator, each with whether it was an earlier
        version."""
        self._ignored_failures = driver.failures_at_start  # the test judges only later failures

    def exited_processes(self) -> str:
        """Return a description of the processes that have exited unexpectedly since they were started for the test;
        empty if there are none. Raises SupervisorLost if a process ended only because its supervisor was killed."""
        deaths = self._driver.failures()[self._ignored_failures :]
        for death in deaths:
            if isinstance(death, ProcessFailure):
                death.require_supervised()
        return "; ".join(self._with_bundle_paths(str(death)) for death in deaths)

    def last_words(self) -> str:
        """Return the ends of the logs of the implementation's processes, as one line; empty if no process is
        running."""
        return self._with_bundle_paths(self._driver.last_log_lines())

    def kill(self, role: str) -> None:
        """Send SIGKILL to the processes of a role."""
        self._driver.kill(self._controlled(role))
        self._history.record_action()

    def pause(self, role: str) -> bool:
        """Stop the processes of a role until `restart`. Return False if the driver does not control it."""
        if not self._driver.controls(Role(role)):
            return False
        self._driver.stop(Role(role))
        self._history.record_action()
        return True

    def stop(self, role: str) -> None:
        """Stop the processes of a role as the platform does (gracefully). `restart` starts them again."""
        self._driver.stop(self._controlled(role))
        self._history.record_action()

    def restart(self, role: str) -> None:
        """Restart the processes of a role, or start killed ones. If a role does not become ready again, the scene
        ends."""
        controlled = self._controlled(role)
        self._start(f"the {role}", lambda: self._driver.restart(controlled), "starts again")

    def try_start(self, role: str) -> NotStarted | None:
        """Start a stopped role in circumstances in which it should not become ready. Return the error with which it
        ended or did not become ready in time; None if it became ready. The end of its process does not end the
        scene."""
        controlled, started_at = self._controlled(role), self._machine.now()
        try:
            self._driver.start(controlled)
        except NotStarted as error:
            self._require_fault()
            if error.timed_out:
                self._machine.require(started_at, f"the {role} had time to end")
            self._ignored_failures = len(self._driver.failures())
            return error
        finally:
            self._history.record_action()
        return None

    # -- several operators ---------------------------------------------------------------------------------------

    def restart_with_election(self) -> None:
        """Restart the operator with leader election, using a Lease in the test's namespace. At the end of the test, the
        original setup is restored. If the operator cannot be started this way, the scene ends."""
        self._controlled(Role.OPERATOR)
        self._start(
            "an operator that leads by its Lease",
            lambda: self._driver.operators.enable_leader_election(self._namespace),
        )

    def start_second_operator(self) -> None:
        """Start a second operator alongside the first. From now on, the API server calls the second operator's
        webhooks."""
        self._start("a second operator", self._driver.operators.add_second)

    def hand_over(self, *, kill: bool) -> None:
        """End the first operator, by SIGKILL or gracefully as the platform does. From now on, the second operator
        counts as the first."""
        if kill:
            self.kill(Role.OPERATOR)
        else:
            self.stop(Role.OPERATOR)
        self._driver.operators.swap()

    # -- versions ------------------------------------------------------------------------------------------------

    @property
    def upgrades(self) -> tuple[Upgrade, ...]:
        """Return the earlier versions from which the implementation takes over, at least one. If none is declared, the
        test is blocked."""
        judged = self._driver.descriptor
        if not judged.upgrades:
            raise Blocked("no earlier version of the operator is declared that could be started", "circumstances")
        self._controlled(Role.OPERATOR)
        return judged.upgrades

    def downgrade(self, to: Upgrade) -> None:
        """Replace the operator by an earlier version. At the end of the test, the judged version is restored."""
        self._takeovers.append((self._history.mark(), True))
        with self.unrest():
            self._start(to.about, lambda: self._driver.operators.replace_operator(self._driver.descriptor.earlier(to)))

    def upgrade(self) -> None:
        """Replace the operator by the judged version."""
        with self.unrest():
            judged = self._driver.descriptor
            self._start(f"{judged.name} {judged.version}", lambda: self._driver.operators.replace_operator(judged))
        self._takeovers.append((self._history.mark(), False))

    @property
    def earlier_spans(self) -> list[RecordSpan]:
        """Return the spans in which an earlier version was the operator; an earlier version is not judged."""
        ends = [started_at for started_at, _ in self._takeovers[1:]]
        takeovers = itertools.zip_longest(self._takeovers, ends)
        return [(started_at, end) for (started_at, earlier), end in takeovers if earlier]

    def uids_deleted_by_earlier(self) -> set[str]:
        """Return the UIDs of the pods that were deleted under an earlier version: some earlier versions consider all
        pods with the judged version's hashes outdated."""
        deleted_uids: set[str] = set()
        for started_at, end in self.earlier_spans:
            for record in self._history.records("pods", after=started_at, until=end):
                if record.kind == DELETED or terminating(record.object):
                    deleted_uids.add(record.uid)
        return deleted_uids

    # -- webhooks ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def without_hooks(self) -> Iterator[None]:
        """Disable the webhooks of the implementation inside the context, so that the test can store objects that they
        would reject, like objects that an earlier version has stored. Raises Blocked if the driver has not installed
        webhooks."""
        if not self._driver.installer.has_webhooks:
            reason = "the driver has not installed the webhooks, which the test takes away (list them under install)"
            raise Blocked(reason, "circumstances")
        with self._driver.installer.without_webhooks():
            yield

    # -- rest ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def unrest(self) -> Iterator[None]:
        """Declare a time in which something happens that has no record: writes of the operator during the context, and
        shortly after it, do not violate INV-007."""
        started_at = self._history.now()
        try:
            yield
        finally:
            self._history.unrest.append((started_at, self._history.now()))

    # -- within --------------------------------------------------------------------------------------------------

    def _controlled(self, role: str) -> Role:
        """Return the role. Raises Blocked unless the driver controls its process, because the test cannot act without
        that."""
        if not self._driver.controls(Role(role)):
            reason = (
                f"the driver does not control the process of the {role}, which the test stops or starts"
                " (start: running; describe it under processes to have this judged)"
            )
            raise Blocked(reason, "circumstances")
        return Role(role)

    def _start(self, subject: str, action: Callable[[], None], verb: str = "starts") -> None:
        started_at = self._machine.now()
        try:
            action()
        except NotStarted as error:
            self._require_fault()
            if error.timed_out:
                self._machine.require(started_at, f"{subject} was not ready in time")
            reason = self._with_bundle_paths(str(error))
            raise self._checks.broken(f"{subject} {verb}", "ready", reason) from None
        self._history.record_action()

    def _with_bundle_paths(self, text: str) -> str:
        """Replace paths of logs in a text by their paths in the bundle, because the cluster's folder is deleted with
        the cluster."""
        for name, log in self._driver.logs().items():
            text = text.replace(str(log), f"logs/{name}.log of the bundle")
        return text
