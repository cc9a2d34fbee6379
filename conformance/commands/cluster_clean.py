"""`grove-conformance cluster clean`: removes objects that killed runs left behind on a cluster that the suite did not
start."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from conformance.cluster import chosen_kubeconfig


def clean(
    ctx: typer.Context,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig of the cluster; by default as kubectl chooses it.")
    ] = None,
    context: Annotated[str, typer.Option(help="Context of the kubeconfig; by default its current one.")] = "",
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
