"""`grove-reference`: runs the operator or the gang scheduler, and generates the CRDs."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from kube.client import Client
from kube.errors import ApiError
from kube.leases import LeadershipLost
from reference_impl import extensions
from reference_impl.admission import server
from reference_impl.admission.lookup import ClusterLookup
from reference_impl.api import crds
from reference_impl.control.features import Features, missing_api, with_form, with_maps
from reference_impl.control.operator import INIT_IMAGE, Operator
from reference_impl.plan import kai
from reference_impl.plan.lines import LINES, MAPS
from reference_impl.plan.workload_api.mode import Mode
from reference_impl.runtime import configuration, health, leadership, logs
from reference_impl.runtime.waiting import retry_until_answered
from reference_impl.scheduler.devices import claim_store
from reference_impl.scheduler.model import pod_type
from reference_impl.scheduler.scheduler import GangScheduler

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Run the reference implementation of the Grove API.")

Kubeconfig = Annotated[Path, typer.Option(help="Kubeconfig of the cluster.", exists=True, dir_okay=False)]
HealthPort = Annotated[int, typer.Option(help="Port on 127.0.0.1 for /healthz and /readyz.")]
SchedulerName = Annotated[str, typer.Option(help="Scheduler name that pods get and that the gang scheduler serves.")]
Mutants = Annotated[
    list[str] | None, typer.Option("--mutant", help="Run with these mutants (A,B,…; repeatable); see `mutants`.")
]
Variants = Annotated[
    list[str] | None, typer.Option("--variant", help="Run with these variants (A,B,…; repeatable); see `variants`.")
]

SCHEDULER_NAME = "grove-gang-scheduler"
INIT_IMAGE_VARIABLE = "GROVE_INIT_CONTAINER_IMAGE"
LOST_CODE = 1
REFUSED_CODE = 1
GRACE_SECONDS = 5.0
"""The time, in seconds, for which running reconciles may continue after the signal to stop (CHG-RS-06)."""


async def _until_signal(main: Awaitable[None]) -> None:
    """Run `main` until it ends or the process receives SIGTERM or SIGINT.

    A process exits at once if it loses its leadership, or if the API server refuses a request at startup.
    """
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    log = logging.getLogger(__name__)
    try:
        await task
    except asyncio.CancelledError:
        log.info("stopping: received a signal")
    except ApiError as error:
        log.error("stopping: the API server refused a request that the start needs: %s", error)
        sys.exit(REFUSED_CODE)
    except BaseExceptionGroup as group:
        if (lost_leadership := group.subgroup(LeadershipLost)) is None:
            raise
        log.error("stopping: leadership lost: %s", lost_leadership.exceptions[0])
        sys.exit(LOST_CODE)


def _settings(path: Path | None, scheduler_name: str) -> configuration.Configuration:
    if path is None:
        return configuration.default_configuration(scheduler_name)
    try:
        return configuration.load(path, own_scheduler=scheduler_name)
    except configuration.InvalidConfigurationError as error:
        raise typer.BadParameter(str(error), param_hint="--config") from None


def _prepare(
    mutants: list[str] | None,
    variants: list[str] | None,
    role: extensions.Role,
    settings: configuration.Configuration | None = None,
) -> None:
    settings = settings or configuration.Configuration()
    logs.configure(settings.log_level, settings.log_format)
    for kind, options in (("mutant", mutants), ("variant", variants)):
        if names := [name for option in options or () for name in option.split(",") if name]:
            try:
                extensions.load(kind).arm(names, role)
            except extensions.UnknownNameError as error:
                raise typer.BadParameter(str(error), param_hint=f"--{kind}") from None


def _mode(settings: configuration.Scheduler) -> Mode | None:
    config = settings.gangs_of_kubernetes
    return None if config is None else Mode(extras=config.extras, replacements=config.replacements)


def _enabled_features(settings: configuration.Configuration) -> Features:
    return Features(
        topology=settings.topology_aware_scheduling.enabled,
        mnnvl=settings.network.auto_mnnvl_enabled,
        kai=kai.SCHEDULER in settings.scheduler.backends,
        workload_api=_mode(settings.scheduler),
    )


@app.command()
def operator(
    kubeconfig: Kubeconfig,
    health_port: HealthPort,
    webhook_port: Annotated[int, typer.Option(help="Port on 127.0.0.1 for the admission webhooks.")] = 0,
    certificates: Annotated[
        Path | None, typer.Option(help="Folder with tls.crt and tls.key; without it, no webhooks are served.")
    ] = None,
    scheduler_name: SchedulerName = SCHEDULER_NAME,
    init_image: Annotated[
        str,
        typer.Option(help="Image of the init container that enforces startup order.", envvar=INIT_IMAGE_VARIABLE),
    ] = INIT_IMAGE,
    contract: Annotated[
        str, typer.Option(help="Line of Grove's contract: names (up to v0.1.0-alpha.12-rc1) or maps.")
    ] = MAPS.name,
    config: Annotated[Path | None, typer.Option(help="Configuration of the operator, a YAML file.")] = None,
    mutant: Mutants = None,
    variant: Variants = None,
) -> None:
    """Run the operator until it is stopped."""
    if (line := LINES.get(contract)) is None:
        raise typer.BadParameter(f"unknown line {contract!r}: names or maps", param_hint="--contract")
    settings = _settings(config, scheduler_name)
    if settings.leader_election.enabled and not leadership.lease_namespace(settings.leader_election):
        problem = "leaderElection.resourceNamespace: required outside of a cluster"
        raise typer.BadParameter(problem, param_hint="--config")
    _prepare(mutant, variant, "operator", settings)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            agent = "grove-reference-operator"
            client = await stack.enter_async_context(Client.from_kubeconfig(kubeconfig, user_agent=agent))
            enabled = _enabled_features(settings)
            features = await retry_until_answered(lambda: with_maps(client, enabled))
            features = await retry_until_answered(lambda: with_form(client, features))
            reference = Operator(
                client,
                scheduler_name=scheduler_name,
                features=features,
                init_image=init_image,
                hash_policy=settings.hashes.policy,
                line=line,
            )
            await stack.enter_async_context(health.serve(health_port, reference.ready, reference.metrics))
            if problem := await retry_until_answered(lambda: missing_api(client, features, line)):
                raise typer.BadParameter(problem, param_hint="--config")
            if certificates is not None:
                cluster = ClusterLookup(client)
                hooks = server.Hooks(settings, cluster, await retry_until_answered(cluster.own_user))
                await stack.enter_async_context(server.serve(webhook_port, certificates, hooks, reference.metrics))
            elector = None
            if settings.leader_election.enabled:
                elector = await stack.enter_async_context(leadership.candidate(kubeconfig, settings.leader_election))
                reference.metrics.report_leadership(settings.leader_election.resource_name, lambda: elector.leads)
            await reference.run(elector, GRACE_SECONDS)

    asyncio.run(_until_signal(run()))


@app.command()
def scheduler(
    kubeconfig: Kubeconfig,
    health_port: HealthPort,
    scheduler_name: SchedulerName = SCHEDULER_NAME,
    mutant: Mutants = None,
    variant: Variants = None,
) -> None:
    """Run the gang scheduler until it is stopped."""
    _prepare(mutant, variant, "gang-scheduler")

    async def run() -> None:
        async with AsyncExitStack() as stack:
            agent = "grove-reference-scheduler"
            client = await stack.enter_async_context(Client.from_kubeconfig(kubeconfig, user_agent=agent))
            pods = pod_type(await retry_until_answered(client.version))
            has_claims = await retry_until_answered(lambda: claim_store.is_served(client))
            gang_scheduler = GangScheduler(client, name=scheduler_name, pods=pods, devices=has_claims)
            await stack.enter_async_context(health.serve(health_port, gang_scheduler.ready, gang_scheduler.metrics))
            await gang_scheduler.run()

    asyncio.run(_until_signal(run()))


@app.command(name="crds")
def write_crds(
    kubeconfig: Kubeconfig,
    folder: Annotated[Path, typer.Option(help="Folder to write to.")] = crds.FOLDER,
) -> None:
    """Generate the CRDs, with the pod spec of the API server."""

    async def run() -> None:
        async with Client.from_kubeconfig(kubeconfig, user_agent="grove-reference-crds") as client:
            for path in crds.write(crds.definitions(await crds.openapi(client)), folder):
                print(path)

    asyncio.run(run())


def _list(kind: str) -> None:
    try:
        extension = extensions.load(kind)
    except extensions.UnknownNameError as error:
        raise typer.BadParameter(str(error)) from None
    for name, role, text in extension.listed():
        print(f"{name:32} {role:15} {text}")


@app.command(name="mutants")
def list_mutants() -> None:
    """List the mutants."""
    _list("mutant")


@app.command(name="variants")
def list_variants() -> None:
    """List the variants."""
    _list("variant")


def main() -> None:
    """Run the program."""
    app()
