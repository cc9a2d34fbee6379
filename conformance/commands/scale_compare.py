"""`grove-conformance scale compare`: parses, runs, prints."""

from __future__ import annotations

import hashlib
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from conformance import data, disk, documents
from conformance.cluster import progress
from conformance.commands import output
from conformance.commands.options import decode_into
from conformance.errors import UsageError
from conformance.implementation import loading
from conformance.implementation.parameters import assignments
from conformance.scale import identity
from conformance.scale import scenario as scenarios
from conformance.scale.compare import comparison, page, refs, rounds, session, sides, statistics, tables, validity
from conformance.scale.markers import markers_of


class Binder(StrEnum):
    """The scheduler that binds the pods."""

    KUBE = "kube"
    GANG = "gang"


RoundResults = tuple[list[rounds.Round], list[str]]
"""Rounds, and warnings about them."""
Settings = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set a parameter (repeatable).")]


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options of `scale compare`."""

    base: Annotated[
        list[str],
        typer.Option(help="Side to compare with: a descriptor, or results (files or a folder; repeatable)."),
    ]
    head: Annotated[list[str], typer.Option(help="Side that is judged, given in the same way (repeatable).")]
    base_set: Settings = None
    head_set: Settings = None
    repo: Annotated[
        Path | None, typer.Option(help="Git repository: --base and --head are refs of it, --implementation runs them.")
    ] = None
    build: Annotated[str, typer.Option(help="With --repo: shell command that builds a work tree, run in it.")] = ""
    implementation: Annotated[str, typer.Option(help="With --repo: descriptor that runs what was built.")] = ""
    both_set: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help=f"Set a parameter of both sides; {refs.PLACEHOLDER} is the work tree."
        ),
    ] = None
    builds: Annotated[Path | None, typer.Option(help="Folder for work trees and builds; by default in the cache.")] = (
        None
    )
    scenario: Annotated[
        str, typer.Option(help="Name of a scenario in fixtures/scale/, or path of a scenario file.")
    ] = "scale-1000"
    scheduler: Annotated[Binder, typer.Option(help="Scheduler that binds the pods.")] = Binder.KUBE
    play: Annotated[int, typer.Option("--rounds", min=1, help="Rounds to play: one run of each side.")] = 6
    warm_up: Annotated[int, typer.Option(min=0, help="Rounds before the first one, which are not used.")] = 1
    spare: Annotated[int, typer.Option(min=0, help="Rounds in all that may replace disturbed ones.")] = 3
    metric: Annotated[
        str,
        typer.Option(metavar="PHASE/MARKER", help="Time to test; by default the first pods-ready."),
    ] = ""
    minimum_effect: Annotated[float, typer.Option(help="Smallest change in percent that matters.")] = 5.0
    threshold: Annotated[
        float | None, typer.Option(help="Exit with 1 if the head is slower by more than this many percent.")
    ] = None
    count_threshold: Annotated[
        float, typer.Option(help="Exit with 1 if the head writes more than this many percent more; negative: never.")
    ] = 5.0
    most_foreign: Annotated[
        float, typer.Option(help="Percent of the CPU that other processes may use before a run is invalid.")
    ] = 10.0
    counts: Annotated[
        bool, typer.Option("--counts", help="Compare counts alone: load of others does not matter, 3 rounds suffice.")
    ] = False
    seed: Annotated[int, typer.Option(help="Seed for the order of the sides and the bootstrap.")] = 0
    force: Annotated[bool, typer.Option(help="Compare results of different scenarios or machines.")] = False
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder of the comparison; one that was interrupted is continued.")
    ] = None


@decode_into(CompareOptions)
def compare(_: typer.Context, options: CompareOptions) -> int:
    """Compare two sides in interleaved rounds: is the head faster or slower than the base?"""
    folder = options.folder
    statistics.scipy_stats()
    limits = validity.Limits(foreign_share=options.most_foreign / 100)
    question = comparison.Question(
        metric=options.metric,
        minimum_effect=options.minimum_effect / 100,
        threshold=None if options.threshold is None else options.threshold / 100,
        count_threshold=options.count_threshold / 100 if options.count_threshold >= 0 else None,
        seed=options.seed,
        force=options.force,
    )
    folder = folder or Path("reports") / f"compare-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    if _has_stored_results("--head", options.head, options.repo):
        if not _has_stored_results("--base", options.base, options.repo):
            raise UsageError("the base is measured, but the head is stored", hint="measure both, or store the base")
        base_side, head_side = sides.load_stored(options.base), sides.load_stored(options.head)
        names, (played_rounds, warnings) = (base_side.name, head_side.name), _pair_rounds(base_side, head_side, limits)
    else:
        stored_base = (
            sides.load_stored(options.base) if _has_stored_results("--base", options.base, options.repo) else None
        )
        load_scenario = scenarios.load(options.scenario)
        _check_metric(options.metric, load_scenario)
        with progress.terminal("compare") as report:
            source = _source(options.repo, options.build, options.implementation, options.builds)
            plan = session.ComparisonPlan(
                base=_measured_side("--base", options.base, options.both_set, options.base_set, source, report)
                if stored_base is None
                else _unmeasured_side(stored_base),
                head=_measured_side("--head", options.head, options.both_set, options.head_set, source, report),
                scenario=options.scenario,
                scheduler=options.scheduler.value,
                rounds=options.play,
                warm_up=options.warm_up,
                spare=options.spare,
                seed=options.seed,
                digest=load_scenario.digest,
            )
            report("folder", f"{folder}; after a kill, continue with --dir {folder}")
            played_rounds, warnings = _measure_rounds(plan, stored_base, folder, limits, report, options.counts)
        names = (plan.base.name, plan.head.name)
    document = comparison.compare(played_rounds, question, names, warnings)
    _write(document, folder)
    tables.show(document, output.console())
    typer.echo(f"comparison: {folder / 'comparison.html'}, comparison.md and comparison.json")
    return comparison.exit_code(document)


def _measure_rounds(
    plan: session.ComparisonPlan,
    stored_base: sides.StoredSide | None,
    folder: Path,
    limits: validity.Limits,
    report: progress.ProgressReporter,
    counts_only: bool,
) -> RoundResults:
    """Run the rounds of a plan, or only the runs of the head if results of the base are stored."""
    session.save_plan(plan, folder)
    runner = session.subprocess_runner(plan.scenario, plan.scheduler)
    comparison_session = session.Session(plan, folder, runner, limits, report, counts_only=counts_only)
    if stored_base is None:
        return comparison_session.play(), []
    head_results = comparison_session.measure_heads(min(plan.rounds, len(stored_base.results)))
    return _pair_rounds(stored_base, sides.StoredSide(head_results, plan.head.name), limits)


def _pair_rounds(base: sides.StoredSide, head: sides.StoredSide, limits: validity.Limits) -> RoundResults:
    return rounds.pair_results(base.results, head.results, limits), _warnings(base, head)


def _unmeasured_side(stored_base: sides.StoredSide) -> sides.MeasuredSide:
    """Return the plan's entry for a side that is not measured."""
    return sides.MeasuredSide("", {}, stored_base.name)


