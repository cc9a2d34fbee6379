"""`grove-conformance run`: checks the arguments, then launches the run."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import psutil
import typer
from rich.console import Console

from conformance import disk
from conformance.cluster import policies, progress
from conformance.cluster.assets import versions
from conformance.cluster.features import FeatureRequest
from conformance.cluster.state import StateRoot
from conformance.commands import chosen_cluster, options
from conformance.commands.kubernetes import requested_features
from conformance.commands.run_options import UNTIL_FAIL_REPEATS, RunOptions
from conformance.documents import suggestion
from conformance.errors import HarnessError, UsageError
from conformance.implementation import parameters, scheduler_names
from conformance.run import launch, preparation, pytest_options, reproduction, rerun
from conformance.run.preparation import PreparedRun, with_changes
from conformance.suite.registry import quick as quick_tests
from conformance.suite.registry.selection import Selection
from conformance.suite.scenes.repeated import names_of
from conformance.suite.session import existing, shards
from conformance.suite.session.occupation import Occupation, OccupationTerms, occupied
from conformance.suite.settings import RunSettings

_FILES = " (grove-conformance explain ID has the tests of a requirement)"

MIN_FREE_BYTES = 64 << 20
"""Bytes of disk space that must be free for a report with its failure bundles."""

WORKER_MEMORY = 3 * 2**30
"""Bytes of memory that a worker and its cluster may need."""

RUN_OPTIONS = {
    *("rerun_failed", "pytest_option", "workers", "time_scale", "report_dir"),
    *("fail_fast", "until_fail", "keep_cluster", "keep_passed", "bundle_limit", "verbose", "as_json"),
}
"""The options that can be combined with --rerun-failed, because they do not affect what is judged."""

COURSE_SETTINGS = (
    *("fail_fast", "until_fail", "keep_cluster", "keep_passed"),
    *("bundle_limit", "verbose", "as_json"),
)
"""The options that are settings of the same name, also of a run that is repeated."""

SELECTION_OPTIONS = {"profile", "id", "test"}
"""The options that --quick replaces."""


@options.decode_into(RunOptions)
def run(ctx: typer.Context, run_options: RunOptions) -> int:
    """Judge an implementation and write a report to reports/<run>/report.yaml.

    Exit codes: 0 conformant, 1 not conformant, 2 interrupted, 3 harness or cluster error, 4 usage error, 5 nothing was
    run, 6 partial (some or all of the selection could not be judged, or a SHOULD failed), 7 stale expectation, 8
    conformant, but not everything could be printed.
    """
    worker_limit = _workers(run_options.workers)
    run_settings = _settings(ctx, run_options)
    _check_cluster(run_settings, run_options)
    existing_kubeconfig = run_settings.kubeconfig
    is_shared = bool(existing_kubeconfig) and worker_limit is not None and worker_limit > 1
    is_default_cluster = not (existing_kubeconfig or run_options.kubernetes or run_settings.cluster_features)
    prepared = preparation.prepare(
        with_changes(run_settings, shared=is_shared), run_options.report_dir, is_default_cluster=is_default_cluster
    )
    settings = prepared.settings
    occupation = _occupy(ctx, prepared, run_options.keep_stages) if existing_kubeconfig else None
    if occupation is not None:
        settings = with_changes(settings, unplayed=dict(occupation.unplayed), simulator=occupation.simulator)
    with launch.remove_folder_on_error(settings):
        settings, plan = _plan(settings, prepared.chosen, run_options.shard)
    if existing_kubeconfig and worker_limit is None:
        worker_limit = 1
    worker_count = _worker_count(worker_limit, len(set(plan.groups.values())))
    workers = 0 if pytest_options.is_interactive(settings.pytest_options) else worker_count
    settings = with_changes(settings, workers=workers, shared=settings.shared and workers > 1)
    # Bound to the stream itself, because sys.stderr is pytest's log file while pytest runs.
    err = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    for line in _announcement(settings, run_settings.cluster_features, prepared, plan, occupation):
        err.print(line, markup=False)
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


# -- settings --------------------------------------------------------------------------------------------------------


def _settings(ctx: typer.Context, run_options: RunOptions) -> RunSettings:
    """Return the settings that the options describe. Raises UsageError if the options contradict each other."""
    scale = _time_scale(run_options.time_scale)
    for_pytest = pytest_options.check(tuple(run_options.pytest_option or ()))
    if run_options.quick:
        reason = "selects its tests itself"
        options.refuse(ctx, SELECTION_OPTIONS, option_in_use="--quick", reason=reason, alternative="leave out --quick")
    if run_options.shard:
        shards.parse(run_options.shard)
    disk.require_space(
        run_options.report_dir,
        MIN_FREE_BYTES,
        location=f"--report-dir {run_options.report_dir}",
        hint="make room, or give another folder",
    )
    settings = (
        _repeated_settings(ctx, run_options, scale)
        if run_options.rerun_failed
        else _new_settings(ctx, run_options, scale)
    )
    return with_changes(
        settings, pytest_options=for_pytest, **{name: getattr(run_options, name) for name in COURSE_SETTINGS}
    )


def _repeated_settings(ctx: typer.Context, run_options: RunOptions, time_scale: float) -> RunSettings:
    """Return the settings of an earlier run, for the tests that did not pass in it."""
    options.refuse(
        ctx,
        {str(parameter.name) for parameter in ctx.command.params} - RUN_OPTIONS,
        option_in_use="--rerun-failed",
        reason="repeats tests with the settings of their run",
        alternative="begin a new run without --rerun-failed",
    )
    earlier_run = rerun.settings_of(run_options.rerun_failed, run_options.report_dir)
    chosen = dict(zip(earlier_run.kubeconfig_options[::2], earlier_run.kubeconfig_options[1::2], strict=True))
    file = Path(chosen["--kubeconfig"]) if chosen.get("--kubeconfig") else None
    kubeconfig, _ = _existing_cluster_options(ctx, earlier_run.cluster, file, chosen.get("--context", ""))
    return with_changes(
        earlier_run,
        run=preparation.run_id(),
        kubeconfig=kubeconfig,
        time_scale=time_scale if "time_scale" in options.given_names(ctx) else earlier_run.time_scale,
        repeat=UNTIL_FAIL_REPEATS if run_options.until_fail and earlier_run.repeat == 1 else earlier_run.repeat,
    )


def _new_settings(ctx: typer.Context, run_options: RunOptions, time_scale: float) -> RunSettings:
    kubeconfig, kubeconfig_options = _existing_cluster_options(
        ctx, run_options.cluster, run_options.kubeconfig, run_options.context
    )
    if run_options.earlier_setting and not run_options.earlier:
        raise UsageError("needs --from NAME", where="--from-set", hint="name the implementation to take over from")
    if kubeconfig and run_options.kubernetes:
        raise UsageError("an existing cluster has its own version", where="--kubernetes", hint="leave it out")
    repeats = (
        UNTIL_FAIL_REPEATS
        if run_options.until_fail and "repeat" not in options.given_names(ctx)
        else run_options.repeat
    )
    return RunSettings(
        run=preparation.run_id(),
        directory="",
        implementation=run_options.implementation,
        parameters=parameters.assignments(run_options.setting or ()),
        earlier=run_options.earlier,
        earlier_parameters=parameters.assignments(run_options.earlier_setting or (), "--from-set"),
        baseline=str(run_options.baseline or ""),
        profiles=_words(run_options.profile),
        ids=_words(run_options.id),
        skip=_words(run_options.skip),
        only=tuple(sorted(set(quick_tests.TESTS if run_options.quick else run_options.test or ()))),
        with_invariants=run_options.with_invariants,
        shard=str(shards.parse(run_options.shard)) if run_options.shard else "",
        time_scale=time_scale,
        repeat=repeats,
        seed=secrets.randbelow(1 << 31) if run_options.seed is None else run_options.seed,
        cluster="existing" if kubeconfig else "own",
        kubeconfig=kubeconfig,
        kubeconfig_options=kubeconfig_options,
        kubernetes="" if kubeconfig else versions(run_options.kubernetes)["kubernetes"],
        cluster_features=requested_features(
            run_options.features, run_options.feature_gates, run_options.runtime_config
        ),
        install_stages=run_options.install_stages,
        policies=policies.select(run_options.policy or ()),
    )


def _words(values: Iterable[str] | None) -> tuple[str, ...]:
    """Return the words of a repeatable option, sorted. One value may also list several words, separated by commas."""
    return tuple(sorted({word.strip() for value in values or () for word in value.split(",")}))


def _check_cluster(settings: RunSettings, run_options: RunOptions) -> None:
    """Raise UsageError if the cluster cannot be used with these settings."""
    if settings.install_stages and not settings.kubeconfig:
        raise UsageError("needs --cluster existing", where="--install-stages", hint="leave it out")
    if run_options.keep_stages and not settings.install_stages:
        raise UsageError("needs --install-stages", where="--keep-stages", hint="add it, or leave this out")
    if not settings.kubeconfig:
        policies.load(settings.policies)
        StateRoot().require()
        return
    existing.require_usable(Path(settings.kubeconfig))
    existing.require_features(Path(settings.kubeconfig), settings.cluster_features)
    if settings.policies:
        raise UsageError("an existing cluster has its own policies", where=policies.OPTION, hint="leave it out")
    if settings.keep_cluster:
        raise UsageError("an existing cluster is not removed", where="--keep-cluster", hint="leave it out")


def _plan(settings: RunSettings, chosen: Selection, shard: str) -> tuple[RunSettings, launch.LaunchPlan]:
    """Collect the tests, and get the programs that they need. Return the settings with the judged ids, and the plan."""
    plan = launch.collect(settings)
    settings = with_changes(settings, ids=_judged_ids(settings, plan, chosen))
    if shard:
        plan = plan.part(shards.part(plan.groups, shards.parse(shard), settings.repeat))
        settings = with_changes(settings, part=tuple(sorted(plan.selected)))
    if plan.selected and not settings.kubeconfig:
        preparation.get_programs(settings)
    return settings, plan


def _announcement(
    settings: RunSettings,
    requested: FeatureRequest,
    prepared: PreparedRun,
    plan: launch.LaunchPlan,
    occupation: Occupation | None,
) -> Iterator[str]:
    """Yield what a run does to an existing cluster and what it judges. `requested` has the features that the user has
    asked for."""
    judged = prepared.judged
    if occupation is not None:
        implementations = [descriptor for descriptor in (judged, prepared.supplied) if descriptor]
        yield from existing.effects(Path(settings.kubeconfig), implementations)
        yield from occupation.lines
    for ability, symptom in settings.unplayed.items():
        yield f"the cluster does not play {ability}: {symptom}; what needs that is blocked"
    predecessor = f" after {judged.upgrades[0].about}" if settings.earlier else ""
    policy_text = f"policies {', '.join(settings.policies)}" if settings.policies else ""
    extras = (reproduction.other_version(settings), shlex.join(requested.options()), policy_text)
    conditions = "".join(f", {words}" for words in extras if words)
    shard_text = f" (shard {settings.shard})" if settings.shard else ""
    subject = f"run {settings.run}: {judged.name} {judged.version}{predecessor}{conditions}"
    workers = f"{settings.workers} worker{'s' * (settings.workers != 1)}"
    yield f"{subject}, {len(plan.selected)} tests{shard_text}, {workers}, seed {settings.seed}"


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
    """Return the number of workers. The default is five for two cores, because a worker mostly waits."""
    cores, memory = os.cpu_count() or 1, psutil.virtual_memory().total
    default_count = min(cores * 5 // 2, memory // WORKER_MEMORY)
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


def _occupy(ctx: typer.Context, prepared: PreparedRun, keep_stages: bool) -> Occupation:
    """Occupy the existing cluster until the command ends."""
    settings, judged, supplied = prepared.settings, prepared.judged, prepared.supplied
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
