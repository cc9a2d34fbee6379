"""`grove-conformance cluster …` and `grove-conformance assets`: parses, calls, prints."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.table import Table

from conformance import documents
from conformance.cluster import assets as programs
from conformance.cluster import fleets, gpu_devices, gpu_occupancy, pins, pod_behaviors, policies, progress
from conformance.cluster.controlplane import Cluster, find, list_clusters
from conformance.cluster.ports import Port, is_free
from conformance.cluster.prune import prune as prune_state
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import Owner, StateRoot, known_roots
from conformance.commands import cluster_gpu, cluster_nodes, cluster_samples, output
from conformance.commands.cluster_existing import capture, clean
from conformance.commands.cluster_snapshots import list_or_remove, restore, snapshot, start
from conformance.commands.cluster_usage import logs, status, top
from conformance.commands.kubernetes import Gates, Kubernetes, Policy, Presets, RuntimeConfig, requested_features
from conformance.commands.named_cluster import Name, RequiredName, dead_role_message, find_started
from conformance.commands.named_cluster import cluster_state as state_of
from conformance.commands.options import decode_into
from conformance.errors import UsageError
from conformance.grove import samples
from conformance.grove.kinds import DEFAULT_SCHEDULER
from conformance.implementation import deployment, rights, scheduler_names
from conformance.implementation.descriptor import Descriptor
from conformance.implementation.parameters import assignments

app = typer.Typer(
    help="Start, inspect and stop fake GPU clusters of your own.", no_args_is_help=True, add_completion=False
)


@dataclass(frozen=True, kw_only=True)
class UpOptions:
    """The options of `cluster up`."""

    name: Name = "dev"
    node: Annotated[
        list[str] | None,
        typer.Option("--nodes", metavar="PROFILE:COUNT", help=f"Create these nodes, {fleets.EXAMPLES} (repeatable)."),
    ] = None
    level: cluster_nodes.Level = None
    pool: cluster_nodes.Pool = ""
    gpus: cluster_nodes.Gpus = "extended"
    occupied: cluster_nodes.Occupied = ""
    apiserver_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the API server; 0 chooses a free one.")
    ] = 0
    pods: Annotated[
        str,
        typer.Option(
            metavar="BEHAVIOR",
            help="Behavior of pods that name none; with realistic, each takes its own time and some fail.",
        ),
    ] = ""
    scheduler: Annotated[bool, typer.Option(help="Run kube-scheduler.")] = True
    scheduler_name: Annotated[
        str,
        typer.Option(
            help="Scheduler name of kube-scheduler; by default default-scheduler, unless a gang scheduler uses it."
        ),
    ] = ""
    implementation: Annotated[
        str, typer.Option(help="Install and start this implementation (name or path of a descriptor).")
    ] = ""
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="Set a parameter of the descriptor, NAME=VALUE (repeatable).")
    ] = None
    sample: Annotated[
        list[str] | None,
        typer.Option(help="Apply this sample (see `cluster samples`), on its nodes unless you name some (repeatable)."),
    ] = None
    owner: Annotated[
        int, typer.Option(min=0, help="Stop the cluster when the process with this pid ends; 0 keeps it.")
    ] = 0
    kubernetes: Kubernetes = ""
    features: Presets = None
    feature_gates: Gates = None
    runtime_config: RuntimeConfig = None
    policy: Policy = None
    preflight: Annotated[bool, typer.Option(help="Prove that the cluster has the features.")] = True


@app.command()
@decode_into(UpOptions)
def up(_: typer.Context, options: UpOptions) -> None:
    """Start a cluster that runs until `cluster down`, and print how to connect to it."""
    owner_process = Owner.of(options.owner) if options.owner else None
    chosen_samples = {samples.require(name, "--sample"): samples.load()[name] for name in options.sample or ()}
    if not options.implementation and not all(sample.plain for sample in chosen_samples.values()):
        raise UsageError("needs --implementation NAME", where="--sample", hint="add --implementation reference")
    manifests = _nodes(options, [*chosen_samples.values()])
    if options.pods and options.pods not in (behaviors := pod_behaviors.load().behaviors):
        raise UsageError(
            f"unknown behavior {options.pods!r}", where="--pods", hint=documents.suggestion(options.pods, behaviors)
        )
    cluster_policies = policies.load(policies.select(options.policy or ()))
    descriptors = _descriptors(
        options.implementation, options.setting or [], options.scheduler_name if options.scheduler else ""
    )
    if policies.RBAC in cluster_policies.words:
        if descriptors is None:
            raise UsageError("rbac needs --implementation NAME", where=policies.OPTION, hint="leave rbac out")
        rights.require_declared(descriptors[0])
    scheduler_name = options.scheduler_name or (
        scheduler_names.kube_scheduler_name(*descriptors) if descriptors else DEFAULT_SCHEDULER
    )
    settings = ClusterSettings(
        scheduler=options.scheduler,
        scheduler_name=scheduler_name,
        pods=options.pods,
        apiserver_port=options.apiserver_port,
        kubernetes=options.kubernetes,
        features=requested_features(options.features, options.feature_gates, options.runtime_config),
        preflight=options.preflight,
        addons=True,
        policies=cluster_policies,
    )
    with progress.terminal(f"cluster {options.name}") as report:
        # This process owns the cluster until the nodes exist, so that nothing is left behind if the command is killed.
        cluster = Cluster.up(options.name, settings=settings, owner=True, report=report)
        try:
            deployment.install_policies(cluster, settings.policies, report)
            if manifests:
                report(f"cluster {options.name}", f"making {len(manifests)} node{'s' * (len(manifests) > 1)}")
                classes = [
                    entry for node_request in options.node or [] for entry in fleets.requested_classes(node_request)
                ]
                cluster_nodes.create(cluster, manifests, classes)
            if descriptors:
                deployment.start(cluster, *descriptors, report)
            for sample_name in chosen_samples:
                report(f"sample {sample_name}", "applying its manifests")
                cluster_samples.apply(cluster, sample_name)
        except BaseException:
            cluster.down()
            raise
        cluster.release(owner_process)
    typer.echo(f"export KUBECONFIG={cluster.kubeconfig}")


def _nodes(options: UpOptions, chosen_samples: Sequence[samples.Sample]) -> list[dict[str, Any]]:
    """Return the nodes that the options ask for, or else those that the samples need."""
    keys = fleets.label_keys(options.level or [])
    manifests = [
        manifest
        for node_request in options.node or []
        for manifest in fleets.requested_nodes(node_request, options.pool, keys)
    ]
    if len({manifest["metadata"]["name"] for manifest in manifests}) < len(manifests):
        raise UsageError("duplicate profile", where="--nodes", hint="add the counts up")
    if not options.node:
        for node_request in (node_request for entry in chosen_samples for node_request in entry.nodes):
            used_names = {manifest["metadata"]["name"] for manifest in manifests}
            manifests += fleets.requested_nodes(node_request, options.pool, keys, used_names=used_names)
    form = "devices" if any(entry.gpus == "devices" for entry in chosen_samples) else options.gpus
    return gpu_occupancy.with_occupancy(gpu_devices.offered(manifests, form), options.occupied)


def _descriptors(name: str, settings: list[str], kube_scheduler: str) -> tuple[Descriptor, Descriptor | None] | None:
    """Return the requested implementation and the implementation that supplies its missing roles. Raises UsageError if
    one of them cannot be loaded, or if two schedulers would have the same name."""
    if not name:
        if settings:
            raise UsageError(
                "needs --implementation NAME", where="--set", hint="name the implementation that has these parameters"
            )
        return None
    judged, supplied = deployment.load(name, assignments(settings))
    if kube_scheduler and kube_scheduler == judged.scheduler_name and judged.start == "processes":
        raise UsageError(
            f"kube-scheduler and the gang scheduler of {judged.name} would both be named {kube_scheduler!r}",
            where="--scheduler-name",
            hint="give kube-scheduler another name, or leave the option out",
        )
    return judged, supplied


@app.command()
def down(names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Names of clusters.")] = None) -> None:
    """Stop clusters (`dev` if no name is given) and delete their files."""
    for cluster in [find(name) for name in dict.fromkeys(names or ["dev"])]:
        cluster.down()
        typer.echo(f"cluster {cluster.name} is down")


app.command()(status)
app.command()(top)
app.command()(logs)
app.command()(start)
app.command()(snapshot)
app.command()(restore)
app.command("snapshots")(list_or_remove)
app.command("samples")(cluster_samples.list_samples)
app.command()(clean)
app.command()(capture)
app.add_typer(cluster_nodes.app, name="nodes")
app.add_typer(cluster_gpu.app, name="gpu")


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Include the clusters of all your checkouts.")] = False,
) -> None:
    """List the clusters of this checkout."""
    clusters = [cluster for state in _state_roots(everywhere) for cluster in list_clusters(state)]
    if as_json:
        records = [
            {key: value for key, value in asdict(cluster.record).items() if key != "settings"}
            | {
                "state": state_of(cluster),
                "server": cluster.server,
                "directory": str(cluster.directory),
                "versions": cluster.versions,
            }
            for cluster in clusters
        ]
        typer.echo(json.dumps(records, indent=2))
        return
    if not clusters:
        typer.echo("none")
        return
    columns = ["name", "state", "kubernetes", "server", "implementation", "owner", "created"]
    table = Table(*columns, *(["folder"] if everywhere else []))
    for cluster in clusters:
        record = cluster.record
        owner = f"process {record.owner.pid}" if record.owner else "-"
        folder = [str(cluster.directory)] if everywhere else []
        implementation = record.implementation or "-"
        version = " ".join([cluster.versions.get(pins.KUBERNETES, "-"), *record.features])
        table.add_row(
            cluster.name, state_of(cluster), version, cluster.server, implementation, owner, record.created, *folder
        )
    output.console().print(table)
    for cluster in list_clusters():
        if cluster.record.phase == "ready" and (cluster.monitor.missing() or dead_role_message(cluster)):
            typer.echo(f"start what has ended: grove-conformance cluster start {cluster.name}")


@app.command()
def versions() -> None:
    """List the pinned versions of Kubernetes, their sources, and whether their programs are in the cache."""
    table = Table("kubernetes", "", "source", "in the cache")
    for group in pins.releases(pins.platform_name()):
        programs_of_group = [program for program in programs.programs(group.version) if program.group == group]
        sources = programs.sources(group.version)
        missing_programs = [program.name for program in programs_of_group if not sources[program.name]]
        origins = ", ".join(
            sorted({_origin(sources[program.name]) for program in programs_of_group if sources[program.name]})
        )
        table.add_row(
            group.version,
            "default" if group.name == pins.KUBERNETES else "",
            "official release" if all(program.digest for program in programs_of_group) else "built from Go modules",
            (origins or "no") + (f", without {', '.join(missing_programs)}" if origins and missing_programs else ""),
        )
    output.console().print(table)


def _origin(source: str) -> str:
    """Return one word that says how a program came into the cache."""
    return "downloaded" if "://" in source else "built" if source.startswith("built") else source


@app.command(context_settings={"ignore_unknown_options": True})
def kubectl(
    name: RequiredName,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS…]", help="Arguments for kubectl.")
    ] = None,
) -> None:
    """Run kubectl against a cluster, for example `cluster kubectl dev -- get pods -A`."""
    cluster = find_started(name)
    if is_free(cluster.ports[Port.APISERVER]):
        start = f"grove-conformance cluster start {name}"
        progress.report_notice(f"cluster {name}", f"the API server does not run; start what has ended: {start}")
    program = str(cluster.kubectl)
    os.execve(program, [program, *(arguments or ())], os.environ | {"KUBECONFIG": str(cluster.kubeconfig)})  # noqa: S606 - a list


@app.command()
def kubeconfig(
    name: Name = "dev",
    raw: Annotated[bool, typer.Option("--raw", help="Print the contents instead of the path.")] = False,
) -> None:
    """Print the path of a cluster's kubeconfig."""
    path = find_started(name).kubeconfig
    typer.echo(path.read_text() if raw else path, nl=not raw)