def _check_metric(metric: str, scenario: scenarios.LoadScenario) -> None:
    """Raise UsageError for a metric that no run of the scenario can have, instead of failing after the last round."""
    phase, _, name = metric.partition("/")
    markers = {entry.name: markers_of(entry) for entry in scenario.phases}
    is_described = name.startswith(("created-to-", "cpu-"))
    if metric and not (phase in markers and (is_described or name.removesuffix("×floor") in markers[phase])):
        metric_names = [f"{phase}/{marker}" for phase, names in markers.items() for marker in names]
        raise UsageError(
            f'unknown metric "{metric}"', where="--metric", hint=documents.suggestion(metric, metric_names)
        )


def _has_stored_results(option: str, arguments: list[str], repo: Path | None) -> bool:
    """Return whether a side consists of stored results instead of being measured."""
    stored_flags = {repo is None and sides.is_stored(value) for value in arguments}
    if len(stored_flags) > 1:
        raise UsageError("names results and something else", where=option, hint="give one kind")
    return stored_flags == {True}


def _source(
    repo: Path | None, build: str, implementation: str, builds: Path | None
) -> tuple[refs.Repository, str] | None:
    """Return the repository whose refs are compared, and the descriptor that runs these refs; None without `--repo`."""
    if repo is None:
        if build or implementation or builds:
            raise UsageError("--build, --implementation and --builds belong to --repo", hint="give --repo, too")
        return None
    if not implementation:
        raise UsageError("--repo needs --implementation", hint="name the descriptor that runs what is built")
    key = hashlib.sha256(str(repo.resolve()).encode()).hexdigest()[:12]
    return refs.Repository(repo, builds or data.cache() / "work-trees" / key, build), implementation


def _measured_side(
    option: str,
    arguments: list[str],
    shared_assignments: list[str] | None,
    side_assignments: list[str] | None,
    source: tuple[refs.Repository, str] | None,
    report: progress.ProgressReporter,
) -> sides.MeasuredSide:
    if len(arguments) > 1:
        raise UsageError("names several sides", where=option, hint="give one")
    values = assignments(shared_assignments or []) | assignments(side_assignments or [], f"{option}-set")
    name, descriptor, named_values = arguments[0], arguments[0], dict(values)
    if source is not None:
        repository, descriptor = source
        commit = repository.commit(arguments[0])
        name = commit[:12] if commit.startswith(arguments[0]) else f"{arguments[0]} ({commit[:12]})"
        values = refs.fill_settings(values, repository.build_commit(commit, report))
    loading.load(descriptor, values)  # find mistakes now, not after the first run
    changed_settings = [
        f"{key}={value}"
        for key, value in identity.published_settings(named_values).items()
        if refs.PLACEHOLDER not in value
    ]
    return sides.MeasuredSide(descriptor, values, " ".join([name, *changed_settings]))


def _warnings(base: sides.StoredSide, head: sides.StoredSide) -> list[str]:
    warnings = []
    if len(base.results) != len(head.results):
        warnings.append(
            f"{len(base.results)} results of the base, {len(head.results)} of the head: the rest is not used"
        )
    if not rounds.are_interleaved(base.results, head.results):
        warnings.append(
            "the runs of both sides do not alternate in time: what changed in between counts as a difference"
        )
    return warnings


def _write(document: dict[str, Any], folder: Path) -> None:
    disk.make_folder(folder, location=f"--dir {folder}", hint="give another folder")
    command = shlex.join(["grove-conformance", *sys.argv[1:]])
    with disk.usage_errors(location=f"--dir {folder}", hint="give another folder"):
        (folder / "comparison.json").write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
        (folder / "comparison.html").write_text(page.page(document, command), encoding="utf-8")
        (folder / "comparison.md").write_text(tables.markdown(document, command), encoding="utf-8")
