"""Installs, starts, stops, kills and restarts one implementation on one cluster.

The roles that it does not play are supplied by another descriptor (the reference), whose processes then work under
the implementation's scheduler name.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

from conformance.documents import shown
from conformance.errors import HarnessError, UsageError
from conformance.implementation import installation, placeholders
from conformance.implementation.certificates import Certificates, write_private
from conformance.implementation.descriptor import Descriptor, Process, Role, find_program
from conformance.implementation.process import Ended, NotReady, ProcessGroup
from kube.client import Client
from kube.errors import ApiError

USER_AGENT = "grove-conformance/implementation"
FOREIGN = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE")
"""Variables by which a client would find another cluster than ours."""
CRD = ("CustomResourceDefinition",)


@dataclass(frozen=True)
class ClusterFacts:
    """What a driver has to know of a cluster. `implementation/` knows no more of it."""

    kubeconfig: Path
    directory: Path
    """The cluster's own folder: logs go to `logs/`, everything else to `implementation/`."""
    environment: Mapping[str, str]
    """Variables for every process (the whole environment or only the marker), by which prune finds it."""
    port: Callable[[int], int]
    """The n-th port (from 0) of 127.0.0.1 that is claimed for drivers."""


@dataclass(frozen=True)
class Failure:
    """A process that ended although nobody told it to: a finding about the implementation."""

    role: Role
    implementation: str
    ended: Ended
    tail: str

    def __str__(self) -> str:
        return f"{self.implementation}: the {self.role} {self.ended}; {self.tail}"


@dataclass
class _Player:
    """Who plays a role, and its process while there is one."""

    descriptor: Descriptor
    process: Process
    group: ProcessGroup | None = None


class NotStarted(HarnessError):
    """A process could not be started or did not become ready. The suite decides whose fault that is by `role`."""

    def __init__(self, role: Role, implementation: str, why: str) -> None:
        self.role, self.implementation = role, implementation
        super().__init__(f"{implementation}: the {role} {why}")


