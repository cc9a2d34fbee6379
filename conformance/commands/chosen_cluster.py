"""`--cluster own|existing` with `--kubeconfig` and `--context`: the choice of the cluster that a command uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cluster import chosen_kubeconfig
from conformance.cluster.chosen_kubeconfig import ChosenKubeconfig
from conformance.documents import suggestion
from conformance.errors import UsageError

Context = Annotated[str, typer.Option(help="Context of the kubeconfig; by default its current one.")]
Kubeconfig = Annotated[
    Path | None, typer.Option(help="Kubeconfig of the existing cluster; by default as kubectl chooses it.")
]


def existing_kubeconfig(
    ctx: typer.Context, cluster: str, kubeconfig: Path | None, context: str
) -> ChosenKubeconfig | None:
    """Return an existing cluster's kubeconfig, which is available while the command runs; None if the command starts
    its own cluster. Raises UsageError if the options contradict each other, or if the kubeconfig cannot be used."""
    if cluster not in ("own", "existing"):
        raise UsageError(
            f"unknown kind of cluster {cluster!r}", where="--cluster", hint=suggestion(cluster, ("own", "existing"))
        )
    if cluster == "existing":
        return ctx.with_resource(chosen_kubeconfig.choose(kubeconfig, context))
    for option, value in (("--kubeconfig", kubeconfig), ("--context", context)):
        if value:
            raise UsageError("needs --cluster existing", where=option, hint=f"add it, or drop {option}")
    return None
