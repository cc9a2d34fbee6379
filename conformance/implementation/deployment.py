"""An implementation on a cluster to play with: it outlives the command that started it, and ends with the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.cluster.controlplane import Cluster
from conformance.cluster.progress import Report
from conformance.cluster.state import Owner
from conformance.implementation import descriptor
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import ClusterFacts, Driver

REFERENCE = "reference"
"""The descriptor that supplies the roles which an implementation doesn't play."""


def load(name_or_path: str, settings: Mapping[str, str]) -> tuple[Descriptor, Descriptor | None]:
    """An implementation, and who supplies the roles that it doesn't play. Raises UsageError."""
    judged = descriptor.load(name_or_path, settings, options=("--implementation", "--set"))
    return judged, None if judged.roles == set(Role) else descriptor.load(REFERENCE)


def start(cluster: Cluster, judged: Descriptor, supplied: Descriptor | None, report: Report) -> None:
    """Installs an implementation and starts its processes; returns when they are ready. Raises HarnessError."""
    facts = ClusterFacts(cluster.kubeconfig, cluster.directory, cluster.environment(), cluster.port)
    driver = Driver(judged, facts, supplied)
    report(judged.name, "installing CRDs and webhooks")
    driver.install()
    cluster.learn_new_kinds()
    report(judged.name, f"starting, as scheduler {judged.scheduler_name}")
    driver.start()
    driver.detach()
    pids = {role: driver.pid(role) for role in Role}
    cluster.plays(judged.name, {role: Owner.of(pid) for role, pid in pids.items() if pid is not None})
    for role in cluster.record.roles:
        report(judged.name, f"the log of the {role} is {driver.log(Role(role))}")
