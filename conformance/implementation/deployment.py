"""The start of an implementation on a cluster: for the suite, for `scale`, or so that it outlives the starting
command."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import psutil

from conformance.cluster import kubeconfigs, policies, processes, snapshots
from conformance.cluster.controlplane import Cluster
from conformance.cluster.policies import Policies
from conformance.cluster.progress import ProgressReporter
from conformance.cluster.state import Owner
from conformance.errors import UsageError
from conformance.grove.kinds import GROVE
from conformance.implementation import installation, loading, objects
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import Driver
from conformance.implementation.fields import DEPLOYED_STARTS
from conformance.implementation.objects import DesiredObject
from conformance.implementation.values import ClusterFacts
from kube.client import Client
from kube.resource import CRDS


def load(
    name_or_path: str, settings: Mapping[str, str], *, options: tuple[str, str] = loading.OPTIONS
) -> tuple[Descriptor, Descriptor | None]:
    """Load an implementation, and the implementation that supplies the roles that the first does not play. Raises
    UsageError, which names the `options` that gave both arguments."""
    judged = loading.load(name_or_path, settings, options=options)
    require_containers(judged)
    return judged, supplier_of(judged)


def supplier_of(judged: Descriptor) -> Descriptor | None:
    """Return the implementation that supplies the roles that `judged` does not play; None if `judged` plays all
    roles."""
    if judged.roles == set(Role):
        return None
    options = (judged.document.location("suppliedBy"), judged.document.location("supplied"))
    return loading.load(judged.supplied_by, judged.supplied, options=options)


def require_containers(judged: Descriptor) -> None:
    """Raise UsageError if the implementation is deployed into the cluster: on fake nodes, nothing would run in its
    pods."""
    if judged.start in DEPLOYED_STARTS:
        raise UsageError(
            f"start: {judged.start} needs nodes that run containers, which a fake cluster does not have",
            where=judged.document.location("start"),
            hint="judge it with run --cluster existing, on a cluster that has some",
        )


def require_crds(judged: Descriptor) -> None:
    """Raise UsageError for an operator whose descriptor does not install the CRDs of Grove, because a cluster of the
    suite has none."""
    if Role.OPERATOR not in judged.roles:
        return
    files = judged.manifests("crds")
    crds = (crd for path in files for crd in installation.read_manifests(path, installation.text(path)))
    names = {crd["metadata"]["name"] for crd in crds}
    missing_names = [name for kind in GROVE if (name := f"{kind.plural}.{kind.group}") not in names]
    if missing_names:
        raise UsageError(
            f"an operator needs the CRDs of Grove on a fake cluster: "
            f"{', '.join(missing_names)} not in {len(files)} files",
            where=judged.document.location("install", "crds"),
            hint="name your files, or ours: ${project}/reference_impl/crds",
        )


def facts_of(cluster: Cluster) -> ClusterFacts:
    """Return what a driver needs to know about a cluster of the suite."""
    return ClusterFacts(
        kubeconfigs.suite_kubeconfig(cluster),
        cluster.directory,
        cluster.marker(),
        cluster.port,
        lambda role: kubeconfigs.role_kubeconfig(cluster, role),
        declared_rights=policies.RBAC in cluster.record.policies,
    )


def install_policies(cluster: Cluster, cluster_policies: Policies, report: ProgressReporter) -> None:
    """Create the objects of the policies, and return once admission policies are applied to requests. Raises
    HarnessError if the API server rejects an object."""
    manifests = [DesiredObject(manifest, path) for path, manifest in cluster_policies.objects]
    crds = [manifest for _, manifest in cluster_policies.objects if manifest["kind"] == CRDS.kind]

    async def install() -> None:
        async with Client.from_kubeconfig(
            kubeconfigs.suite_kubeconfig(cluster), user_agent="grove-conformance"
        ) as client:
            await objects.install(client, manifests, crds)

    if manifests:
        report(f"cluster {cluster.name}", f"installing the policies {', '.join(cluster_policies.words)}")
        asyncio.run(install())


def start(cluster: Cluster, judged: Descriptor, supplied: Descriptor | None, report: ProgressReporter) -> None:
    """Install an implementation and start its processes, which end with the cluster. Return when the processes are
    ready. Raises HarnessError if the installation or a process fails."""
    driver = Driver(judged, facts_of(cluster), supplied)
    report(judged.name, "installing CRDs and webhooks")
    driver.install()
    cluster.learn_new_kinds()
    report(judged.name, f"starting, as scheduler {judged.scheduler_name}")
    driver.start()
    hand_over(driver, cluster)
    logs = driver.logs()
    for name in cluster.record.roles:
        report(judged.name, f"the log of the {name} is {logs[name]}")


def resume(cluster: Cluster, report: ProgressReporter) -> None:
    """Start the dead components of a cluster. If a role of the cluster's implementation has ended, restart all of its
    roles. Raises UsageError if the descriptor is no longer valid, or HarnessError if a component or a role does not
    start."""
    cluster.start(report)
    if not all(process.is_alive() for process in cluster.record.roles.values()):
        _restart_roles(cluster, report)


def restore(cluster: Cluster, snapshot: str, report: ProgressReporter) -> None:
    """Restore a cluster from a snapshot, and restart its implementation, whose memory does not match the restored
    state. Raises UsageError if the snapshot or the descriptor is missing, or HarnessError if the cluster or a role does
    not start."""
    snapshots.require(cluster, snapshot)
    if cluster.record.roles:
        load(cluster.record.descriptor, cluster.record.settings)  # reports mistakes before anything is ended
    _end_roles(cluster)
    snapshots.restore(cluster, snapshot, report)
    _restart_roles(cluster, report)


def _restart_roles(cluster: Cluster, report: ProgressReporter) -> None:
    if cluster.record.roles:
        _end_roles(cluster)
        start(cluster, *load(cluster.record.descriptor, cluster.record.settings), report)


def _end_roles(cluster: Cluster) -> None:
    """Kill the processes of the implementation. Their supervisors end the processes' descendants."""
    for owner in cluster.record.roles.values():
        if owner.is_alive():
            processes.end_one(psutil.Process(owner.pid))


def hand_over(driver: Driver, cluster: Cluster) -> None:
    """Let the processes of an implementation outlive this process, until the cluster ends."""
    judged = driver.descriptor
    driver.detach()
    pids = {name: pid for role in Role for name, pid in driver.pids(role).items()}
    owners = {name: Owner.of(pid) for name, pid in pids.items()}
    cluster.record_implementation(judged.name, owners, judged.document.path.absolute(), judged.settings)
