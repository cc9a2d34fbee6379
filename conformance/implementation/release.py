"""The deployment of an implementation in an existing cluster, by manifests or by a Helm chart: applying it, changing it
to another version, and removing the created objects."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence

from conformance.cluster.existing import helm_releases
from conformance.errors import HarnessError
from conformance.implementation import inherited, installation, installer, objects
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.fields import Helm
from conformance.implementation.installation import MANAGER
from conformance.implementation.objects import DesiredObject
from conformance.implementation.values import ProcessLocation, Values
from kube.client import Client
from kube.resource import CONFIG_MAPS, CRDS

AGENT = "grove-conformance/implementation"
HELM_SECONDS = 300.0
"""Seconds that a call of helm may take."""
HELM_VARIABLES = ("KUBECACHEDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


class Release:
    """The objects that one implementation has deployed. `apply` is called with the version that is to run now."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.deployed_version: Descriptor | None = None
        """The deployed version."""
        self._created: list[objects.CreatedObject] = []
        """Objects that did not exist before, in the order in which they were created."""

    def apply(self, desired: Descriptor) -> None:
        """Deploy a version, unless it is already deployed. Raises UsageError if a file is invalid, or HarnessError if
        Helm or the API server rejects something."""
        if self.deployed_version is desired:
            return
        if desired.install.helm is not None:
            self._deploy_chart(desired, desired.install.helm)
        else:
            asyncio.run(self._apply(self._read_manifests(desired)))
        self.deployed_version = desired

    def remove(self) -> None:
        """Remove the objects that `apply` has created. Objects that existed before stay. Raises HarnessError if the
        removal fails."""
        former_version, self.deployed_version = self.deployed_version, None
        if former_version is not None and (helm := former_version.install.helm) is not None:
            self._run_helm(
                former_version, ["uninstall", helm.release, "--namespace", helm.namespace, "--ignore-not-found"]
            )
            asyncio.run(self._delete_record(helm))
        elif former_version is not None:
            asyncio.run(self._remove())

    # -- manifests -----------------------------------------------------------------------------------------------

    def _read_manifests(self, desired: Descriptor) -> list[DesiredObject]:
        desired_objects: list[DesiredObject] = []
        for path in desired.manifests("manifests"):
            text = self._fill(desired, installer.read_checked(desired, path))
            desired_objects += [DesiredObject(manifest, path) for manifest in installation.read_manifests(path, text)]
        return desired_objects

    async def _apply(self, desired: Sequence[DesiredObject]) -> None:
        crds = [item.manifest for item in desired if item.manifest["kind"] == CRDS.kind]
        other_objects = [item for item in desired if item.manifest["kind"] != CRDS.kind]
        async with self._client() as client:
            await installation.install_crds(client, crds)
            self._created += await objects.install(client, other_objects, crds, self._values.cluster.run)

    async def _remove(self) -> None:
        """Delete the objects in reverse order of their creation, and return when all of them are gone: a namespace that
        is still being deleted would reject the objects that the next run deploys."""
        async with self._client() as client:
            for resource, namespace, name in reversed(self._created):
                await client.delete(resource, namespace, name, propagation="Foreground")

            async def all_deleted() -> bool:
                self._created = [item for item in self._created if await client.get_or_none(*item) is not None]
                return not self._created

            await installation.wait_until(
                all_deleted, f"what was deployed is still there {installation.TIMEOUT_SECONDS:g} s after its end"
            )

    def _fill(self, desired: Descriptor, text: str) -> str:
        """Replace placeholders. `${port.…}` and `${kubeconfig}` are those of the operator or, if the implementation
        plays no operator, of the gang scheduler."""
        role = Role.OPERATOR if Role.OPERATOR in desired.roles else Role.GANG_SCHEDULER
        return self._values.fill(ProcessLocation(role, role, role), desired, text)

    def _client(self) -> Client:
        return Client.from_kubeconfig(self._values.cluster.kubeconfig, user_agent=AGENT)

    # -- Helm ----------------------------------------------------------------------------------------------------

    def _deploy_chart(self, desired: Descriptor, helm: Helm) -> None:
        chart = self._fill(desired, helm.chart)
        arguments = ["upgrade", "--install", helm.release, chart if "://" in chart else str(desired.folder / chart)]
        arguments += ["--namespace", helm.namespace, "--create-namespace"]
        for name in helm.values:
            arguments += ["--values", str(desired.folder / self._fill(desired, name))]
        for name, value in helm.set.items():
            arguments += ["--set-string", f"{name}={_escape_for_helm(self._fill(desired, value))}"]
        asyncio.run(self._record_release(helm))
        self._run_helm(desired, arguments)

    async def _record_release(self, helm: Helm) -> None:
        """Record the release in the cluster, so that it can be removed even if this process is killed."""
        if run := self._values.cluster.run:
            async with self._client() as client:
                await client.apply(CONFIG_MAPS, helm_releases.note(helm.namespace, helm.release, run), manager=MANAGER)

    async def _delete_record(self, helm: Helm) -> None:
        if self._values.cluster.run:
            async with self._client() as client:
                name = helm_releases.note_name(helm.namespace, helm.release)
                await client.delete(CONFIG_MAPS, helm_releases.NAMESPACE, name)

    def _run_helm(self, descriptor: Descriptor, arguments: Sequence[str]) -> None:
        """Run helm. If it fails, raises HarnessError with helm's reason."""
        command = ["helm", *arguments, "--kubeconfig", str(self._values.cluster.kubeconfig)]
        environment = inherited.inherited_variables(os.environ, HELM_VARIABLES)
        location = descriptor.document.location("install", "helm")
        try:
            completed_process = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=HELM_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"helm {arguments[0]} failed: {error}", where=location) from error
        if completed_process.returncode:
            reason = " ".join(completed_process.stderr.split()) or f"exit code {completed_process.returncode}"
            raise HarnessError(
                f"helm {arguments[0]} failed: {reason}", where=location, hint="run it by hand to see more"
            )


def _escape_for_helm(value: str) -> str:
    """Return a value in which helm finds no additional assignment."""
    return value.replace("\\", "\\\\").replace(",", "\\,")
