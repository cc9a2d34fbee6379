"""`grove-conformance cluster samples`, and the samples that a cluster starts with."""

from __future__ import annotations

import os
import subprocess
from typing import Annotated

import typer
from rich.table import Table

from conformance.cluster.controlplane import Cluster
from conformance.commands import output
from conformance.errors import HarnessError
from conformance.grove import samples


def list_samples(
    name: Annotated[str, typer.Argument(metavar="[SAMPLE]", help="Print the manifests of this sample.")] = "",
) -> None:
    """List the samples of `cluster up --sample`, or print the manifests of one sample so that you can change and apply
    them."""
    if name:
        typer.echo(samples.path(samples.require(name, "SAMPLE")).read_text("utf-8"), nl=False)
        return
    table = Table("sample", "nodes", "shows")
    for sample_name, sample in samples.load().items():
        table.add_row(sample_name, " ".join(sample.nodes), sample.about)
    output.console().print(table)


def apply(cluster: Cluster, sample: str) -> None:
    """Apply the manifests of a sample to a cluster. Raises HarnessError if a manifest is rejected."""
    command = [str(cluster.kubectl), "apply", "-f", str(samples.path(sample))]
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}
    completed_process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if completed_process.returncode:
        error = " ".join(completed_process.stderr.split()) or f"kubectl apply ended with {completed_process.returncode}"
        raise HarnessError(error, where=f"--sample {sample}", hint="the implementation does not accept it")
