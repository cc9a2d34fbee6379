"""Operators other than the one that is judged: candidates of a leader election, and other versions."""

from __future__ import annotations

from collections.abc import Callable

from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.installer import Installer
from conformance.implementation.player import RoleRunner, start_all
from conformance.implementation.values import Values

SECOND = "operator-2"
"""Name of the second operator: of its ports, and of its process, folder and log if it has only one process."""


class Operators:
    """The operator of a driver and, during a leader election, a second one. `players` are the processes of
    the driver by role; `swap` exchanges the operator there."""

    def __init__(
        self,
        judged: Descriptor,
        players: dict[Role, RoleRunner],
        values: Values,
        installer: Installer,
        player: Callable[[str, Descriptor], RoleRunner],
    ) -> None:
        """`player` creates the processes of an operator from a name and a descriptor."""
        self.second: RoleRunner | None = None
        self._judged, self._players, self._values, self._installer = judged, players, values, installer
        self._player = player

    def elect(self, namespace: str) -> None:
        """Restart the operator with leader election: `${leaderElection}` is `true` from now on, and the Lease is in
        `namespace`. Raises NotStarted."""
        operator = self._players.get(Role.OPERATOR)
        if operator is not None:
            operator.stop()
        self._values.lease_namespace = namespace
        if operator is not None:
            start_all([operator])

    def become(self, operator: Descriptor) -> None:
        """Replace the operator by another version or another implementation, with the same ports and the same log.

        CRDs stay those of the judged implementation; webhooks become those of the new operator's file. Raises
        NotStarted.
        """
        self._cast(operator)
        start_all([self._players[Role.OPERATOR]])

    def add_second(self) -> None:
        """Start a second operator with ports of its own. Webhooks point to it from now on. After `swap`, the former
        first operator is the one that is started. Raises NotStarted."""
        if self.second is None:
            self.second = self._player(SECOND, self._players[Role.OPERATOR].descriptor)
        start_all([self.second])
        self._installer.route_webhooks_to(self.second.name)

    def swap(self) -> None:
        """Make the second operator the first one, which the driver's methods mean by `Role.OPERATOR`."""
        assert self.second is not None
        self._players[Role.OPERATOR], self.second = self.second, self._players[Role.OPERATOR]

    def reset(self) -> None:
        """Undo `elect`, `add_second` and `become`. The operator is stopped if there was anything to undo."""
        player = self._players.get(Role.OPERATOR)
        if player is not None and Role.OPERATOR in self._judged.roles and player.descriptor is not self._judged:
            self._cast(self._judged)
        if not self._values.lease_namespace:
            return
        self._values.lease_namespace = ""
        if player is not None:
            player.stop()
        if self.second is not None:
            self.second.stop()
            if self.second.name != SECOND:
                self.swap()
            self.second = None
            self._installer.route_webhooks_to(Role.OPERATOR)

    def _cast(self, operator: Descriptor) -> None:
        player = self._players[Role.OPERATOR]
        player.stop()
        player.cast(operator)
        self._installer.use_webhooks_of(operator)