class Driver:
    """One implementation on one cluster. Methods block; use from one thread.

    `supplied` gives the processes of the roles that `descriptor` does not play. Raises HarnessError if a role is left
    without a player.
    """

    def __init__(self, descriptor: Descriptor, cluster: ClusterFacts, supplied: Descriptor | None = None) -> None:
        self.descriptor, self.cluster, self.supplied = descriptor, cluster, supplied
        self._certificates = Certificates(self._folder / "certificates")
        self._ports: dict[tuple[Role, str], int] = {}
        self._players: dict[Role, _Player] = {}
        self._failures: list[Failure] = []
        for role in Role:
            owner = descriptor if role in descriptor.roles else supplied
            if owner is None or role not in owner.roles:
                raise HarnessError(
                    f'nobody plays the role "{role}"',
                    where=descriptor.document.where("roles"),
                    mend="supply it from the reference",
                )
            if role in owner.processes:
                self._players[role] = _Player(owner, owner.processes[role])

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def install(self) -> None:
        """Puts CRDs and webhook configurations into the API server and returns when they are in force.

        They come from the implementation and, where it plays no operator, from who supplies that.
        A webhook that fails closed refuses requests until `start` has returned. Raises UsageError, HarnessError.
        """
        sources = [self.descriptor]
        if self.supplied is not None and Role.OPERATOR not in self.descriptor.roles:
            sources.append(self.supplied)
        crds: list[dict[str, Any]] = []
        webhooks: list[dict[str, Any]] = []
        for source in sources:
            for path in source.manifests("crds"):
                crds += installation.read_manifests(path, path.read_text(encoding="utf-8"), CRD)
            for path in source.manifests("webhooks"):
                webhooks += self._webhooks(source, path)
        if crds or webhooks:
            try:
                asyncio.run(self._install(crds, webhooks))
            except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                raise HarnessError(
                    f"the API server failed while CRDs and webhooks were installed: {error!r}",
                    mend="see the log of kube-apiserver",
                ) from error

    def start(self, *roles: Role) -> None:
        """Starts the processes of these roles (all, if none is named) and returns when they are ready.

        Those that run already are left alone. Raises NotStarted with the end of the log; nothing then keeps running
        of what this call has started.
        """
        started: list[Role] = []
        try:
            for role in roles or tuple(self._players):
                if role in self._players and not self.alive(role):
                    started.append(role)
                    self._launch(role)
            for role in started:
                self._await(role)
        except BaseException:
            for role in started:
                self._end(role, grace=0.0)
            raise

    def stop(self, *roles: Role) -> None:
        """SIGTERM, and SIGKILL after each process's grace. Stopping what doesn't run is no error."""
        for role in roles or tuple(self._players):
            self._end(role)

    def kill(self, role: Role) -> None:
        """SIGKILL to the process group of a role."""
        self._end(role, grace=0.0)

    def restart(self, role: Role) -> None:
        """Stops and starts: same ports, same certificates; the log goes on."""
        self.stop(role)
        self.start(role)

    def alive(self, role: Role) -> bool:
        """Whether the process of a role lives. False for a role without a process of ours."""
        player = self._players.get(role)
        return player is not None and player.group is not None and player.group.ended is None

    def pid(self, role: Role) -> int | None:
        """Its process id while it lives."""
        group = self._players[role].group if role in self._players else None
        return group.pid if group is not None and group.ended is None else None

    def log(self, role: Role) -> Path:
        """Where the output of a role goes, appended over restarts. A role that we do not start has none."""
        return self.cluster.directory / "logs" / f"{role}.log"

    def failures(self) -> tuple[Failure, ...]:
        """Every process so far that ended by itself, in the order in which it was noticed."""
        for role in self._players:
            self._notice(role)
        return tuple(self._failures)

    def player(self, role: Role) -> Descriptor:
        """The descriptor that plays a role: the implementation or who supplies it."""
        if role in self._players:
            return self._players[role].descriptor
        return self.descriptor if role in self.descriptor.roles or self.supplied is None else self.supplied

    @property
    def _folder(self) -> Path:
        return self.cluster.directory / "implementation"

    async def _install(self, crds: list[dict[str, Any]], webhooks: list[dict[str, Any]]) -> None:
        async with Client.from_kubeconfig(self.cluster.kubeconfig, user_agent=USER_AGENT) as client:
            await installation.install_crds(client, crds)
            await installation.install_webhooks(client, webhooks)

    def _webhooks(self, source: Descriptor, path: Path) -> list[dict[str, Any]]:
        """A webhook belongs to the operator: `${port.…}` in it are the operator's."""
        text = path.read_text(encoding="utf-8")
        try:
            placeholders.check(text, parameters=source.settings, process=False)
        except placeholders.UnknownPlaceholder as error:
            raise UsageError(str(error), where=shown(path), mend=error.mend) from error
        filled = placeholders.expand(text, lambda name: self._value(Role.OPERATOR, source, name))
        found = installation.read_manifests(path, filled, tuple(installation.WEBHOOKS))
        for configuration in found:
            installation.check_webhook(path, configuration)
        return found

    def _launch(self, role: Role) -> None:
        player = self._players[role]
        self._notice(role)
        directory = self._folder / role
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, template in player.process.files.items():
            write_private(directory / name, self._fill(role, template).encode())
        argv = list(self._argv(role))
        find_program(argv[0], player.descriptor.document.where("processes", role, "argv", 0))
        inherited = os.environ | dict(self.cluster.environment)
        environment = {name: value for name, value in inherited.items() if name not in FOREIGN}
        environment |= {name: self._fill(role, value) for name, value in player.process.env.items()}
        try:
            player.group = ProcessGroup(argv, environment=environment, directory=directory, log=self.log(role))
        except OSError as error:
            raise NotStarted(role, player.descriptor.name, f"cannot be started: {argv[0]}: {error.strerror}") from error

    def _await(self, role: Role) -> None:
        player = self._players[role]
        assert player.group is not None
        ready = player.process.ready
        page = self._fill(role, ready.http) if ready.http is not None else None
        try:
            player.group.wait_ready(page, ready.log, ready.within)
        except NotReady as error:
            raise NotStarted(role, player.descriptor.name, str(error)) from error

    def _end(self, role: Role, grace: float | None = None) -> None:
        player = self._players.get(role)
        if player is None or player.group is None:
            return
        self._notice(role)
        if player.group is not None:
            player.group.stop(player.process.stop.grace) if grace is None else player.group.kill()
            player.group = None

    def _notice(self, role: Role) -> None:
        """Keeps it as a failure if the process has ended without us."""
        player = self._players[role]
        if player.group is not None and (ended := player.group.ended) is not None:
            self._failures.append(Failure(role, player.descriptor.name, ended, player.group.tail()))
            player.group = None

    def _argv(self, role: Role) -> Iterable[str]:
        for item in self._players[role].process.argv:
            if isinstance(item, str):
                yield self._fill(role, item)
            elif all(self._value(role, self._players[role].descriptor, n) for t in item for n in placeholders.used(t)):
                yield from (self._fill(role, text) for text in item)

    def _fill(self, role: Role, text: str) -> str:
        return placeholders.expand(text, lambda name: self._value(role, self._players[role].descriptor, name))

    def _value(self, role: Role, source: Descriptor, name: str) -> str:
        family, _, rest = name.partition(".")
        match family:
            case "kubeconfig":
                return str(self.cluster.kubeconfig)
            case "schedulerName":
                return self.descriptor.scheduler_name
            case "directory":
                return str(self._folder / role)
            case "certificates":
                return str(self._certificates.ensure())
            case "ca":
                return self._certificates.bundle()
            case "port":
                return str(self._port(role, rest))
            case "file":
                return str(self._folder / role / rest)
            case _:
                value = source.static(name)
                assert value is not None, f"load has checked that {name} is known"
                return value

    def _port(self, role: Role, name: str) -> int:
        """The port of that name, the same at each start: webhook configurations hold it."""
        if (role, name) not in self._ports:
            self._ports[role, name] = self.cluster.port(len(self._ports))
        return self._ports[role, name]
