"""`grove-conformance cluster capture`: the nodes of a running cluster as a fleet file, for `cluster up --nodes`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cluster import chosen_kubeconfig
from conformance.cluster.capture import fleet, lists


def capture(
    ctx: typer.Context,
    context: Annotated[str, typer.Option(help="Context of the kubeconfig; by default its current one.")] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig of the cluster; by default as kubectl chooses it.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Keep this label of nodes as well, with other values (repeatable)."),
    ] = None,
) -> None:
    """Print a running cluster's nodes and devices as a fleet for `cluster up --nodes`, without names and addresses. The
    cluster is only read. A line on stderr says what the fleet could not keep."""
    target = ctx.with_resource(chosen_kubeconfig.choose(kubeconfig, context))
    inventory = lists.read_cluster(target.path, " ".join(target.options) or f"--kubeconfig {target.path}")
    fleet_file = fleet.capture(inventory, label or ())
    typer.echo(fleet_file.text(), nl=False)
    for line in fleet_file.losses:
        typer.echo(line, err=True)
