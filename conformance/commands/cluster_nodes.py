"""`grove-conformance cluster nodes add | remove | profiles`, and the nodes that a cluster starts with."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from conformance.cluster import fleet_creation, fleets, gpu_devices, gpu_occupancy, node_profiles, nodes
from conformance.cluster.controlplane import Cluster
from conformance.commands import output
from conformance.commands.named_cluster import RequiredName, call_api, find_started
from kube.client import Client
from kube.resource import NODES

app = typer.Typer(help="Add nodes to a cluster, or remove some.", no_args_is_help=True, add_completion=False)

Level = Annotated[
    list[str] | None,
    typer.Option(metavar="LEVEL=KEY", help="Use KEY as the node label for LEVEL (zone, block or rack) (repeatable)."),
]
Pool = Annotated[str, typer.Option(help="Node pool, as a label and a taint of its nodes.")]
Gpus = Annotated[
    gpu_devices.Form,
    typer.Option(help="Offer GPUs as the resource nvidia.com/gpu, or as devices of ResourceSlices."),
]
Occupied = Annotated[
    str, typer.Option(metavar="COUNT/GPUS", help="Take so many of the GPUs of each node, for example 2/8.")
]
_ARGUMENT = "NODES"


@app.command()
def add(
    name: RequiredName,
    texts: Annotated[list[str], typer.Argument(metavar="PROFILE:COUNT…", help=f"Nodes, {fleets.EXAMPLES}.")],
    level: Level = None,
    pool: Pool = "",
    gpus: Gpus = "extended",
    occupied: Occupied = "",
) -> None:
    """Add nodes, and wait until they are Ready. New nodes get the first free names. Racks and blocks are added as new
    ones."""
    cluster, keys = find_started(name), fleets.label_keys(level or [])

    async def add_nodes(client: Client) -> list[str]:
        used_names = {node["metadata"]["name"] for node in await client.list(NODES)}
        new_nodes: list[nodes.Manifest] = []
        classes = [entry for text in texts for entry in fleets.requested_classes(text, location=_ARGUMENT)]
        for text in texts:
            batch = fleets.requested_nodes(text, pool, keys, used_names=used_names, location=_ARGUMENT)
            used_names |= {manifest["metadata"]["name"] for manifest in batch}
            new_nodes += gpu_devices.offered(batch, gpus)
        new_nodes = gpu_occupancy.with_occupancy(new_nodes, occupied)
        await fleet_creation.create(client, new_nodes, classes, location=_ARGUMENT)
        return [manifest["metadata"]["name"] for manifest in new_nodes]

    for node in call_api(cluster, add_nodes):
        typer.echo(f"node/{node} added")


@app.command()
def remove(
    name: RequiredName,
    texts: Annotated[
        list[str], typer.Argument(metavar="NODE|PROFILE:COUNT…", help="Nodes by name, or the last ones of a profile.")
    ],
    pool: Pool = "",
) -> None:
    """Remove nodes, as if their machines had vanished. The pod garbage collector deletes their pods within a minute. To
    evict the pods first, use `cluster kubectl NAME -- drain NODE`."""
    cluster = find_started(name)

    async def remove_nodes(client: Client) -> list[str]:
        existing = {node["metadata"]["name"] for node in await client.list(NODES)}
        removed_nodes: list[str] = []
        for text in (text for text in texts if text not in removed_nodes):
            batch = fleets.chosen_nodes(text, existing, pool, location=_ARGUMENT)
            existing -= set(batch)
            removed_nodes += batch
        await nodes.delete_nodes(client, removed_nodes)
        return removed_nodes

    for node in call_api(cluster, remove_nodes):
        typer.echo(f"node/{node} removed")


@app.command()
def profiles() -> None:
    """List the node profiles, and the fleets that combine several profiles."""
    table = Table("name", "GPUs", "description")
    for profile in node_profiles.names():
        node_profile = node_profiles.profile(profile)
        table.add_row(profile, str(node_profile.gpus), node_profile.description)
    for fleet in fleets.names():
        gpus = sum(part.profile.gpus * part.nodes for part in fleets.fleet(fleet).parts)
        table.add_row(fleet, str(gpus), fleets.fleet(fleet).description)
    output.console().print(table)


def create(cluster: Cluster, manifests: list[nodes.Manifest], classes: list[nodes.Manifest]) -> None:
    """Create DeviceClasses and nodes, and wait until the nodes are Ready. Raises UsageError if the API server rejects
    one of them, or HarnessError if the nodes do not become Ready."""
    call_api(cluster, lambda client: fleet_creation.create(client, manifests, classes, location=fleets.OPTION))
