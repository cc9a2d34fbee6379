"""`grove-conformance nemesis`: an implementation under crashes, delays and wrong responses."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import psutil
import typer

from conformance import disk
from conformance.cluster import progress
from conformance.cluster.assets import versions
from conformance.commands import nemesis_changes
from conformance.commands.disturbed import Implementation, Settings, command_line, load
from conformance.commands.kubernetes import Kubernetes
from conformance.commands.options import decode_into
from conformance.errors import Exit, UsageError
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.parameters import assignments
from conformance.nemesis import campaign, catalog, results, scenario, sides
from conformance.nemesis.bed import open_testbed, open_testbeds
from conformance.nemesis.duration import parse_seconds
from conformance.nemesis.play import BROKEN, FaultOutcome, FaultVerdict, learn, play

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Kill an implementation, delay it and lie to it, and see where it ends.",
)

LANE_MEMORY = 4 * 2**30
"""Bytes of memory that a cluster with its implementation may need."""
MAX_RUNS_FACTOR = 3
"""The factor by which a replay may exceed the requested number of runs, if the plan does not reach its point in every
run."""
app.command("change")(nemesis_changes.change)


@app.callback()
def nemesis() -> None:
    """Kill an implementation, delay it and lie to it, and see where it ends."""


@app.command("list")
def list_all() -> int:
    """List the scenarios and the faults."""
    typer.echo("scenarios:")
    for name in scenario.names():
        typer.echo(f"  {name:12} {scenario.load(name).text}")
    typer.echo("faults:")
    for fault in catalog.all_faults():
        typer.echo(f"  {fault.name:14} {fault.text}" + ("" if fault.usual else " (only if asked for)"))
    return Exit.CONFORMANT


@dataclass(frozen=True, kw_only=True)
class CampaignOptions:
    """The options of `nemesis run`."""

    implementation: Implementation = "reference"
    settings: Settings = None
    role: Annotated[Role, typer.Option(help="The role that is disturbed.")] = Role.OPERATOR
    chosen: Annotated[
        list[str] | None, typer.Option("--scenario", help="Play only this scenario (repeatable): see list.")
    ] = None
    fault: Annotated[list[str] | None, typer.Option(help="Try only this fault (repeatable): see list.")] = None
    at: Annotated[str, typer.Option(metavar="TEXT", help="Only points with this in them, such as 'create pods'.")] = ""
    first: Annotated[bool, typer.Option("--first", help="End with the first finding.")] = False
    budget: Annotated[
        str, typer.Option(metavar="DURATION", help="The time for all scenarios together, as 90s, 30m or 2h.")
    ] = "30m"
    workers: Annotated[
        int, typer.Option(min=0, max=16, help="Number of clusters that plans are played on; 0: one for each core.")
    ] = 0
    report_dir: Annotated[Path, typer.Option(help="Folder for the folder of this campaign.")] = Path("reports")
    resume: Annotated[
        Path | None, typer.Option(help="Folder of a campaign that was stopped: play what it has not tried.")
    ] = None
    kubernetes: Kubernetes = ""


@app.command()
@decode_into(CampaignOptions)
def run(_: typer.Context, options: CampaignOptions) -> int:
    """Try faults at the writes and events of scenarios, starting with faults that cover something new."""
    parameter_values = assignments(options.settings or [])
    judged, supplied = load(options.implementation, parameter_values, options.role)
    budget_seconds = parse_seconds(options.budget, "--budget")
    scenarios = [scenario.load(name) for name in options.chosen or scenario.names()]
    faults = _require_possible(catalog.select(options.fault or ()), judged, options.role)
    start_time = datetime.now(UTC)
    folder = options.resume or options.report_dir / f"nemesis-{start_time:%Y%m%d-%H%M%S}"
    if options.resume is not None and not options.resume.is_dir():
        raise UsageError(
            "there is no such folder", where=f"--resume {options.resume}", hint="give the folder of a campaign"
        )
    disk.make_folder(folder, location=str(folder), hint="give another folder")
    arguments = [
        *(("--role", options.role.value), ("--scenario", options.chosen), ("--fault", options.fault)),
        *(("--at", options.at), ("--first", options.first), ("--budget", options.budget)),
        ("--kubernetes", options.kubernetes),
    ]
    run_info = results.RunInfo(
        judged.name,
        judged.version,
        options.role.value,
        dict(parameter_values),
        versions(options.kubernetes)["kubernetes"],
        start_time.isoformat(timespec="seconds"),
        command_line("run", options.implementation, parameter_values, arguments),
    )
    evidence, scenario_results, interrupted = Evidence(), list[campaign.ScenarioResults](), False
    lane_count = options.workers or max(1, min(os.cpu_count() or 1, psutil.virtual_memory().total // LANE_MEMORY))
    try:
        with (
            progress.terminal("nemesis") as report,
            open_testbeds(lane_count, judged, supplied, options.role, report, options.kubernetes) as started_beds,
        ):
            journal = campaign.Journal(folder / "tried.jsonl")
            full_campaign = campaign.Campaign(
                started_beds, journal, report, evidence.keep, point_text=options.at, stop_at_first=options.first
            )
            scenario_results = full_campaign.results
            full_campaign.run(scenarios, faults, budget_seconds)
    except KeyboardInterrupt:
        interrupted = True
    except Exception:  # the results are written, and the exception is raised again
        _write_report(folder, run_info, scenario_results, evidence, is_complete=False)
        raise
    document = _write_report(folder, run_info, scenario_results, evidence, is_complete=not interrupted)
    if interrupted:
        return Exit.INTERRUPTED
    summary = document["summary"]
    if not summary["tried"]:
        return Exit.NOTHING_RAN
    return Exit.NOT_CONFORMANT if summary["findings"] else Exit.CONFORMANT


def _write_report(
    folder: Path,
    run_info: results.RunInfo,
    scenario_results: list[campaign.ScenarioResults],
    evidence: Evidence,
    *,
    is_complete: bool,
) -> results.Report:
    """Write the report of the plans that were run, and show it."""
    complete = is_complete and all(len(entry.tried) == entry.plans for entry in scenario_results)
    document = results.report(run_info, scenario_results, complete)
    results.write(folder, document, evidence.rows(scenario_results))
    _print_report(document)
    typer.echo(f"page: {folder / 'report.html'}\nreport: {folder / 'report.json'}")
    return document


@app.command()
def replay(
    plan: Annotated[
        Path, typer.Argument(help="A file from the folder plans/ of a campaign, or from changes/ of a search.")
    ],
    times: Annotated[int, typer.Option(min=1, help="How often it is played to its point.")] = 3,
    implementation: Annotated[
        str, typer.Option(help="Another implementation than that of the plan (name or path of a descriptor).")
    ] = "",
    settings: Settings = None,
    kubernetes: Kubernetes = "",
) -> int:
    """Replay a plan, or the changes of a finding, and report how often the result differs."""
    if nemesis_changes.is_changes_file(plan):
        return nemesis_changes.replay(plan, times, implementation, settings, kubernetes)
    file = results.read_plan(plan)
    parameter_values = {**({} if implementation else file.settings), **assignments(settings or [])}
    role, fault_plan = file.role, file.plan
    judged, supplied = load(implementation or file.implementation, parameter_values, role)
    _require_possible(catalog.select([fault_plan.fault]), judged, role)
    plan_scenario = scenario.load(fault_plan.scenario)
    if missing := campaign.missing_requirement(judged, plan_scenario):
        raise UsageError(missing, where=str(plan), hint=f"the scenario {plan_scenario.name} needs it")
    broken_count = struck_count = 0
    with (
        progress.terminal("nemesis") as report,
        open_testbed(judged, supplied, role, report, kubernetes=kubernetes) as target,
    ):
        report(plan_scenario.name, "playing it without a fault")
        course = learn(target, plan_scenario)
        for number in range(1, MAX_RUNS_FACTOR * times + 1):
            report(plan_scenario.name, f"time {number}, {struck_count} of {times} with the fault: {fault_plan}")
            outcome = play(target, plan_scenario, course, fault_plan)
            typer.echo(f"time {number}: {outcome.verdict}" + (f", in {outcome.place}" if outcome.place else ""))
            struck_count += outcome.verdict is not FaultVerdict.NOT_STRUCK
            typer.echo("".join(f"  {line}\n" for line in outcome.lines), nl=False)
            broken_count += outcome.verdict in BROKEN
            if struck_count == times:
                break
            target.restart()
    typer.echo(f"{broken_count} of {struck_count} times that the fault was injected it ended differently")
    if not struck_count:
        return Exit.NOTHING_RAN
    return Exit.NOT_CONFORMANT if broken_count else Exit.CONFORMANT


@dataclass
class Evidence:
    """The object changes in plans that ended badly."""

    changes: dict[str, list[sides.ObjectChange]] = field(default_factory=dict)

    def keep(self, outcome: FaultOutcome) -> None:
        """Keep the object changes of a plan."""
        if outcome.history is not None:
            self.changes[str(outcome.plan)] = sides.changes(outcome.history)

    def rows(self, scenario_results: list[campaign.ScenarioResults]) -> dict[str, list[sides.ChangeRow]]:
        """Map each finding's plan to the rows that show both runs side by side."""
        return {
            str(tried.plan): sides.side_by_side(
                sides.changes(entry.faultless_runs.history), self.changes[str(tried.plan)]
            )
            for entry in scenario_results
            for tried in entry.findings()
            if entry.faultless_runs is not None and str(tried.plan) in self.changes
        }


