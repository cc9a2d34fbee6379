"""Snapshots of a cluster: everything that its API server stores at one moment.

A snapshot is a copy of etcd's data. The copy is made while etcd is not running, so it is consistent. Requests to the
API server wait or fail for about a second. A restore replaces the data while nothing is running. Resource versions go
back, so watches have to start over, and every component is restarted. Callers hold the lock of the cluster
(`Cluster.busy`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from conformance import disk, documents
from conformance.cluster import etcd_data
from conformance.cluster.controlplane import Cluster
from conformance.cluster.health import COMPONENTS
from conformance.cluster.ports import Port
from conformance.cluster.progress import ProgressReporter, report_nothing
from conformance.cluster.state import CLUSTER_BYTES, NAME
from conformance.errors import UsageError

DEFAULT_NAME = "latest"
"""The default name of a snapshot."""
DISK_HINT = "make room, or remove a snapshot: cluster snapshots NAME --remove SNAPSHOT"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a cluster. `size` is in bytes."""

    name: str
    size: int
    created: datetime


def list_snapshots(cluster: Cluster) -> list[Snapshot]:
    """Return the snapshots of a cluster, the oldest first."""
    folder = _folder(cluster)
    targets = {path for path in folder.glob("*") if NAME.fullmatch(path.name)} | etcd_data.interrupted_targets(folder)
    snapshots = [
        Snapshot(target.name, etcd_data.size(path), datetime.fromtimestamp(path.stat().st_ctime, UTC))
        for target in targets
        if (path := etcd_data.complete_data(target)) is not None
    ]
    return sorted(snapshots, key=lambda snapshot: snapshot.created)


def take(cluster: Cluster, name: str, *, replace: bool = False, report: ProgressReporter = report_nothing) -> Snapshot:
    """Take a snapshot. It replaces an earlier snapshot of the same name only if `replace` is set. Raises UsageError if
    the name is invalid or taken, or if the disk is full, and HarnessError if etcd does not start again."""
    if not NAME.fullmatch(name):
        hint = "use 1 to 40 lower-case letters, digits and inner hyphens"
        raise UsageError(f"{name!r} is not a valid name of a snapshot", hint=hint)
    _finish(cluster)
    target = _folder(cluster) / name
    if target.exists() and not replace:
        hint = "choose another name, or add --replace"
        raise UsageError(f"a snapshot named {name!r} exists already", where=f"cluster {cluster.name}", hint=hint)
    with _disk_errors(cluster):
        target.parent.mkdir(mode=0o700, exist_ok=True)
        disk.require_space(target.parent, CLUSTER_BYTES, location=_location(cluster), hint=DISK_HINT)
        report(f"cluster {cluster.name}", f"copying the data of etcd to the snapshot {name}")
        with cluster.without(COMPONENTS[Port.ETCD], report=report):
            etcd_data.stage(cluster.workspace / etcd_data.DATA, target)
        etcd_data.replace(target)
    return next(snapshot for snapshot in list_snapshots(cluster) if snapshot.name == name)


def restore(cluster: Cluster, name: str, report: ProgressReporter = report_nothing) -> None:
    """Restore the content that the cluster had when a snapshot was taken, and return when the cluster is healthy. The
    caller has already ended the processes of an implementation. Raises UsageError if there is no such snapshot, or
    HarnessError if the cluster does not become healthy."""
    require(cluster, name)
    _finish(cluster)
    with _disk_errors(cluster):
        report(f"cluster {cluster.name}", f"restoring the snapshot {name}")
        etcd_data.stage(_folder(cluster) / name, cluster.workspace / etcd_data.DATA)
        with cluster.without(*cluster.monitor.pids(), report=report):
            etcd_data.replace(cluster.workspace / etcd_data.DATA)


def require(cluster: Cluster, name: str) -> None:
    """Raise UsageError unless the cluster has this snapshot."""
    names = [snapshot.name for snapshot in list_snapshots(cluster)]
    if name not in names:
        hint = documents.suggestion(name, names) if names else f"take one: cluster snapshot {cluster.name} {name}"
        raise UsageError(f"no snapshot {name!r}", where=f"cluster {cluster.name}", hint=hint)


def remove(cluster: Cluster, name: str) -> None:
    """Remove a snapshot. Raises UsageError if there is none with this name."""
    require(cluster, name)
    _finish(cluster)
    with _disk_errors(cluster):
        etcd_data.remove(_folder(cluster) / name)


def _finish(cluster: Cluster) -> None:
    """Finish the work of a killed command: if it was replacing a snapshot, either the old or the new snapshot
    remains."""
    with _disk_errors(cluster):
        for target in etcd_data.interrupted_targets(_folder(cluster)):
            etcd_data.finish_replacement(target)


def _folder(cluster: Cluster) -> Path:
    return cluster.directory / "snapshots"


def _location(cluster: Cluster) -> str:
    return f"cluster folder {cluster.directory}"


@contextmanager
def _disk_errors(cluster: Cluster) -> Iterator[None]:
    with disk.usage_errors(_location(cluster), DISK_HINT):
        yield
