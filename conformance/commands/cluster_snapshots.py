"""`grove-conformance cluster snapshot | restore | snapshots | start`: saves the data of a cluster, or restores them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from conformance.cluster import progress, snapshots
from conformance.commands import output
from conformance.commands.named_cluster import Name, RequiredName, find_started
from conformance.implementation import deployment

Snapshot = Annotated[str, typer.Argument(metavar="[SNAPSHOT]", help="Name of the snapshot.")]


def snapshot(
    name: RequiredName,
    snapshot: Snapshot = snapshots.DEFAULT_NAME,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a snapshot of this name.")] = False,
) -> None:
    """Take a snapshot of everything that the API server stores. Requests wait for about a second meanwhile."""
    cluster = find_started(name)
    with progress.terminal(f"snapshot {snapshot}") as report, cluster.hold_lock(report):
        stored = snapshots.take(cluster, snapshot, replace=replace, report=report)
    typer.echo(f"snapshot {stored.name} of cluster {name}: {stored.size >> 20} MiB")


def restore(name: RequiredName, snapshot: Snapshot = snapshots.DEFAULT_NAME) -> None:
    """Restore a snapshot: everything that was changed, deleted or created since is undone. Components and the
    implementation are restarted. You must restart your own programs that watch the cluster."""
    cluster = find_started(name)
    with progress.terminal(f"restore {snapshot}") as report, cluster.hold_lock(report):
        deployment.restore(cluster, snapshot, report)
    typer.echo(f"cluster {name} is as in its snapshot {snapshot}")


def list_or_remove(
    name: Name = "dev",
    remove: Annotated[list[str] | None, typer.Option("--remove", help="Remove this snapshot (repeatable).")] = None,
) -> None:
    """List the snapshots of a cluster, or remove some of them. Snapshots are deleted with their cluster."""
    cluster = find_started(name)
    if remove:
        with cluster.hold_lock():
            for snapshot_name in remove:
                snapshots.remove(cluster, snapshot_name)
                typer.echo(f"removed snapshot {snapshot_name}")
        return
    table = Table("snapshot", "created", "MiB")
    for stored in snapshots.list_snapshots(cluster):
        table.add_row(stored.name, stored.created.isoformat(timespec="seconds"), str(stored.size >> 20))
    if table.row_count:
        output.console().print(table)
    else:
        typer.echo("none")


def start(name: RequiredName) -> None:
    """Start the components of a cluster that have ended, and its implementation if one of its roles has ended. Data are
    kept."""
    cluster = find_started(name)
    with progress.terminal(f"cluster {name}") as report, cluster.hold_lock(report):
        deployment.resume(cluster, report)
