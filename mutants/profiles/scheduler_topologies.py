"""Mutants of a ClusterTopologyBinding's reports about the topologies of schedulers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around
from reference_impl.api.kai import KaiTopology
from reference_impl.api.models import ClusterTopologyBinding, SchedulerTopologyStatus, TopologyBindingStatus
from reference_impl.plan import kai, topology_status

Find = Callable[[str], KaiTopology | None]


@mutant("operator", "reports every topology that exists as in sync", "TOPO-053")
@around(topology_status, "_kai_status")
def _drift_unreported(original: Original, binding: ClusterTopologyBinding, find: Find) -> SchedulerTopologyStatus:
    entry = original(binding, find)
    exists = entry.scheduler_backend_topology_observed_generation is not None
    return msgspec.structs.replace(entry, in_sync=exists)


@mutant("operator", "reports on topologies alone that others manage", "TOPO-052")
@around(topology_status, "status")
def _managed_topologies_unreported(
    original: Original, binding: ClusterTopologyBinding, find: Find, now: str
) -> TopologyBindingStatus:
    if kai.external_topology(binding):
        return original(binding, find, now)
    return binding.status or TopologyBindingStatus()
