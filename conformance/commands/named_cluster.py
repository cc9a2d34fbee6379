"""The cluster that a command names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from conformance.cluster.controlplane import Cluster, find
from conformance.errors import HarnessError, UsageError
from kube import errors
from kube.client import Client

T = TypeVar("T")

Name = Annotated[str, typer.Argument(help="Name of the cluster.")]
RequiredName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.", show_default=False)]
READY = "Ready"
"""The state of a healthy cluster."""


def find_started(name: str) -> Cluster:
    """Return a cluster that has been started. Raises UsageError if it does not exist or is still starting."""
    cluster = find(name)
    if cluster.record.phase == "starting":
        raise UsageError("it is still starting", where=f"cluster {name}", hint="wait, or run: cluster list")
    return cluster


def cluster_state(cluster: Cluster) -> str:
    """Return `Ready`, `starting`, or what is wrong with a cluster."""
    if cluster.record.phase == "starting":
        return "starting"
    return cluster.monitor.complaint() or dead_role_message(cluster) or READY


def dead_role_message(cluster: Cluster) -> str:
    """Return an error message about the roles of the implementation that have ended, with the folder of their logs; an
    empty string if all roles are running."""
    dead_roles = [role for role, process in cluster.record.roles.items() if not process.is_alive()]
    return f"the {' and the '.join(dead_roles)} ended, see {cluster.directory / 'logs'}" if dead_roles else ""


def call_api(cluster: Cluster, request: Callable[[Client], Awaitable[T]]) -> T:
    """Return the result of a request to a cluster's API server. Raises HarnessError if the API server does not
    respond."""

    async def send_request() -> T:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="grove-conformance") as client:
            return await request(client)

    try:
        return asyncio.run(send_request())
    except errors.REQUEST_FAILED as error:
        hint = f"see: grove-conformance cluster status {cluster.name}"
        raise HarnessError(
            f"the API server does not answer as it should: {error}", where=f"cluster {cluster.name}", hint=hint
        ) from error
