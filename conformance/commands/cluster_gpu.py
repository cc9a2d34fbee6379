"""`grove-conformance cluster gpu fail | repair`: failures of GPUs that are devices."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cluster import gpu_failures
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.commands.named_cluster import RequiredName, call_api, find_started

app = typer.Typer(
    help="Make GPUs fail that are offered as devices, or repair them.", no_args_is_help=True, add_completion=False
)

Node = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", show_default=False)]
Device = Annotated[str, typer.Argument(metavar="DEVICE", help="Name of the device, as gpu-0.", show_default=False)]


@app.command()
def fail(
    name: RequiredName,
    node: Node,
    device: Device,
    xid: Annotated[int, typer.Option(min=1, max=9999, help="Number of the error; 79: the GPU left the bus.")] = 79,
    drain: Annotated[bool, typer.Option("--drain", help="Evict the pods that use the device.")] = False,
) -> None:
    """Taint a device, so that it is not allocated until it is repaired. The pods that use it keep running, unless
    `--drain` is given."""
    failure = DeviceFailure(xid, drain)
    call_api(find_started(name), lambda client: gpu_failures.change(client, node, device, failure))
    typer.echo(f"{node}/{device} failed")


@app.command()
def repair(name: RequiredName, node: Node, device: Device) -> None:
    """Remove the taint of a device that has failed."""
    call_api(find_started(name), lambda client: gpu_failures.change(client, node, device, None))
    typer.echo(f"{node}/{device} repaired")
