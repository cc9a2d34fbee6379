"""`--cluster existing`: judge on a running cluster, which is either one of the suite's or declared disposable by its
owner.

Objects that the suite installs stay, except webhook configurations, which would cause every request to be rejected once
their process is gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from conformance import known_secrets
from conformance.cluster import features, outages, preflight
from conformance.cluster.controlplane import Cluster, list_clusters
from conformance.cluster.existing.marks import run_of
from conformance.cluster.features import FeatureRequest
from conformance.cluster.health import COMPONENTS
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.cluster.outages import MonitoredComponent, Watcher
from conformance.cluster.ports import DriverPorts, Port, Ports
from conformance.cluster.state import Owner
from conformance.errors import UsageError
from conformance.grove.kinds import DEFAULT_SCHEDULER
from conformance.implementation import deployment
from conformance.implementation.descriptor import Descriptor
from conformance.implementation.installation import WEBHOOKS
from conformance.implementation.values import ClusterFacts
from conformance.suite.scenes.api import Api, Loop
from conformance.suite.session import foreign
from kube.client import Client
from kube.resource import CRDS, NAMESPACES

DISPOSABLE = "conformance.grove.io/disposable"
"""The label (`true`, on the namespace kube-system) by which the owner of a cluster declares it disposable."""

HOOKS_API_GROUP = "admissionregistration.k8s.io"
HOOK_KINDS = frozenset({*WEBHOOKS, "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"})

ABILITY_TIMEOUT_SECONDS = 4.0
"""Seconds within which a fake node and its pods must behave as expected. It usually takes about one."""


def server_of(kubeconfig: Path) -> str:
    """Return the API server of a kubeconfig. Raises UsageError for a malformed file."""
    from kubernetes import client, config  # here: the import takes longer than most commands

    settings = client.Configuration()
    load: Callable[..., None] = config.load_kube_config
    try:
        load(config_file=str(kubeconfig), client_configuration=settings)
    except Exception as error:
        problem = " ".join(str(error).split())
        raise UsageError(
            f"is not a kubeconfig: {problem}", where=f"--kubeconfig {kubeconfig}", hint="give one"
        ) from None
    return str(settings.host)


def own_cluster(kubeconfig: Path) -> Cluster | None:
    """Return the cluster of this checkout to which a kubeconfig points; None if it points to any other cluster."""
    server = server_of(kubeconfig)
    return next((c for c in list_clusters() if c.server == server), None)


def check(kubeconfig: Path, api: Api) -> None:
    """Raise UsageError unless the cluster is one of the suite's or declared disposable."""
    if own_cluster(kubeconfig) is not None:
        return
    labels = api.get("namespaces", None, "kube-system")["metadata"].get("labels") or {}
    if labels.get(DISPOSABLE) != "true":
        raise UsageError(
            f"the cluster at {server_of(kubeconfig)} is neither ours nor given away",
            where=f"--kubeconfig {kubeconfig}",
            hint=f"if anything in it may be destroyed: kubectl label namespace kube-system {DISPOSABLE}=true",
        )


def require_usable(kubeconfig: Path) -> None:
    """Check before a run that the cluster is usable: what `check` checks, and the user's permissions or the components.
    Raises UsageError if a check fails, or HarnessError if the cluster does not respond."""
    loop = Loop()
    try:
        api = Api(loop, kubeconfig, "grove-conformance/suite", {"namespaces.": NAMESPACES})
        try:
            check(kubeconfig, api)
            _preflight(kubeconfig, api)
        finally:
            api.close()
    finally:
        loop.close()


def effects(kubeconfig: Path, implementations: Sequence[Descriptor]) -> list[str]:
    """Return lines that the owner of a cluster should know before a run: its version, and what the run will create.
    Empty for a cluster of the suite."""
    if own_cluster(kubeconfig) is not None:
        return []
    loop = Loop()
    try:
        api = Api(loop, kubeconfig, "grove-conformance/suite", {str(CRDS): CRDS})
        try:
            lines = foreign.effects(api, implementations)
        finally:
            api.close()
    finally:
        loop.close()
    return [f"the cluster at {server_of(kubeconfig)} has Kubernetes {version(kubeconfig)}", *lines]


def version(kubeconfig: Path) -> str:
    """Return the version of the API server, such as `1.37.2`, including any suffix of its distribution."""

    async def get_version() -> bytes:
        async with Client.from_kubeconfig(kubeconfig, user_agent="grove-conformance") as client:
            return await client.request("GET", "/version")

    return str(json.loads(asyncio.run(get_version()))["gitVersion"]).removeprefix("v")


