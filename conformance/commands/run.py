"""`grove-conformance run`: checks the arguments, then launches the run."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console

from conformance import disk
from conformance.cluster import policies, progress
from conformance.cluster.assets import versions
from conformance.cluster.state import StateRoot
from conformance.commands import chosen_cluster, options
from conformance.commands.kubernetes import Gates, Kubernetes, Policy, Presets, RuntimeConfig, requested_features
from conformance.documents import suggestion
from conformance.errors import HarnessError, UsageError
from conformance.implementation import parameters, scheduler_names
from conformance.implementation.descriptor import Descriptor
from conformance.run import launch, preparation, pytest_options, reproduction, rerun
from conformance.run.preparation import with_changes
from conformance.suite.registry import quick as quick_tests
from conformance.suite.registry.selection import Selection
from conformance.suite.scenes.repeated import names_of
from conformance.suite.session import existing, shards
from conformance.suite.session.occupation import Occupation, OccupationTerms, occupied
from conformance.suite.settings import RunSettings

_FILES = " (grove-conformance explain ID has the tests of a requirement)"

MIN_FREE_BYTES = 64 << 20
"""Bytes of disk space that must be free for a report with its failure bundles."""

UNTIL_FAIL_REPEATS = 100
"""The number of times that --until-fail runs a test, unless --repeat is given."""

WORKER_MEMORY = 3 * 2**30
"""Bytes of memory that a worker and its cluster may need."""

RUN_OPTIONS = {
    *("rerun_failed", "pytest_option", "workers", "time_scale", "report_dir"),
    *("fail_fast", "until_fail", "keep_cluster", "keep_passed", "bundle_limit", "verbose", "as_json"),
}
"""The options that can be combined with --rerun-failed, because they do not affect what is judged."""

SELECTION_OPTIONS = {"profile", "id", "test"}
"""The options that --quick replaces."""


def run(
    ctx: typer.Context,
    pytest_option: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PYTEST_OPTION", help="Options for pytest, for example -- -k gang --pdb."),
    ] = None,
    implementation: Annotated[
        str, typer.Option(metavar="NAME", help="Implementation to judge (name or path of a descriptor).")
    ] = "reference",
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter of the descriptor (repeatable)."),
    ] = None,
    earlier: Annotated[
        str,
        typer.Option(
            "--from", metavar="NAME", help="Implementation that the judged one takes over from (profile upgrade)."
        ),
    ] = "",
    earlier_setting: Annotated[
        list[str] | None,
        typer.Option("--from-set", metavar="NAME=VALUE", help="Set a parameter of the --from descriptor (repeatable)."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Expect these failures, too: a file that `report baseline` has written."),
    ] = None,
    profile: Annotated[
        list[str] | None, typer.Option(metavar="PROFILE", help="Judge only this profile (repeatable).")
    ] = None,
    id: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Judge only this requirement (repeatable).")
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEST",
            help="Run only this test, named as in reports, or those of this file or function (repeatable).",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a handful of short tests, in about a minute: a first look, which says nothing of conformance.",
        ),
    ] = False,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Do not judge this requirement (repeatable).")
    ] = None,
    with_invariants: Annotated[
        bool,
        typer.Option(
            "--with-invariants", help="With --profile: judge its invariants in the scenes of all other profiles, too."
        ),
    ] = False,
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Run only the I-th of N parts, which take about equally long.")
    ] = "",
    rerun_failed: Annotated[
        str,
        typer.Option(metavar="RUN", help="Run what did not pass in this run again, as it was judged there."),
    ] = "",
    workers: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Number of parallel clusters, or of workers on an existing one, or `auto`; 0 runs the tests in this"
            " process.",
        ),
    ] = "auto",
    time_scale: Annotated[
        str,
        typer.Option(
            metavar="FACTOR",
            help="Multiply every timeout, for slow machines; below 1, only waits in which nothing changes,"
            " and the size of the set of profile scale.",
        ),
    ] = "1",
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast",
            help="Skip what is left of tests and scenes once all their selected requirements failed; those that few "
            "tests judge come first.",
        ),
    ] = False,
    repeat: Annotated[
        int, typer.Option(min=1, max=1000, help="Run each test this many times and report the pass rate.")
    ] = 1,
    until_fail: Annotated[
        bool,
        typer.Option(
            "--until-fail",
            help=f"Repeat each test ({UNTIL_FAIL_REPEATS} times without --repeat), and end at the first failure.",
        ),
    ] = False,
    keep_cluster: Annotated[
        bool, typer.Option("--keep-cluster", help="End at the first failure, and leave its cluster as it is.")
    ] = False,
    keep_passed: Annotated[
        bool, typer.Option("--keep-passed", help="Keep the evidence of scenes whose tests passed, too.")
    ] = False,
    bundle_limit: Annotated[
        int,
        typer.Option(
            min=0,
            max=1 << 20,
            metavar="MIB",
            help="Leave out histories, objects and logs of failures once their evidence takes so many MiB.",
        ),
    ] = 200,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show every requirement and every failure in full.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, as in report.yaml, and nothing else on stdout.")
    ] = False,
    report_dir: Annotated[Path, typer.Option(help="Parent folder of the run's folder.")] = Path("reports"),
    seed: Annotated[int | None, typer.Option(help="Seed of the random choices in tests.")] = None,
    cluster: Annotated[
        str, typer.Option(help="`own` starts a fake cluster per worker; `existing` uses --kubeconfig.")
    ] = "own",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig of the existing cluster; by default as kubectl chooses it.")
    ] = None,
    context: Annotated[str, typer.Option(help="Context of the kubeconfig; by default its current one.")] = "",
    install_stages: Annotated[
        bool,
        typer.Option(
            "--install-stages",
            help="Replace the Stages of an existing cluster's KWOK by ours for the time of the run.",
        ),
    ] = False,
    keep_stages: Annotated[bool, typer.Option("--keep-stages", help="Leave these Stages there at the end.")] = False,
    kubernetes: Kubernetes = "",
    features: Presets = None,
    feature_gates: Gates = None,
    runtime_config: RuntimeConfig = None,
    policy: Policy = None,
) -> int:
    """Judge an implementation and write a report to reports/<run>/report.yaml.

    Exit codes: 0 conformant, 1 not conformant, 2 interrupted, 3 harness or cluster error, 4 usage error, 5 nothing was
    run, 6 partial (some or all of the selection could not be judged, or a SHOULD failed), 7 stale expectation, 8
    conformant, but not everything could be printed.
    """
    scale, count = _time_scale(time_scale), _workers(workers)
    options_for_pytest = pytest_options.check(tuple(pytest_option or ()))
    if quick:
        reason = "selects its tests itself"
        options.refuse(ctx, SELECTION_OPTIONS, option_in_use="--quick", reason=reason, alternative="leave out --quick")
    shard_part = shards.parse(shard) if shard else None
    disk.require_space(
        report_dir, MIN_FREE_BYTES, location=f"--report-dir {report_dir}", hint="make room, or give another folder"
    )
    if rerun_failed:
        all_options = {str(parameter.name) for parameter in ctx.command.params}
        options.refuse(
            ctx,
            all_options - RUN_OPTIONS,
            option_in_use="--rerun-failed",
            reason="repeats tests with the settings of their run",
            alternative="begin a new run without --rerun-failed",
        )
        earlier_run = rerun.settings_of(rerun_failed, report_dir)
        earlier_options = dict(
            zip(earlier_run.kubeconfig_options[::2], earlier_run.kubeconfig_options[1::2], strict=True)
        )
        file, context = earlier_options.get("--kubeconfig", ""), earlier_options.get("--context", "")
        existing_kubeconfig, kubeconfig_options = _existing_cluster_options(
            ctx, earlier_run.cluster, Path(file) if file else None, context
        )
        run_settings = with_changes(
            earlier_run,
            run=preparation.run_id(),
            kubeconfig=existing_kubeconfig,
            time_scale=scale if "time_scale" in options.given_names(ctx) else earlier_run.time_scale,
            repeat=UNTIL_FAIL_REPEATS if until_fail and earlier_run.repeat == 1 else earlier_run.repeat,
        )
    else:
        existing_kubeconfig, kubeconfig_options = _existing_cluster_options(ctx, cluster, kubeconfig, context)
        if earlier_setting and not earlier:
            raise UsageError("needs --from NAME", where="--from-set", hint="name the implementation to take over from")
        if existing_kubeconfig and kubernetes:
            raise UsageError("an existing cluster has its own version", where="--kubernetes", hint="leave it out")
        run_settings = RunSettings(
            run=preparation.run_id(),
            directory="",
            implementation=implementation,
            parameters=parameters.assignments(setting or ()),
            earlier=earlier,
            earlier_parameters=parameters.assignments(earlier_setting or (), "--from-set"),
            baseline=str(baseline or ""),
            profiles=tuple(sorted(set(profile or ()))),
            ids=tuple(sorted(set(id or ()))),
            skip=tuple(sorted(set(skip or ()))),
            only=tuple(sorted(quick_tests.TESTS if quick else set(test or ()))),
            with_invariants=with_invariants,
            shard=str(shard_part or ""),
            time_scale=scale,
            repeat=UNTIL_FAIL_REPEATS if until_fail and "repeat" not in options.given_names(ctx) else repeat,
            seed=secrets.randbelow(1 << 31) if seed is None else seed,
            cluster="existing" if existing_kubeconfig else "own",
            kubeconfig=existing_kubeconfig,
            kubeconfig_options=kubeconfig_options,
            kubernetes="" if existing_kubeconfig else versions(kubernetes)["kubernetes"],
            cluster_features=requested_features(features, feature_gates, runtime_config),
            install_stages=install_stages,
            policies=policies.select(policy or ()),
        )
    if run_settings.install_stages and not existing_kubeconfig:
        raise UsageError("needs --cluster existing", where="--install-stages", hint="leave it out")
    if keep_stages and not run_settings.install_stages:
        raise UsageError("needs --install-stages", where="--keep-stages", hint="add it, or leave this out")
    if existing_kubeconfig:
        existing.require_usable(Path(existing_kubeconfig))
        existing.require_features(Path(existing_kubeconfig), run_settings.cluster_features)
        if run_settings.policies:
            raise UsageError("an existing cluster has its own policies", where=policies.OPTION, hint="leave it out")
        if keep_cluster:
            raise UsageError("an existing cluster is not removed", where="--keep-cluster", hint="leave it out")
    else:
        policies.load(run_settings.policies)
        StateRoot().require()
    run_settings = with_changes(
        run_settings,
        fail_fast=fail_fast,
        until_fail=until_fail,
        keep_cluster=keep_cluster,
        keep_passed=keep_passed,
        bundle_limit=bundle_limit,
        verbose=verbose,
        as_json=as_json,
        pytest_options=options_for_pytest,
    )
    run_settings = with_changes(run_settings, shared=bool(existing_kubeconfig) and count is not None and count > 1)
    is_default_cluster = not (existing_kubeconfig or kubernetes or run_settings.cluster_features)
    prepared = preparation.prepare(run_settings, report_dir, is_default_cluster=is_default_cluster)
    settings, judged, supplied = prepared.settings, prepared.judged, prepared.supplied
    occupation = _occupy(ctx, settings, judged, supplied, keep_stages) if existing_kubeconfig else None
    if occupation is not None:
        settings = with_changes(settings, unplayed=dict(occupation.unplayed), simulator=occupation.simulator)
    with launch.remove_folder_on_error(settings):
        plan = launch.collect(settings)
        settings = with_changes(settings, ids=_judged_ids(settings, plan, prepared.chosen))
        if shard_part is not None:
            plan = plan.part(shards.part(plan.groups, shard_part, settings.repeat))
            settings = with_changes(settings, part=tuple(sorted(plan.selected)))
        if plan.selected and not existing_kubeconfig:
            preparation.get_programs(settings)
    # Bound to the stream itself, because sys.stderr is pytest's log file while pytest runs.
    err = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    worker_count = 1 if existing_kubeconfig and count is None else _worker_count(count, len(set(plan.groups.values())))
    workers_of_run = 0 if pytest_options.is_interactive(options_for_pytest) else worker_count
    settings = with_changes(settings, workers=workers_of_run, shared=settings.shared and workers_of_run > 1)
    predecessor = f" after {judged.upgrades[0].about}" if settings.earlier else ""
    policy_text = f"policies {', '.join(settings.policies)}" if settings.policies else ""
    extras = (reproduction.other_version(settings), shlex.join(run_settings.cluster_features.options()), policy_text)
    conditions = "".join(f", {words}" for words in extras if words)
    effect_lines = (
        existing.effects(Path(existing_kubeconfig), [descriptor for descriptor in (judged, supplied) if descriptor])
        if existing_kubeconfig
        else ()
    )
    for line in (*effect_lines, *(occupation.lines if occupation else ())):
        err.print(line, markup=False)
    for ability, symptom in settings.unplayed.items():
        err.print(f"the cluster does not play {ability}: {symptom}; what needs that is blocked", markup=False)
    shard_text = f" (shard {settings.shard})" if settings.shard else ""
    subject = f"run {settings.run}: {judged.name} {judged.version}{predecessor}{conditions}"
    worker_text = f"{settings.workers} worker{'s' * (settings.workers != 1)}"
    err.print(f"{subject}, {len(plan.selected)} tests{shard_text}, {worker_text}, seed {settings.seed}", markup=False)
    code = launch.run(
        settings,
        plan,
        prepared.implementation,
        suite=(metadata.version("grove-conformance"), preparation.suite_digest()),
        environment=preparation.environment(settings),
        console=Console(file=sys.stdout, highlight=False),
        err=err,
    )
    if occupation is not None and occupation.claim.lost:
        raise HarnessError(occupation.claim.lost, where="the cluster", hint="have one run at a time use it")
    return code


# -- arguments -------------------------------------------------------------------------------------------------------


def _time_scale(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 100:
        raise UsageError(
            f"{text!r} is not a valid time scale", where="--time-scale", hint="give a number from 0.1 to 100"
        )
    return value


def _workers(text: str) -> int | None:
    """Return the number of workers; None for `auto`."""
    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit() or int(text) > 64:
        raise UsageError(f"{text!r} is not a valid number of workers", where="--workers", hint="give `auto` or 0 to 64")
    return int(text)


def _worker_count(count: int | None, tests: int) -> int:
    """Return the number of workers. The default is three for two cores, because a worker mostly waits."""
    cores, memory = os.cpu_count() or 1, psutil.virtual_memory().total
    default_count = min(cores + cores // 2, memory // WORKER_MEMORY)
    return max(1, min(default_count, tests)) if count is None else min(count, max(tests, 1))


def _existing_cluster_options(
    ctx: typer.Context, cluster: str, kubeconfig: Path | None, context: str
) -> tuple[str, tuple[str, ...]]:
    """Return the kubeconfig of an existing cluster and the options that select it; both are empty if the run starts its
    own clusters."""
    chosen = chosen_cluster.existing_kubeconfig(ctx, cluster, kubeconfig, context)
    if chosen is None:
        return "", ()
    return str(chosen.path), chosen.options


def _occupy(
    ctx: typer.Context, settings: RunSettings, judged: Descriptor, supplied: Descriptor | None, keep_stages: bool
) -> Occupation:
    """Occupy the existing cluster until the command ends."""
    terms = OccupationTerms(
        run=settings.run,
        options=settings.kubeconfig_options,
        scheduler=judged.scheduler_name if scheduler_names.suite_starts_scheduler(judged, supplied) else "",
        install_stages=settings.install_stages,
        keep_stages=keep_stages,
        time_scale=settings.time_scale,
    )
    return ctx.with_resource(occupied(Path(settings.kubeconfig), terms, progress.report_notice))


def _judged_ids(settings: RunSettings, plan: launch.LaunchPlan, selection: Selection) -> tuple[str, ...]:
    """Return the judged ids. With --test or options for pytest, these are the selected ids that the chosen tests
    declare."""
    if not settings.only and not settings.pytest_options:
        return settings.ids
    names = {name for test in plan.collected for name in names_of(test, settings.repeat)}
    for name in settings.only:
        if name not in names:
            raise UsageError(f"unknown test {name!r}", where="--test", hint=suggestion(name, names) + _FILES)
    declared = {id for ids in plan.selected.values() for id in ids}
    return tuple(sorted(declared & selection.judged))
