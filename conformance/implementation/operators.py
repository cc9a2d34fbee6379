"""Operators other than the judged one: candidates in a leader election, and other versions."""

from __future__ import annotations

from collections.abc import Callable

from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.installer import Installer
from conformance.implementation.player import RoleRunner, start_all
from conformance.implementation.values import Values

SECOND_OPERATOR = "operator-2"
"""The name of the second operator. Its ports have this name and, if it has only one process, so do the process, its
folder and its log."""


class Operators:
    """The operator of a driver and, during a leader election, a second operator. `runners` are the driver's runners by
    role; `swap` replaces the operator in them."""

    def __init__(
        self,
        judged: Descriptor,
        runners: dict[Role, RoleRunner],
        values: Values,
        installer: Installer,
        create_runner: Callable[[str, Descriptor], RoleRunner],
    ) -> None:
        """`create_runner` creates the runner of an operator from a name and a descriptor."""
        self.second: RoleRunner | None = None
        self._judged, self._runners, self._values, self._installer = judged, runners, values, installer
        self._create_runner = create_runner

    def enable_leader_election(self, namespace: str) -> None:
        """Restart the operator with leader election: from now on `${leaderElection}` is `true`, and the Lease is in
        `namespace`. Raises NotStarted if the operator does not become ready."""
        operator = self._runners.get(Role.OPERATOR)
        if operator is not None:
            operator.stop()
        self._values.lease_namespace = namespace
        if operator is not None:
            start_all([operator])

    def replace_operator(self, operator: Descriptor) -> None:
        """Replace the operator with another version or another implementation, which has the same ports and the same
        log.

        The CRDs of the judged implementation remain; the webhooks are replaced with those from the new operator's file.
        Raises NotStarted if the new operator does not become ready.
        """
        self._replace_operator(operator)
        start_all([self._runners[Role.OPERATOR]])

    def add_second(self) -> None:
        """Start a second operator with its own ports. From now on, webhooks point to it. After `swap`, this starts the
        operator that was originally the first one. Raises NotStarted if the operator does not become ready."""
        if self.second is None:
            self.second = self._create_runner(SECOND_OPERATOR, self._runners[Role.OPERATOR].descriptor)
        start_all([self.second])
        self._installer.route_webhooks_to(self.second.name)

    def swap(self) -> None:
        """Make the second operator the first one, to which `Role.OPERATOR` refers in the driver's methods."""
        assert self.second is not None
        self._runners[Role.OPERATOR], self.second = self.second, self._runners[Role.OPERATOR]

    def reset(self) -> None:
        """Undo `enable_leader_election`, `add_second` and `replace_operator`. If there was anything to undo, the
        operator is stopped."""
        runner = self._runners.get(Role.OPERATOR)
        if runner is not None and Role.OPERATOR in self._judged.roles and runner.descriptor is not self._judged:
            self._replace_operator(self._judged)
        if not self._values.lease_namespace:
            return
        self._values.lease_namespace = ""
        if runner is not None:
            runner.stop()
        if self.second is not None:
            self.second.stop()
            if self.second.name != SECOND_OPERATOR:
                self.swap()
            self.second = None
            self._installer.route_webhooks_to(Role.OPERATOR)

    def _replace_operator(self, operator: Descriptor) -> None:
        runner = self._runners[Role.OPERATOR]
        runner.stop()
        runner.assign(operator)
        self._installer.use_webhooks_of(operator)