def versions(kubeconfig: Path) -> dict[str, str]:
    """Return the known components of a cluster: product → version."""
    cluster = own_cluster(kubeconfig)
    return cluster.versions if cluster is not None else {"kubernetes": version(kubeconfig)}


def require_features(kubeconfig: Path, requested: FeatureRequest) -> None:
    """Raise UsageError unless the components of a cluster have these features. On a cluster that is not one of the
    suite's, kube-scheduler is expected to have its default name."""
    minor = ".".join(version(kubeconfig).split(".")[:2])
    record = cluster.record if (cluster := own_cluster(kubeconfig)) is not None else None
    expected = preflight.ExpectedFeatures.of(
        features.resolve(requested, minor), minor, record is None or record.scheduler
    )
    scheduler = (record and record.scheduler_name) or DEFAULT_SCHEDULER

    async def check() -> None:
        async with Client.from_kubeconfig(kubeconfig, user_agent="grove-conformance") as client:
            await preflight.check(client, expected, scheduler=scheduler)

    if expected.version:
        asyncio.run(check())


def _preflight(kubeconfig: Path, api: Api) -> None:
    """Check the components of a cluster of the suite, or the user's rights on any other cluster. Raises UsageError if a
    component has failed or a right is missing."""
    location, cluster = f"--kubeconfig {kubeconfig}", own_cluster(kubeconfig)
    if cluster is None:
        foreign.require_rights(api, location)
        return
    watcher = outages.watch(cluster)
    watcher.check()
    if broken := watcher.overlapping(0):
        hint = f"grove-conformance cluster down {cluster.name}, then up {cluster.name}"
        raise UsageError(f"the cluster is not well: {broken[0]}", where=location, hint=hint)


def facts(kubeconfig: Path, directory: Path, run: str, stack: ExitStack) -> ClusterFacts:
    """Return the facts about the cluster that a driver needs. `directory` is for the logs and ports if the suite did
    not start the cluster; objects that are created get the label of `run`."""
    cluster = own_cluster(kubeconfig)
    if cluster is not None:
        return replace(deployment.facts_of(cluster), run=run)
    directory.mkdir(parents=True, exist_ok=True)
    first_port = Ports().claim(directory)
    stack.callback(Ports().release, directory)
    ports = DriverPorts(directory)
    known_secrets.learn_kubeconfig(kubeconfig)
    return ClusterFacts(kubeconfig, directory, {}, lambda index: ports.port(first_port, index), run=run)


def watcher(kubeconfig: Path, api: Api, time_scale: float, kubelet_simulator: Owner | None = None) -> Watcher:
    """Return a watcher of every component if the cluster is one of the suite's. For other clusters, the watcher
    observes only the API server and the process that the run has started alongside KWOK."""
    cluster = own_cluster(kubeconfig)
    if cluster is not None:
        return outages.watch(cluster, time_scale)
    server = MonitoredComponent(COMPONENTS[Port.APISERVER], page=lambda: api.complaint(2))
    processes = (
        [outages.process_component(kubelet.COMPONENT, kubelet_simulator)] if kubelet_simulator is not None else []
    )
    return Watcher([server, *processes], time_scale=time_scale)


def hooks(api: Api) -> frozenset[str]:
    """Return the names of the cluster's webhooks and admission policies that were not installed by a run."""

    async def list_hooks(client: Client) -> frozenset[str]:
        names = set[str]()
        for resource in api.served.values():
            if resource.group == HOOKS_API_GROUP and resource.kind in HOOK_KINDS:
                for configuration in await client.list(resource):
                    if not run_of(configuration):
                        names |= {
                            str(hook["name"]) for hook in configuration.get("webhooks") or [configuration["metadata"]]
                        }
        return frozenset(names)

    return api.work(list_hooks)


def keep_webhooks(api: Api, stack: ExitStack) -> None:
    """Register a callback that removes, at the end, the webhook configurations that were created from now on."""
    plurals = [resource.plural for resource in WEBHOOKS.values()]
    existing_names = {plural: set(api.names(plural)) for plural in plurals}

    def remove() -> None:
        for plural in plurals:
            api.delete(plural, None, set(api.names(plural)) - existing_names[plural])

    stack.callback(remove)
