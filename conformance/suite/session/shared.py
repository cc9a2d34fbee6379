"""Several workers on one cluster share one implementation: the first worker installs and starts it, and the other
workers attach to it.

Before each of their scenes, the other workers ask the controlling process which processes are running. Scenes that stop
or replace the implementation, or change another shared part of the cluster (`Scene.exclusive`), are played by the first
worker when no other worker is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from conformance.cluster import suspension
from conformance.cluster.state import Owner
from conformance.errors import HarnessError
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import Driver
from conformance.suite.environment import GivenUp
from conformance.suite.session.other_workers import ControllerChannel

FIRST_WORKER = "gw0"
"""The worker that installs and starts the implementation, by its pytest-xdist name."""
QUESTION = "which implementation runs"
REPLY_PREFIX = "implementation "
"""The question of a worker about the running implementation, and the prefix of the reply and of the first worker's
message."""


class RunningImplementation(msgspec.Struct, frozen=True):
    """The running implementation. `problem`: the reason why nothing is running, if any; `processes`: the processes of
    the roles by name; `logs`: their logs; `hooks`: kinds and names of installed webhook configurations."""

    problem: str = ""
    processes: dict[str, Owner] = {}
    logs: dict[str, str] = {}
    hooks: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, driver: Driver) -> RunningImplementation:
        """Return the description of the implementation that a driver has started."""
        pids = {name: pid for role in Role for name, pid in driver.pids(role).items()}
        return cls(
            processes={name: Owner.of(pid) for name, pid in pids.items()},
            logs={name: str(log) for name, log in driver.logs().items()},
            hooks=tuple(sorted(driver.installer.installed)),
        )


def encoded(running: RunningImplementation) -> str:
    """Return the description as a message to the controlling process."""
    return REPLY_PREFIX + msgspec.json.encode(running).decode()


def ask(channel: ControllerChannel) -> RunningImplementation:
    """Return the running implementation, once the first worker has started it. Raises GivenUp if the first worker could
    not start it, or was lost."""
    channel.send(QUESTION)
    running = msgspec.json.decode(str(channel.receive()).removeprefix(REPLY_PREFIX), type=RunningImplementation)
    if running.problem:
        raise GivenUp(f"given up: {running.problem}")
    return running


@dataclass(frozen=True)
class Death:
    """A process that has exited unexpectedly, as seen by a worker that has not started it."""

    process: str

    def __str__(self) -> str:
        return f"the {self.process} has ended by itself"


class _Untouched:
    """A stand-in for objects that only the first worker may change."""

    def __init__(self, running: RunningImplementation) -> None:
        self.installed = set(running.hooks)
        self.has_webhooks = bool(running.hooks)

    def reset(self) -> None:
        """Do nothing, because this worker cannot have changed anything."""

    def __getattr__(self, name: str) -> Any:
        raise HarnessError(f"the scene changes the implementation ({name}) beside others: set `exclusive` of the scene")


class Attached:
    """The driver of a worker that shares an implementation: it observes the implementation, but changes nothing."""

    def __init__(self, descriptor: Descriptor, supplied: Descriptor | None, channel: ControllerChannel) -> None:
        self.descriptor, self.supplied, self._channel = descriptor, supplied, channel
        self._exits: list[Death] = []
        self.start()

    def start(self) -> None:
        """Ask for the running implementation. Raises GivenUp if the first worker could not start it."""
        self._running = ask(self._channel)
        self.installer = self.operators = _Untouched(self._running)
        self._noticed: set[Owner] = set()
        self.failures_at_start = len(self._exits)

    def stop(self) -> None:
        """Do nothing."""

    def controls(self, role: Role) -> bool:
        """Raise HarnessError, because a scene that calls this is going to stop a process."""
        raise HarnessError(f"the scene controls the {role} beside others: set `exclusive` of the scene")

    def failures(self) -> tuple[Death, ...]:
        """Return the processes that have ended, in the order in which their end was noticed."""
        for name, owner in self._running.processes.items():
            if owner not in self._noticed and not owner.is_alive():
                self._noticed.add(owner)
                self._exits.append(Death(name))
        return tuple(self._exits)

    def find_suspension(self, role: Role) -> str:
        """Return what keeps a process of a role from running, as the end of a sentence; empty if nothing does. Their
        descendants are known to the first worker alone. Any thread may call this."""
        owners = [owner for name, owner in self._running.processes.items() if name.startswith(role)]
        return next(filter(None, (suspension.find_problem(owner.pid) for owner in owners if owner.is_alive())), "")

    def logs(self) -> Mapping[str, Path]:
        """Return the logs by name of their process."""
        return {name: Path(log) for name, log in self._running.logs.items()}

    def last_log_lines(self, lines: int = 3) -> str:
        """Return an empty string, because only the first worker reads the logs."""
        return ""
