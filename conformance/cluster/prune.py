"""Removing what killed runs left behind, of this checkout only.

Nothing is ever taken by a guess: a process goes when it carries the marker of a cluster that is dead, a folder when its
record says that whoever it lived for is dead.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.cluster import processes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.ports import Ports
from conformance.cluster.state import State


@dataclass
class Pruned:
    """What was removed."""

    clusters: dict[str, str] = field(default_factory=dict)
    """Name → why it was dead."""
    processes: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    """First ports of blocks."""


def prune(state: State | None = None) -> Pruned:
    """Removes dead clusters, and processes and port claims that belong to no cluster; returns what it removed."""
    state = state or State()
    pruned = Pruned()
    with state.lock():
        for name in state.names():
            if reason := _dead(state, name):
                pruned.clusters[name] = reason
        records = (state.read(name) for name in state.names() if name not in pruned.clusters)
        living = {record.uid for record in records if record is not None}

        def orphaned(environment: Mapping[str, str]) -> bool:
            uid = environment.get(processes.CLUSTER)
            return environment.get(processes.STATE_ROOT) == str(state.root) and uid is not None and uid not in living

        pruned.processes = processes.end(orphaned)  # first: a living one could write its folder anew
        for name in pruned.clusters:
            state.remove(name)
        for folder in state.leftovers():
            shutil.rmtree(folder, ignore_errors=True)
        ports = Ports()
        for directory in set(ports.claims().values()):
            if directory.parent == state.clusters and not directory.exists():
                pruned.ports += ports.release(directory)
    return pruned


def _dead(state: State, name: str) -> str:
    """Why the cluster `name` is dead; empty if it lives."""
    record = state.read(name)
    if record is None:
        return "its record cannot be read"
    if record.phase == "starting":
        return "" if record.creator.alive() else "the process that was starting it is gone"
    if record.owner is not None:
        return "" if record.owner.alive() else f"the process that it belonged to ({record.owner.pid}) is gone"
    missing = Cluster(state, record).missing_components()
    return f"{', '.join(missing)} does not run" if missing else ""