def _require_possible(faults: list[catalog.Fault], judged: Descriptor, role: Role) -> list[catalog.Fault]:
    """Return the faults. Raises UsageError if one of them cannot be tried on this implementation."""
    for fault in faults:
        if fault.requires and (fault.requires not in judged.features or role != Role.OPERATOR):
            raise UsageError(
                f"{fault.name} is for an operator that claims the feature {fault.requires}",
                where="--fault",
                hint="leave it out",
            )
    return faults


def _print_report(document: results.Report) -> None:
    for entry in document["scenarios"]:
        if entry["refused"]:
            typer.echo(f"{entry['name']}: refused: {entry['refused']}")
            continue
        counts = Counter({fault: count["findings"] for fault, count in entry["faults"].items()})
        finding_counts = ", ".join(f"{fault} {count}" for fault, count in counts.items() if count) or "none"
        tried_text = f"{entry['tried']} of {entry['plans']} plans, {entry['pointsTried']} of {entry['points']} points"
        typer.echo(f"{entry['name']}: {tried_text}; findings: {finding_counts}")
    for finding in document["findings"]:
        typer.echo(f"✗ {finding['number']}. {finding['verdict']}: {finding['text']} ({finding['file']})")
        typer.echo("\n".join(f"    {line}" for line in finding["lines"][:12]))
    if unstable := document["summary"]["unstable"]:
        typer.echo(f"{unstable} plans ended differently, but not each time or by chance: they count for nothing")
