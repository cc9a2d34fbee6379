"""Installs the CRDs, other objects and webhook configurations of an implementation, and removes webhook
configurations."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from conformance.documents import display_path
from conformance.errors import HarnessError, UsageError
from conformance.implementation import installation, objects, placeholders, rights
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.installation import Manifest
from conformance.implementation.objects import DesiredObject
from conformance.implementation.values import ProcessLocation, Values
from kube import errors
from kube.client import Client

USER_AGENT = "grove-conformance/implementation"
CRD = ("CustomResourceDefinition",)


def check(source: Descriptor) -> None:
    """Raise UsageError if a file of `install` cannot be read or contains objects that do not belong there."""
    for path in source.manifests("crds"):
        installation.read_manifests(path, installation.text(path), CRD)
    for path in source.manifests("webhooks"):
        for configuration in _placeholder_manifests(source, path, tuple(installation.WEBHOOKS)):
            installation.check_webhook(path, configuration)
    for path in source.manifests("objects"):
        for manifest in _placeholder_manifests(source, path):
            objects.check(path, manifest)
    for path in source.manifests("manifests"):
        _placeholder_manifests(source, path)


def declared_objects(source: Descriptor) -> list[Manifest]:
    """Return the objects that a descriptor installs, with the same placeholder values as in `check`. Raises UsageError
    if a file is invalid."""
    crds = (installation.read_manifests(path, installation.text(path), CRD) for path in source.manifests("crds"))
    unfilled = (
        _placeholder_manifests(source, path) for part in ("webhooks", "objects") for path in source.manifests(part)
    )
    return [manifest for manifests in (*crds, *unfilled) for manifest in manifests]


def _placeholder_manifests(source: Descriptor, path: Path, kinds: tuple[str, ...] = ()) -> Sequence[Manifest]:
    """Return the objects of a file. Placeholders whose value depends on a cluster, such as ports, are replaced by
    `x`."""
    text = placeholders.expand(read_checked(source, path), lambda name: source.static_value(name) or "x")
    return installation.read_manifests(path, text, kinds)


def read_checked(source: Descriptor, path: Path) -> str:
    """Return the text of a file. Raises UsageError if the file cannot be read, or if it has an unknown placeholder."""
    text = installation.text(path)
    try:
        placeholders.check(text, parameters=source.settings, process=False)
    except placeholders.UnknownPlaceholder as error:
        raise UsageError(str(error), where=display_path(path), hint=error.hint) from error
    return text


class Installer:
    """The objects of an implementation in the API server. They come from `judged` and, if it does not play the
    operator, also from `supplied`."""

    def __init__(self, judged: Descriptor, supplied: Descriptor | None, values: Values) -> None:
        self._judged, self._supplied, self._values = judged, supplied, values
        self._operator = judged if Role.OPERATOR in judged.roles or supplied is None else supplied
        self._webhook_source = self._operator
        """The operator whose webhooks are in effect; not always `_operator`."""
        self._webhook_process: str = Role.OPERATOR
        """The name of the operator to whose ports the webhooks point."""
        self.installed: set[tuple[str, str]] = set()
        """Kinds and names of the installed webhook configurations."""

    @property
    def has_webhooks(self) -> bool:
        """Return whether webhook configurations of this implementation are installed."""
        return bool(self.installed)

    def install(self) -> None:
        """Install CRDs, other objects and webhook configurations, and return when they are in effect.

        A webhook whose failurePolicy is Fail rejects requests until its operator is ready. Raises UsageError if a file
        is invalid, or HarnessError if the API server rejects an object.
        """
        crds: dict[str, Manifest] = {}
        other_objects: list[DesiredObject] = []
        # CRDs of the predecessor that its successor does not have remain installed, so they come first.
        predecessors = [self._judged.predecessor] if self._judged.predecessor is not None else []
        for source in (*predecessors, *self._sources):
            for path in source.manifests("crds"):
                manifests = installation.read_manifests(path, installation.text(path), CRD)
                crds |= {crd["metadata"]["name"]: crd for crd in manifests}
            for path in source.manifests("objects"):
                other_objects += [DesiredObject(manifest, path) for manifest in self._objects(source, path)]
        self._install_all(list(crds.values()), self._webhooks(), other_objects, self._players())

    def install_webhooks(self) -> None:
        """Install the webhook configurations again. Raises UsageError if a file is invalid, or HarnessError if the API
        server rejects a configuration."""
        self._install_all([], self._webhooks())

    def use_webhooks_of(self, operator: Descriptor) -> None:
        """Replace the webhook configurations with those of another operator."""
        if operator.document is not self._webhook_source.document:
            self._webhook_source = operator
            self.install_webhooks()

    def route_webhooks_to(self, process: str) -> None:
        """Point the webhook configurations to the ports of this process."""
        self._webhook_process = process
        self.install_webhooks()

    @contextlib.contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """Remove the installed webhook configurations until the block ends. Raises HarnessError if the API server
        fails."""
        self._install_all([], [])
        try:
            yield
        finally:
            self.install_webhooks()

    @property
    def _sources(self) -> list[Descriptor]:
        return [self._judged] if self._operator is self._judged else [self._judged, self._operator]

    def _webhooks(self) -> list[Manifest]:
        sources = [self._webhook_source if source is self._operator else source for source in self._sources]
        return [
            hook
            for source in sources
            for path in source.manifests("webhooks")
            for hook in self._read_webhooks(source, path)
        ]

    def _read_webhooks(self, source: Descriptor, path: Path) -> Sequence[Manifest]:
        """Return the webhook configurations of a file."""
        configurations = installation.read_manifests(path, self._text(source, path), tuple(installation.WEBHOOKS))
        for configuration in configurations:
            installation.check_webhook(path, configuration)
        return configurations

    def _objects(self, source: Descriptor, path: Path) -> Sequence[Manifest]:
        """Return the objects of a file of `install.objects`."""
        manifests = installation.read_manifests(path, self._text(source, path))
        for manifest in manifests:
            objects.check(path, manifest)
        return manifests

    def _text(self, source: Descriptor, path: Path) -> str:
        """Return the text of a file with its placeholders replaced. `${port.…}` are ports of the operator or, if the
        source plays no operator, of its gang scheduler."""
        text = read_checked(source, path)
        role = Role.OPERATOR if Role.OPERATOR in source.roles else Role.GANG_SCHEDULER
        process_name = self._webhook_process if role is Role.OPERATOR else role
        return self._values.fill(ProcessLocation(process_name, process_name, role), source, text)

    def _players(self) -> dict[Role, Descriptor]:
        """Return the player of each role, if roles have separate users."""
        if self._values.cluster.role_kubeconfig is None:
            return {}
        implementations = [self._judged, *([self._supplied] if self._supplied is not None else [])]
        players = {
            role: next(
                (
                    candidate
                    for candidate in implementations
                    if role in candidate.processes or role in candidate.deployments
                ),
                None,
            )
            for role in Role
        }
        return {role: player for role, player in players.items() if player is not None}

    def _install_all(
        self,
        crds: Sequence[Manifest],
        webhooks: Sequence[Manifest],
        other_objects: Sequence[DesiredObject] = (),
        players: Mapping[Role, Descriptor] = MappingProxyType({}),
    ) -> None:
        """Install these objects, and remove all other webhook configurations that were installed before."""
        installed = {(hook["kind"], hook["metadata"]["name"]) for hook in webhooks}
        if crds or webhooks or other_objects or players or self.installed:
            try:
                asyncio.run(self._write(crds, webhooks, other_objects, players, self.installed - installed))
            except errors.REQUEST_FAILED as error:
                raise HarnessError(
                    f"the API server failed while CRDs and webhooks were installed: {error!r}",
                    hint="see the log of kube-apiserver",
                ) from error
        self.installed = installed

    async def _write(
        self,
        crds: Sequence[Manifest],
        webhooks: Sequence[Manifest],
        other_objects: Sequence[DesiredObject],
        players: Mapping[Role, Descriptor],
        stale: set[tuple[str, str]],
    ) -> None:
        async with Client.from_kubeconfig(self._values.cluster.kubeconfig, user_agent=USER_AGENT) as client:
            await installation.install_crds(client, crds)
            if crds or other_objects:  # before the webhooks, which may reject them as long as no process responds
                await objects.install(client, other_objects, crds)
            # After the objects, one of which may be a ClusterRole.
            await rights.bind_users(client, players, self._judged if self._values.cluster.declared_rights else None)
            await installation.install_webhooks(client, webhooks, stale, self._values.cluster.run)
