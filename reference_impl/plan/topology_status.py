"""The status of a ClusterTopologyBinding, which shows whether the topology resources of schedulers have the binding's
levels (COND-16, OBJ-781, CHG-CT-05). The functions are pure."""

from __future__ import annotations

from collections.abc import Callable

from reference_impl.api.kai import KaiTopology
from reference_impl.api.models import (
    ClusterTopologyBinding,
    Condition,
    SchedulerTopology,
    SchedulerTopologyStatus,
    TopologyBindingStatus,
)
from reference_impl.plan import conditions, kai, ownership

DRIFT = "SchedulerTopologyDrift"


def status(
    binding: ClusterTopologyBinding, find: Callable[[str], KaiTopology | None], now: str
) -> TopologyBindingStatus:
    """Return the status of a binding. KAI is the only scheduler whose topologies the operator manages. `find` returns a
    KAI Topology by name."""
    bindings = binding.spec.scheduler_topology_bindings or []
    unmanaged = [entry for entry in bindings if entry.scheduler_name != kai.SCHEDULER]
    entries = [_kai_status(binding, find), *map(_unmanaged_status, unmanaged)]
    old = binding.status or TopologyBindingStatus()
    return TopologyBindingStatus(
        observed_generation=binding.metadata.generation,
        conditions=conditions.with_condition(old.conditions, _condition(binding, entries, bool(unmanaged), now)),
        scheduler_topology_statuses=entries,
    )


def _kai_status(binding: ClusterTopologyBinding, find: Callable[[str], KaiTopology | None]) -> SchedulerTopologyStatus:
    name = kai.external_topology(binding)
    topology, problem = find(name or binding.metadata.name), None
    keys = [level.key for level in binding.spec.levels]
    if topology is None:
        problem = "the Topology does not exist"
    elif not name and not ownership.owns(binding, topology):
        problem = "the Topology of this name is not controlled by the ClusterTopologyBinding"
    elif topology.keys != keys:
        problem = f"the Topology has the levels {', '.join(topology.keys)}, not {', '.join(keys)}"
    return SchedulerTopologyStatus(
        scheduler_name=kai.SCHEDULER,
        topology_reference=name or binding.metadata.name,
        in_sync=problem is None,
        scheduler_backend_topology_observed_generation=topology.metadata.generation if topology is not None else None,
        message=problem,
    )


def _unmanaged_status(topology: SchedulerTopology) -> SchedulerTopologyStatus:
    return SchedulerTopologyStatus(
        scheduler_name=topology.scheduler_name,
        topology_reference=topology.topology_reference,
        message=f"the operator manages no topologies of the scheduler {topology.scheduler_name}",
    )


def _condition(
    binding: ClusterTopologyBinding, entries: list[SchedulerTopologyStatus], unavailable: bool, now: str
) -> Condition:
    if unavailable:
        value, reason, message = "Unknown", "TopologyNotFound", "the operator does not manage topologies of a scheduler"
    elif all(entry.in_sync for entry in entries):
        value, reason, message = "False", "InSync", "the topologies of all schedulers have the levels of the binding"
    else:
        value, reason, message = "True", "Drift", "the topology of a scheduler does not have the levels of the binding"
    return Condition(
        type=DRIFT,
        status=value,
        reason=reason,
        message=message,
        last_transition_time=now,
        observed_generation=binding.metadata.generation,
    )