@app.command()
def prune(
    everywhere: Annotated[bool, typer.Option("--all", help="Include the clusters of all your checkouts.")] = False,
) -> None:
    """Remove clusters and processes that a killed run left behind."""
    results = [prune_state(state) for state in _state_roots(everywhere)]
    for result in results:
        for name, reason in result.clusters.items():
            typer.echo(f"removed cluster {name}: {reason}")
        if result.processes:
            typer.echo(f"ended {', '.join(result.processes)}")
        for name, pid in result.owner_pids.items():
            typer.echo(f"kept cluster {name}: it ends with process {pid}, which is alive")
    if not any(result.clusters or result.processes or result.owner_pids for result in results):
        typer.echo("nothing to remove")


def _state_roots(everywhere: bool) -> list[StateRoot]:
    """Return the state of this checkout and, with `everywhere`, also the states of the user's other checkouts."""
    own_state = StateRoot()
    other_states = [StateRoot(root) for root in known_roots() if root != own_state.root] if everywhere else []
    return [own_state, *other_states]


def assets(
    kubernetes: Kubernetes = "",
    key: Annotated[
        bool, typer.Option("--key", help="Only print a name for these programs, for the cache of a CI system.")
    ] = False,
) -> None:
    """Download or build the control-plane programs and print their paths."""
    if key:
        typer.echo(programs.cache_key(kubernetes))
        return
    with progress.terminal("assets") as report:
        program_paths = programs.resolve_all(report, kubernetes)
    sources = programs.sources(kubernetes)
    for program in programs.programs(kubernetes):
        path = getattr(program_paths, program.name.replace("-", "_"))
        typer.echo(f"{program.name:24} {program.group.version:8} {path} ({sources[program.name]})")
