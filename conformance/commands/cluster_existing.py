"""`grove-conformance cluster capture | clean`: the commands for clusters that the suite did not start.

`capture` prints the nodes of a running cluster as a fleet file, for `cluster up --nodes`; `clean` removes objects that
killed runs left behind.
"""

from __future__ import annotations

from itertools import groupby
from typing import Annotated

import typer

from conformance.cluster import chosen_kubeconfig
from conformance.cluster.capture import fleet, lists
from conformance.commands.chosen_cluster import Context, Kubeconfig


def capture(
    ctx: typer.Context,
    context: Context = "",
    kubeconfig: Kubeconfig = None,
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


def clean(
    ctx: typer.Context,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    run: Annotated[str, typer.Option(metavar="RUN", help="Remove only what this run has left.")] = "",
) -> None:
    """Remove objects that killed runs left behind on an existing cluster, and restore its KWOK Stages."""
    from conformance.suite.session import existing, occupation  # slow to import, and used only here

    target = ctx.with_resource(chosen_kubeconfig.choose(kubeconfig, context))
    existing.require_usable(target.path)
    removed = occupation.clean(target.path, run)
    groups = groupby(
        sorted(removed, key=lambda leftover: (str(leftover.resource), leftover.run)),
        lambda leftover: (leftover.resource, leftover.run),
    )
    for (resource, made_by), members in groups:
        names = sorted(
            f"{leftover.namespace}/{leftover.name}" if leftover.namespace else leftover.name for leftover in members
        )
        typer.echo(f"removed {resource} of the run {made_by}: {', '.join(names)}")
    if not removed:
        typer.echo("nothing to remove")
