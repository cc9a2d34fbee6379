"""`grove-conformance cluster status | top | logs`: the state and the usage of a cluster."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from conformance import documents
from conformance.cluster import process_usage
from conformance.cluster.controlplane import Cluster
from conformance.cluster.nodes import GPU
from conformance.cluster.ports import Port
from conformance.cluster.usage import Amount, ProfileUsage, Usage, usage
from conformance.commands import output
from conformance.commands.named_cluster import READY, Name, RequiredName, call_api, dead_role_message, find_started
from conformance.errors import Exit, UsageError
from conformance.grove.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES, PODS, Resource

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_GIB = Decimal(1 << 30)


def status(name: Name = "dev", as_json: AsJson = False) -> int:
    """Show whether a cluster is healthy, and list its nodes, GPUs and pods. The exit code is 3 if it is not Ready."""
    cluster = find_started(name)
    complaint = cluster.monitor.complaint()
    state = complaint or dead_role_message(cluster) or READY
    document = _status_document(cluster, state, None if complaint else _usage(cluster))
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        for line in _status_lines(document):
            typer.echo(line)
    return Exit.CONFORMANT if state == READY else Exit.HARNESS


def top(
    name: Name = "dev",
    seconds: Annotated[float, typer.Option(min=0.1, max=60, help="How long to observe the processes.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show the CPU and memory usage of each component, and the resources of the nodes that pods request."""
    cluster = find_started(name)
    processes = process_usage.measure(_processes(cluster), seconds)
    cluster_usage = _usage(cluster)
    if as_json:
        components = [
            {
                "name": process.name,
                "pid": process.pid,
                "cpu": round(process.cpu, 3),
                "cpuSeconds": round(process.cpu_seconds, 1),
                "memoryBytes": process.memory,
                "uptimeSeconds": round(process.uptime),
            }
            for process in processes
        ]
        typer.echo(
            json.dumps(
                {"components": components, "nodes": _groups(cluster_usage), "pods": cluster_usage.pods}, indent=2
            )
        )
        return
    console = output.console()
    table = Table("component", *_right_aligned("CPU", "CPU s", "MiB", "up"))
    for process in processes:
        table.add_row(
            process.name,
            f"{process.cpu:.2f}",
            f"{process.cpu_seconds:.1f}",
            f"{process.memory >> 20}",
            f"{int(process.uptime) // 60}m{int(process.uptime) % 60:02}s",
        )
    console.print(table)
    table = Table("nodes", *_right_aligned("Ready", "pods", "CPU", "memory Gi", "GPUs", "devices"))
    for group in cluster_usage.groups:
        table.add_row(group.profile, f"{group.ready}/{group.nodes}", *_amounts(group))
    console.print(table if cluster_usage.groups else "nodes: none")
    console.print(f"pods: {_counts(cluster_usage.pods)}")


def logs(
    name: RequiredName,
    component: Annotated[
        str, typer.Argument(help="Component or role; without one, the logs are listed.", show_default=False)
    ] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print what is appended, until Ctrl-C.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Print only so many of the last lines.")] = None,
) -> None:
    """Print the log of a component, such as kube-apiserver, or of a role of the implementation."""
    cluster = find_started(name)
    paths = _log_paths(cluster)
    if not component:
        for log_name, path in paths.items():
            typer.echo(f"{log_name}  {path}")
        return
    if component not in paths:
        hint = documents.suggestion(component, paths)
        raise UsageError(f"no log of {component!r}", where=f"cluster {name}", hint=hint)
    command = ["tail", "-n", "+1" if tail is None else str(tail), *(["-F"] if follow else []), str(paths[component])]
    os.execvp("tail", command)  # noqa: S606 - a list, never shell text


async def _listed(client: Client, kind: Resource) -> list[dict[str, Any]]:
    """Return the objects of a kind; none if the API server does not serve it."""
    try:
        return await client.list(kind)
    except ApiError as error:
        if not error.not_found:
            raise
        return []


def _usage(cluster: Cluster) -> Usage:
    async def fetch_usage(client: Client) -> Usage:
        kinds = (NODES, PODS, RESOURCE_SLICES, RESOURCE_CLAIMS)
        return usage(*await asyncio.gather(*(_listed(client, kind) for kind in kinds)))

    return call_api(cluster, fetch_usage)


