"""Removes the remains of killed runs of this checkout, or of all of the user's checkouts.

Nothing is guessed: a process is ended if it has the marker of a dead cluster, and a folder is removed if the owner in
its record is dead.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.cluster import locks, processes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.ports import Ports
from conformance.cluster.state import StateRoot, state_root


@dataclass
class PruneResult:
    """The removed clusters, processes and port claims, and the clusters that were kept."""

    clusters: dict[str, str] = field(default_factory=dict)
    """Maps the name of a removed cluster to the reason why it was dead."""
    processes: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    """The first ports of the released blocks."""
    owner_pids: dict[str, int] = field(default_factory=dict)
    """Maps the name of a kept cluster to the living process that owns it. The owner may be taking the cluster down
    right now."""


def prune(state: StateRoot | None = None) -> PruneResult:
    """Remove dead clusters, and processes and port claims that belong to no cluster. Return what was removed.

    The clusters of another checkout may have been started by another version of the suite; if their records cannot be
    read, they are left alone.
    """
    state = state or StateRoot()
    is_default = state.root == state_root()
    result = PruneResult()
    with state.lock():
        if not is_default and any(state.read(name) is None for name in state.names()):
            return result
        for name in state.names():
            if reason := _death_reason(state, name, is_default=is_default):
                result.clusters[name] = reason
        records = [state.read(name) for name in state.names() if name not in result.clusters]
        living_uids = {record.uid for record in records if record is not None}
        result.owner_pids = {record.name: record.owner.pid for record in records if record is not None and record.owner}

        def is_orphaned(environment: Mapping[str, str]) -> bool:
            uid = environment.get(processes.CLUSTER)
            return (
                environment.get(processes.STATE_ROOT) == str(state.root) and uid is not None and uid not in living_uids
            )

        result.processes = processes.end_marked(
            is_orphaned
        )  # first, because a living process could write its folder again
        for name in result.clusters:
            state.remove(name)
        for folder in state.leftovers():
            shutil.rmtree(folder, ignore_errors=True)
        ports = Ports()
        for directory in set(ports.claims().values()):
            if directory.parent == state.clusters and not directory.exists():
                result.ports += ports.release(directory)
    return result


def _death_reason(state: StateRoot, name: str, *, is_default: bool) -> str:
    """Return the reason why the cluster `name` is dead; empty if it is alive."""
    record = state.read(name)
    if record is None:
        return "its record cannot be read"
    if record.phase == "starting" or record.owner is not None:
        return state.abandonment_reason(name)
    cluster = Cluster(state, record)
    if locks.is_held(cluster.lock):
        return ""
    missing = cluster.monitor.missing() if is_default or not cluster.monitor.pids() else []
    return f"{', '.join(missing)} does not run" if missing else ""
