"""Installs, starts, stops, kills and restarts one implementation on one cluster.

The roles that it does not play are supplied by another descriptor (the reference), whose processes then work under
the implementation's scheduler name.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
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
SECOND = "operator-2"
"""The second operator's folder and log."""


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
    """Who plays a role, and its process while there is one. `name` is that of its folder, its log and its ports."""

    role: Role
    name: str
    descriptor: Descriptor
    process: Process
    group: ProcessGroup | None = None

    @property
    def alive(self) -> bool:
        return self.group is not None and self.group.ended is None


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
        self._ports: dict[tuple[str, str], int] = {}
        self._players: dict[Role, _Player] = {}
        self._second: _Player | None = None
        self._lease_namespace = ""
        self._hooks_at: str = Role.OPERATOR
        self._hooks_of = self._operates = descriptor if Role.OPERATOR in descriptor.roles or not supplied else supplied
        """Whose webhooks are in force, and who operates when nothing else is said."""
        self._hooked: set[tuple[str, str]] = set()
        """Kinds and names of the webhook configurations that are installed."""
        self._failures: list[Failure] = []
        for role in Role:
            owner = descriptor if role in descriptor.roles else supplied
            if owner is None or role not in owner.roles:
                raise HarnessError(
                    f'nobody plays the role "{role}"',
                    where=descriptor.document.where("roles"),
                    hint="supply it from the reference",
                )
            if role in owner.processes:
                self._players[role] = _Player(role, role, owner, owner.processes[role])

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def install(self, *, webhooks_only: bool = False) -> None:
        """Puts CRDs and webhook configurations into the API server and returns when they are in force.

        They come from the implementation and, where it plays no operator, from who supplies that.
        A webhook that fails closed refuses requests until `start` has returned. Raises UsageError, HarnessError.
        """
        sources = [self.descriptor]
        if self.supplied is not None and Role.OPERATOR not in self.descriptor.roles:
            sources.append(self.supplied)
        crds: dict[str, dict[str, Any]] = {}
        webhooks: list[dict[str, Any]] = []
        # Of one that is taken over from only those that its successor doesn't bring.
        before = [self.descriptor.predecessor] if self.descriptor.predecessor is not None else []
        for source in () if webhooks_only else (*before, *sources):
            for path in source.manifests("crds"):
                found = installation.read_manifests(path, installation.text(path), CRD)
                crds |= {crd["metadata"]["name"]: crd for crd in found}
        for source in sources:
            webhooks += self._webhooks(self._hooks_of if source is self._operates else source)
        self._put(list(crds.values()), webhooks)

    @contextlib.contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """The API server asks none of the webhooks that were installed until this ends. Raises HarnessError."""
        self._put([], [])
        try:
            yield
        finally:
            self.install(webhooks_only=True)

    @property
    def hooked(self) -> bool:
        """Whether there are webhook configurations of ours in the API server."""
        return bool(self._hooked)

    def start(self, *roles: Role) -> None:
        """Starts the processes of these roles (all, if none is named) and returns when they are ready.

        Those that run already are left alone. Raises NotStarted with the end of the log; nothing then keeps running
        of what this call has started.
        """
        started: list[_Player] = []
        try:
            for role in roles or tuple(self._players):
                if role in self._players and not self.alive(role):
                    started.append(self._players[role])
                    self._launch(self._players[role])
            for player in started:
                self._await(player)
        except BaseException:
            for player in started:
                self._end(player, grace=0.0)
            raise

    def stop(self, *roles: Role) -> None:
        """SIGTERM, and SIGKILL after each process's grace. Stopping what doesn't run is no error. Without roles
        everything stops, a second operator too."""
        for role in roles or tuple(self._players):
            if role in self._players:
                self._end(self._players[role])
        if not roles and self._second is not None:
            self._end(self._second)

    def detach(self) -> None:
        """Lets the processes outlive this one, until the marker in their environment ends them."""
        for player in self._players.values():
            if player.group is not None:
                player.group.detach()

    def kill(self, role: Role) -> None:
        """SIGKILL to the process group of a role."""
        if role in self._players:
            self._end(self._players[role], grace=0.0)

    def restart(self, role: Role) -> None:
        """Stops and starts: same ports, same certificates; the log goes on."""
        self.stop(role)
        self.start(role)

    def elect(self, namespace: str) -> None:
        """Starts the operator anew as one of several: `${leaderElection}` is `true` from now on, and `namespace` is
        the Lease's. Raises NotStarted."""
        self.stop(Role.OPERATOR)
        self._lease_namespace = namespace
        self.start(Role.OPERATOR)

    def become(self, operator: Descriptor) -> None:
        """Ends the operator, and starts another version of it, or another implementation, in its place: same ports,
        same log. CRDs stay those of the judged one; webhooks are those of the file that the operator is of. Raises
        NotStarted."""
        self._cast(operator)
        self.start(Role.OPERATOR)

    def _cast(self, operator: Descriptor) -> None:
        self.stop(Role.OPERATOR)
        player = self._players[Role.OPERATOR]
        player.descriptor, player.process = operator, operator.processes[Role.OPERATOR]
        if operator.document is not self._hooks_of.document:
            self._hooks_of = operator
            self.install(webhooks_only=True)

    def add_second(self) -> None:
        """Starts a second operator beside the first one, with ports of its own; the API server asks its webhooks from
        now on. After `swap` that is the former first one. Raises NotStarted."""
        first = self._players[Role.OPERATOR]
        second = self._second = self._second or _Player(Role.OPERATOR, SECOND, first.descriptor, first.process)
        try:
            self._launch(second)
            self._await(second)
        except BaseException:
            self._end(second, grace=0.0)
            raise
        self._route(second.name)

    def swap(self) -> None:
        """From now on the second operator is the one that `start`, `stop`, `kill` and the like mean."""
        assert self._second is not None
        self._players[Role.OPERATOR], self._second = self._second, self._players[Role.OPERATOR]

    def alone(self) -> None:
        """Ends what `elect`, `add_second` and `become` have begun. The operator is left stopped."""
        player = self._players.get(Role.OPERATOR)
        if player is not None and Role.OPERATOR in self.descriptor.roles and player.descriptor is not self.descriptor:
            self._cast(self.descriptor)
        if not self._lease_namespace:
            return
        self._lease_namespace = ""
        self.stop(Role.OPERATOR)
        if self._second is not None:
            self._end(self._second)
            if self._second.name != SECOND:
                self.swap()
            self._second = None
            self._route(Role.OPERATOR)

    def _route(self, process: str) -> None:
        self._hooks_at = process
        self.install(webhooks_only=True)

    def controls(self, role: Role) -> bool:
        """Whether the process of a role is the driver's to stop and start. It is not where the role runs already."""
        return role in self._players

    def alive(self, role: Role) -> bool:
        """Whether the process of a role lives. False for a role without a process of ours."""
        player = self._players.get(role)
        return player is not None and player.alive

    def pid(self, role: Role) -> int | None:
        """Its process id while it lives."""
        group = self._players[role].group if role in self._players else None
        return group.pid if group is not None and group.ended is None else None

    def log(self, role: Role) -> Path:
        """Where the output of a role goes, appended over restarts. A role that we do not start has none."""
        return self._log(role)

    def logs(self) -> dict[str, Path]:
        """All logs by the name of their process: those of the roles, and that of a second operator."""
        return {name: self._log(name) for name in (*Role, SECOND)}

    def _log(self, name: str) -> Path:
        return self.cluster.directory / "logs" / f"{name}.log"

    def failures(self) -> tuple[Failure, ...]:
        """Every process so far that ended by itself, in the order in which it was noticed."""
        for player in (*self._players.values(), *([self._second] if self._second else [])):
            self._notice(player)
        return tuple(self._failures)

    def player(self, role: Role) -> Descriptor:
        """The descriptor that plays a role: the implementation or who supplies it."""
        if role in self._players:
            return self._players[role].descriptor
        return self.descriptor if role in self.descriptor.roles or self.supplied is None else self.supplied

    @property
    def _folder(self) -> Path:
        return self.cluster.directory / "implementation"

    def _put(self, crds: list[dict[str, Any]], webhooks: list[dict[str, Any]]) -> None:
        """Installs these CRDs and webhook configurations; no other webhook configuration of ours stays."""
        wanted = {(hook["kind"], hook["metadata"]["name"]) for hook in webhooks}
        if crds or webhooks or self._hooked:
            try:
                asyncio.run(self._install(crds, webhooks, self._hooked - wanted))
            except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                raise HarnessError(
                    f"the API server failed while CRDs and webhooks were installed: {error!r}",
                    hint="see the log of kube-apiserver",
                ) from error
        self._hooked = wanted

    async def _install(
        self, crds: list[dict[str, Any]], webhooks: list[dict[str, Any]], stale: set[tuple[str, str]]
    ) -> None:
        async with Client.from_kubeconfig(self.cluster.kubeconfig, user_agent=USER_AGENT) as client:
            await installation.install_crds(client, crds)
            await installation.install_webhooks(client, webhooks, stale)

    def _webhooks(self, source: Descriptor) -> list[dict[str, Any]]:
        return [hook for path in source.manifests("webhooks") for hook in self._webhooks_of(source, path)]

    def _webhooks_of(self, source: Descriptor, path: Path) -> list[dict[str, Any]]:
        """A webhook belongs to the operator: `${port.…}` in it are the operator's."""
        text = installation.text(path)
        try:
            placeholders.check(text, parameters=source.settings, process=False)
        except placeholders.UnknownPlaceholder as error:
            raise UsageError(str(error), where=shown(path), hint=error.hint) from error
        filled = placeholders.expand(text, lambda name: self._value(self._hooks_at, source, name))
        found = installation.read_manifests(path, filled, tuple(installation.WEBHOOKS))
        for configuration in found:
            installation.check_webhook(path, configuration)
        return found

    def _launch(self, player: _Player) -> None:
        self._notice(player)
        directory = self._folder / player.name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, template in player.process.files.items():
            write_private(directory / name, self._fill(player, template).encode())
        argv = list(self._argv(player))
        find_program(argv[0], player.descriptor.document.where("processes", player.role, "argv", 0))
        inherited = os.environ | dict(self.cluster.environment)
        environment = {name: value for name, value in inherited.items() if name not in FOREIGN}
        environment |= {name: self._fill(player, value) for name, value in player.process.env.items()}
        try:
            player.group = ProcessGroup(argv, environment=environment, directory=directory, log=self._log(player.name))
        except OSError as error:
            why = f"cannot be started: {argv[0]}: {error.strerror}"
            raise NotStarted(player.role, player.descriptor.name, why) from error

    def _await(self, player: _Player) -> None:
        assert player.group is not None
        ready = player.process.ready
        page = self._fill(player, ready.http) if ready.http is not None else None
        try:
            player.group.wait_ready(page, ready.log, ready.within)
        except NotReady as error:
            raise NotStarted(player.role, player.descriptor.name, str(error)) from error

    def _end(self, player: _Player, grace: float | None = None) -> None:
        if player.group is None:
            return
        self._notice(player)
        if player.group is not None:
            player.group.stop(player.process.stop.grace) if grace is None else player.group.kill()
            player.group = None

    def _notice(self, player: _Player) -> None:
        """Keeps it as a failure if the process has ended without us."""
        if player.group is not None and (ended := player.group.ended) is not None:
            self._failures.append(Failure(player.role, player.descriptor.name, ended, player.group.tail()))
            player.group = None

    def _argv(self, player: _Player) -> Iterable[str]:
        for item in player.process.argv:
            if isinstance(item, str):
                yield self._fill(player, item)
            elif all(self._value(player.name, player.descriptor, n) for t in item for n in placeholders.used(t)):
                yield from (self._fill(player, text) for text in item)

    def _fill(self, player: _Player, text: str) -> str:
        return placeholders.expand(text, lambda name: self._value(player.name, player.descriptor, name))

    def _value(self, process: str, source: Descriptor, name: str) -> str:
        family, _, rest = name.partition(".")
        match family:
            case "kubeconfig":
                return str(self.cluster.kubeconfig)
            case "schedulerName":
                return self.descriptor.scheduler_name
            case "directory":
                return str(self._folder / process)
            case "certificates":
                return str(self._certificates.ensure())
            case "ca":
                return self._certificates.bundle()
            case "leaderElection":
                return "true" if self._lease_namespace else "false"
            case "leaseNamespace":
                return self._lease_namespace or "default"
            case "port":
                return str(self._port(process, rest))
            case "file":
                return str(self._folder / process / rest)
            case _:
                value = source.static(name)
                assert value is not None, f"load has checked that {name} is known"
                return value

    def _port(self, process: str, name: str) -> int:
        """The port of that name, the same at each start: webhook configurations hold it."""
        if (process, name) not in self._ports:
            try:
                self._ports[process, name] = self.cluster.port(len(self._ports))
            except ValueError as error:
                raise UsageError(f"${{port.{name}}} of the {process}: {error}", hint="use fewer ports") from error
        return self._ports[process, name]
