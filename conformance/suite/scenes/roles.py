"""Control the processes of the implementation: `env.roles`."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

from conformance.grove.fields import terminating
from conformance.history.query import History
from conformance.history.record import DELETED
from conformance.implementation.descriptor import Role, Upgrade
from conformance.implementation.driver import Driver, NotStarted
from conformance.implementation.role_process import ProcessFailure
from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.scenes.machine import Machine

Numbers = tuple[int, int | None]
"""A span of a history: after which record it begins, and with which it ends (None: it lasts)."""


class Roles:
    """The operator and the gang scheduler, which a test can kill, stop, and replace by earlier versions or by a second
    operator. The descriptor decides which process plays a role."""

    def __init__(
        self,
        driver: Driver,
        namespace: str,
        history: History,
        checks: Checks,
        blame: Callable[[], None],
        machine: Machine,
    ) -> None:
        """`blame` raises HarnessError if the implementation is not at fault."""
        self._machine = machine
        self._driver, self._namespace, self._history, self._checks = driver, namespace, history, checks
        self._blame = blame
        self._takeovers: list[tuple[int, bool]] = []
        """Marks of the history from which on another version was the operator, and whether it was an earlier one."""
        self._deaths = driver.failures_at_start  # what has ended since then is dead in this test

    def dead(self) -> str:
        """Return which processes have ended by themselves since they were started for the test; empty for none. Raises
        SupervisorLost if one of them has not."""
        deaths = self._driver.failures()[self._deaths :]
        for death in deaths:
            if isinstance(death, ProcessFailure):
                death.require_supervised()
        return "; ".join(self._of_the_bundle(str(death)) for death in deaths)

    def last_words(self) -> str:
        """Return how the logs of the implementation's processes end, as one line of text; empty if none runs."""
        return self._of_the_bundle(self._driver.last_words())

    def kill(self, role: str) -> None:
        """Send SIGKILL to the processes of a role."""
        self._driver.kill(self._controlled(role))
        self._history.stir()

    def pause(self, role: str) -> bool:
        """Stop the processes of a role until `restart`. Return False if the driver does not control it."""
        if not self._driver.controls(Role(role)):
            return False
        self._driver.stop(Role(role))
        self._history.stir()
        return True

    def stop(self, role: str) -> None:
        """Stop the processes of a role as the platform does. `restart` starts it again."""
        self._driver.stop(self._controlled(role))
        self._history.stir()

    def restart(self, role: str) -> None:
        """Restart the processes of a role, or start killed ones. If a role does not come back, the scene ends."""
        controlled = self._controlled(role)
        self._starting(f"the {role}", lambda: self._driver.restart(controlled), "starts again")

    def start_in_vain(self, role: str) -> NotStarted | None:
        """Start a stopped role where it cannot work. Return how it has ended, or that it is not ready in time; None if
        it is ready. Its end is not a death that ends the scene."""
        controlled, begin = self._controlled(role), self._machine.now()
        try:
            self._driver.start(controlled)
        except NotStarted as error:
            self._blame()
            if error.timed_out:
                self._machine.require(begin, f"the {role} had time to end")
            self._deaths = len(self._driver.failures())
            return error
        finally:
            self._history.stir()
        return None

    # -- several operators ---------------------------------------------------------------------------------------

    def elect(self) -> None:
        """Restart the operator as one that leads only with the Lease, which is in the test's namespace. At the end of
        the test it is the only one again. If an operator cannot be started this way, the scene ends."""
        self._controlled(Role.OPERATOR)
        self._starting("an operator that leads by its Lease", lambda: self._driver.operators.elect(self._namespace))

    def second_operator(self) -> None:
        """Start a second operator beside the first. The API server calls its webhooks from now on."""
        self._starting("a second operator", self._driver.operators.add_second)

    def hand_over(self, *, kill: bool) -> None:
        """End the first operator, by SIGKILL or as the platform stops it. The second one is the first from now on."""
        if kill:
            self.kill(Role.OPERATOR)
        else:
            self.stop(Role.OPERATOR)
        self._driver.operators.swap()

    # -- versions ------------------------------------------------------------------------------------------------

    @property
    def upgrades(self) -> tuple[Upgrade, ...]:
        """Return the earlier versions that the implementation takes over from; there is at least one. If none is
        declared, the test is blocked."""
        judged = self._driver.descriptor
        if not judged.upgrades:
            raise Blocked("no earlier version of the operator is declared that could be started", "circumstances")
        self._controlled(Role.OPERATOR)
        return judged.upgrades

    def downgrade(self, to: Upgrade) -> None:
        """Replace the operator by an earlier version of it. At the end of the test it is the judged one again."""
        self._takeovers.append((self._history.mark(), True))
        with self.unrest():
            self._starting(to.about, lambda: self._driver.operators.become(self._driver.descriptor.earlier(to)))

    def upgrade(self) -> None:
        """Replace the operator by the judged one."""
        with self.unrest():
            judged = self._driver.descriptor
            self._starting(f"{judged.name} {judged.version}", lambda: self._driver.operators.become(judged))
        self._takeovers.append((self._history.mark(), False))

    @property
    def earlier(self) -> list[Numbers]:
        """Return the spans in which an earlier version was the operator, which is not judged."""
        ends = [begin for begin, _ in self._takeovers[1:]]
        takeovers = itertools.zip_longest(self._takeovers, ends)
        return [(begin, until) for (begin, earlier), until in takeovers if earlier]

    def went_earlier(self) -> set[str]:
        """Return the uids of the pods that were deleted under an earlier version: some earlier versions consider all
        pods outdated that the judged one has written its hashes on."""
        went: set[str] = set()
        for begin, until in self.earlier:
            for record in self._history.records("pods", after=begin, until=until):
                if record.kind == DELETED or terminating(record.object):
                    went.add(record.uid)
        return went

    # -- webhooks ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def without_hooks(self) -> Iterator[None]:
        """Disable the webhooks of the implementation inside the context: the test can store what they would reject, as
        an earlier version has stored it. Raises Blocked if the driver has installed none."""
        if not self._driver.installer.has_webhooks:
            reason = "the driver has not installed the webhooks, which the test takes away (list them under install)"
            raise Blocked(reason, "circumstances")
        with self._driver.installer.without_webhooks():
            yield

    # -- rest ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def unrest(self) -> Iterator[None]:
        """Declare a time in which something happens that has no record: writes of the operator during it, and soon
        after, do not violate INV-007."""
        begin = self._history.now()
        try:
            yield
        finally:
            self._history.unrest.append((begin, self._history.now()))

    # -- within --------------------------------------------------------------------------------------------------

    def _controlled(self, role: str) -> Role:
        """Return the role. Raises Blocked unless the driver controls its process: otherwise the test cannot act."""
        if not self._driver.controls(Role(role)):
            reason = (
                f"the driver does not control the process of the {role}, which the test stops or starts"
                " (start: running; describe it under processes to have this judged)"
            )
            raise Blocked(reason, "circumstances")
        return Role(role)

    def _starting(self, subject: str, action: Callable[[], None], verb: str = "starts") -> None:
        begin = self._machine.now()
        try:
            action()
        except NotStarted as error:
            self._blame()
            if error.timed_out:
                self._machine.require(begin, f"{subject} was not ready in time")
            reason = self._of_the_bundle(str(error))
            raise self._checks.broken(f"{subject} {verb}", "ready", reason) from None
        self._history.stir()

    def _of_the_bundle(self, text: str) -> str:
        """Return the paths of logs as they are in the bundle, because the cluster's folder is deleted with the
        cluster."""
        for name, log in self._driver.logs().items():
            text = text.replace(str(log), f"logs/{name}.log of the bundle")
        return text