def _processes(cluster: Cluster) -> dict[str, int]:
    """Return the pids of the running components and roles."""
    roles = {role: process.pid for role, process in cluster.record.roles.items() if process.is_alive()}
    return cluster.monitor.pids() | roles


def _log_paths(cluster: Cluster) -> dict[str, Path]:
    """Return the existing logs, by component and role. The log of the API server's requests is named `audit`."""
    folders = (cluster.workspace / "logs", cluster.directory / "logs")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.log"))}


def _status_document(cluster: Cluster, state: str, cluster_usage: Usage | None) -> dict[str, Any]:
    record = cluster.record
    running_pids = _processes(cluster)
    document: dict[str, Any] = {
        "name": cluster.name,
        "state": state,
        "versions": cluster.versions,
        "features": record.features,
        "server": cluster.server,
        "implementation": record.implementation,
        "components": {
            component: component in running_pids for component in (*cluster.monitor.components(), *record.roles)
        },
    }
    if record.addons:
        document["gpuMetrics"] = f"http://127.0.0.1:{cluster.ports[Port.GPU_METRICS]}/metrics"
    if cluster_usage is not None:
        ready, nodes = cluster_usage.nodes
        gpus = cluster_usage.amount(GPU)
        document["nodes"] = {"ready": ready, "total": nodes, "groups": _groups(cluster_usage)}
        document["gpus"] = {"requested": int(gpus.requested), "allocatable": int(gpus.allocatable)}
        allocated, devices = cluster_usage.devices
        document["devices"] = {"allocated": allocated, "published": devices}
        document["pods"] = cluster_usage.pods
    return document


def _status_lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"cluster {document['name']}: {document['state']}"
    versions = ", ".join(f"{product} {version}" for product, version in document["versions"].items())
    yield f"versions        {versions}"
    if document["features"]:
        yield f"features        {' '.join(document['features'])}"
    yield f"server          {document['server']}"
    if "gpuMetrics" in document:
        yield f"GPU metrics     {document['gpuMetrics']}"
    yield f"implementation  {document['implementation'] or 'none'}"
    stopped_components = [name for name, runs in document["components"].items() if not runs]
    hint = f" (start them: grove-conformance cluster start {document['name']})"
    yield f"components      {'without ' + ', '.join(stopped_components) + hint if stopped_components else 'all run'}"
    if "nodes" in document:
        nodes, gpus = document["nodes"], document["gpus"]
        profiles = ", ".join(f"{group['nodes']} {group['profile']}" for group in nodes["groups"])
        yield f"nodes           {nodes['ready']} of {nodes['total']} Ready: {profiles or 'none'}"
        yield f"GPUs            {gpus['requested']} of {gpus['allocatable']} requested"
        devices = document["devices"]
        if devices["published"]:
            yield f"devices         {devices['allocated']} of {devices['published']} allocated"
        yield f"pods            {_counts(document['pods'])}"


def _groups(cluster_usage: Usage) -> list[dict[str, Any]]:
    return [
        {
            "profile": group.profile,
            "nodes": group.nodes,
            "ready": group.ready,
            "pods": group.pods,
            "devices": {"allocated": group.allocated_devices, "published": group.devices},
            "resources": {
                resource: {"requested": float(amount.requested), "allocatable": float(amount.allocatable)}
                for resource, amount in sorted(group.amounts.items())
            },
        }
        for group in cluster_usage.groups
    ]


def _amounts(group: ProfileUsage) -> Iterator[str]:
    yield str(group.pods)
    for resource, unit in (("cpu", Decimal(1)), ("memory", _GIB), (GPU, Decimal(1))):
        amount = group.amounts.get(resource, Amount())
        yield f"{float(amount.requested / unit):g}/{float(amount.allocatable / unit):g}" if amount.allocatable else "-"
    yield f"{group.allocated_devices}/{group.devices}" if group.devices else "-"


def _counts(pods: Mapping[str, int]) -> str:
    """Return `20: 18 Ready, 2 Unschedulable`, or `none`."""
    parts = ", ".join(f"{count} {state}" for state, count in pods.items())
    return f"{sum(pods.values())}: {parts}" if parts else "none"


def _right_aligned(*titles: str) -> Iterator[Column]:
    return (Column(title, justify="right") for title in titles)
