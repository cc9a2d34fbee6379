"""The resources that a run records: the resources of Grove and of operators, if they are served, and the resources that
the descriptor names."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.grove.kinds import (
    COMPUTE_DOMAINS,
    GROVE,
    PODGANGMAPS,
    RESOURCE_CLAIMS,
    TOPOLOGY_BINDINGS,
    WORKLOAD_API,
)
from conformance.grove.labels import PART_OF
from conformance.history.recorder import WATCHED, Watched
from conformance.implementation.descriptor import Descriptor
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Api
from kube.resource import CONFIG_MAPS, LEASES, NAMESPACES

SCHEDULER_TOPOLOGIES = "scheduler-topologies"
"""The feature of operators that report on the topology resources of schedulers. ClusterTopologyBindings are recorded
only for this feature."""


def resources(judged: Descriptor, api: Api) -> list[Watched]:
    """Return the resources to record. Raises Blocked if a resource that the descriptor names is not served."""
    missing = {str(kind) for kind in (*GROVE, RESOURCE_CLAIMS)} - set(api.served)
    watched = [
        resource for resource in WATCHED if str(resource.resource) not in missing and resource.resource != LEASES
    ]
    watched.append(Watched(LEASES, fields=f"metadata.name={judged.lease}"))
    if str(COMPUTE_DOMAINS) in api.served:
        watched.append(Watched(COMPUTE_DOMAINS, PART_OF))
    if SCHEDULER_TOPOLOGIES in judged.features and str(TOPOLOGY_BINDINGS) in api.served:
        watched.append(Watched(TOPOLOGY_BINDINGS))
    if str(PODGANGMAPS) in api.served:
        watched.append(Watched(PODGANGMAPS))
    watched += [Watched(api.served[kind]) for kind in WORKLOAD_API if kind in api.served]
    for index, name in enumerate(judged.record):
        if name not in api.served:
            place = judged.document.location("record", index)
            raise Blocked(f"{place}: the API server serves no {name} (is its CRD installed?)", "implementation")
        watched.append(Watched(api.served[name], evidence=True))
    return watched


def unrecorded(recorded: Sequence[Watched]) -> list[Watched]:
    """Return the other resources that are often written on a cluster of the suite: namespaces and the objects that the
    control plane creates in them, Leases of nodes, and users' objects of kinds that are recorded only for operators."""
    recorded_resources = {watched.resource for watched in recorded if watched.fields is None}
    [lease] = [watched.fields for watched in recorded if watched.resource == LEASES and watched.fields is not None]
    frequent = [Watched(NAMESPACES), Watched(CONFIG_MAPS), Watched(LEASES, fields=lease.replace("=", "!=", 1))]
    without_label = [Watched(watched.resource, f"!{PART_OF}") for watched in recorded if watched.labels == PART_OF]
    return [*(watched for watched in frequent if watched.resource not in recorded_resources), *without_label]
