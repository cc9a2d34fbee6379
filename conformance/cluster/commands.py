"""`grove-conformance cluster …` and `grove-conformance assets`: parse, call, print."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from conformance.cluster import assets as programs
from conformance.cluster import fleets, nodes, progress
from conformance.cluster.controlplane import Cluster, find, list_clusters
from conformance.cluster.prune import prune as prune_state
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import Owner
from conformance.errors import UsageError
from kube.client import Client

app = typer.Typer(help="A fake GPU cluster of your own, to look at and to play with.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the cluster.")]


@app.command()
def up(
    name: Name = "dev",
    node: Annotated[
        list[str] | None,
        typer.Option("--nodes", metavar="PROFILE:COUNT", help=f"Nodes to make, {fleets.EXAMPLES}; can be repeated."),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL=KEY", help="The label key of zone, block or rack on these nodes, if it is to be another."
        ),
    ] = None,
    pool: Annotated[str, typer.Option(help="Label and taint the nodes as this pool.")] = "",
    apiserver_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API server; 0: a free one.")] = 0,
    scheduler: Annotated[bool, typer.Option(help="Whether kube-scheduler runs.")] = True,
    scheduler_name: Annotated[str, typer.Option(help="The name that kube-scheduler answers to.")] = "default-scheduler",
    owner: Annotated[int, typer.Option(min=0, help="Process after whose end `prune` may remove it; 0: none.")] = 0,
) -> None:
    """Bring up a cluster that stays until `cluster down`."""
    lives_for = Owner.of(owner) if owner else None
    keys = fleets.keys(level or [])
    wanted = [manifest for text in node or [] for manifest in fleets.asked(text, pool, keys)]
    if len({manifest["metadata"]["name"] for manifest in wanted}) < len(wanted):
        raise UsageError("a profile is given twice", where="--nodes", mend="add the counts up")
    settings = ClusterSettings(scheduler=scheduler, scheduler_name=scheduler_name, apiserver_port=apiserver_port)
    with progress.terminal(f"cluster {name}") as report:
        # It is ours until the nodes are there, so that nothing is left of a command that was killed half-way.
        cluster = Cluster.up(name, settings=settings, owner=True, report=report)
        try:
            if wanted:
                report(f"cluster {name}", f"making {len(wanted)} nodes")
                asyncio.run(_make(cluster, wanted))
        except BaseException:
            cluster.down()
            raise
        cluster.release(lives_for)
    typer.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(name: Name = "dev") -> None:
    """End a cluster and remove all of it."""
    find(name).down()


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Records as JSON, for programs.")] = False) -> None:
    """List the clusters of this checkout."""
    clusters = list_clusters()
    if as_json:
        typer.echo(json.dumps([asdict(cluster.record) | {"server": cluster.server} for cluster in clusters], indent=2))
        return
    table = Table("name", "state", "server", "owner", "created")
    for cluster in clusters:
        record = cluster.record
        well = "starting" if record.phase == "starting" else cluster.complaint() or "well"
        owner = f"process {record.owner.pid}" if record.owner else "-"
        table.add_row(cluster.name, well, cluster.server, owner, record.created)
    Console().print(table)


@app.command()
def kubeconfig(
    name: Name = "dev", raw: Annotated[bool, typer.Option("--raw", help="The text itself, not its path.")] = False
) -> None:
    """Print the path of a cluster's kubeconfig."""
    path = find(name).kubeconfig
    if not path.exists():
        raise UsageError("it is still starting", where=f"cluster {name}", mend="wait, or run: cluster list")
    typer.echo(path.read_text() if raw else path, nl=not raw)


@app.command()
def prune() -> None:
    """Remove clusters and processes that a killed run left behind."""
    pruned = prune_state()
    for name, reason in pruned.clusters.items():
        typer.echo(f"removed cluster {name}: {reason}")
    if pruned.processes:
        typer.echo(f"ended {', '.join(pruned.processes)}")
    if not pruned.clusters and not pruned.processes:
        typer.echo("nothing to remove")


def assets() -> None:
    """Fetch or build the control-plane programs, and say where they are."""
    with progress.terminal("assets") as report:
        found = programs.resolve_all(report)
    sources = programs.sources()
    for program in programs.programs():
        path = getattr(found, program.name.replace("-", "_"))
        typer.echo(f"{program.name:24} {program.group.version:8} {path} ({sources[program.name]})")


async def _make(cluster: Cluster, wanted: list[nodes.Manifest]) -> None:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="grove-conformance") as client:
        await nodes.create_nodes(client, wanted)
        await nodes.wait_until_schedulable(client, (manifest["metadata"]["name"] for manifest in wanted))
