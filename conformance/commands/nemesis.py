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
from conformance.errors import Exit, UsageError
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.parameters import assignments
from conformance.nemesis import campaign, catalog, results, scenario, sides
from conformance.nemesis.bed import bed, beds
from conformance.nemesis.duration import seconds
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


@app.command()
def run(
    implementation: Implementation = "reference",
    settings: Settings = None,
    role: Annotated[Role, typer.Option(help="The role that is disturbed.")] = Role.OPERATOR,
    chosen: Annotated[
        list[str] | None, typer.Option("--scenario", help="Play only this scenario (repeatable): see list.")
    ] = None,
    fault: Annotated[list[str] | None, typer.Option(help="Try only this fault (repeatable): see list.")] = None,
    at: Annotated[str, typer.Option(metavar="TEXT", help="Only points with this in them, such as 'create pods'.")] = "",
    first: Annotated[bool, typer.Option("--first", help="End with the first finding.")] = False,
    budget: Annotated[
        str, typer.Option(metavar="DURATION", help="The time for all scenarios together, as 90s, 30m or 2h.")
    ] = "30m",
    workers: Annotated[
        int, typer.Option(min=0, max=16, help="Number of clusters that plans are played on; 0: one for each core.")
    ] = 0,
    report_dir: Annotated[Path, typer.Option(help="Folder for the folder of this campaign.")] = Path("reports"),
    resume: Annotated[
        Path | None, typer.Option(help="Folder of a campaign that was stopped: play what it has not tried.")
    ] = None,
    kubernetes: Kubernetes = "",
) -> int:
    """Try faults at the writes and events of scenarios, starting with faults that cover something new."""
    given = assignments(settings or [])
    judged, supplied = load(implementation, given, role)
    limit = seconds(budget, "--budget")
    scenarios = [scenario.load(name) for name in chosen or scenario.names()]
    faults = _possible(catalog.chosen(fault or ()), judged, role)
    started = datetime.now(UTC)
    folder = resume or report_dir / f"nemesis-{started:%Y%m%d-%H%M%S}"
    if resume is not None and not resume.is_dir():
        raise UsageError("there is no such folder", where=f"--resume {resume}", hint="give the folder of a campaign")
    disk.make(folder, location=str(folder), hint="give another folder")
    about = results.About(
        judged.name,
        judged.version,
        role.value,
        dict(given),
        versions(kubernetes)["kubernetes"],
        started.isoformat(timespec="seconds"),
        command_line(
            "run",
            implementation,
            given,
            [
                ("--role", role.value),
                ("--scenario", chosen),
                ("--fault", fault),
                ("--at", at),
                ("--first", first),
                ("--budget", budget),
                ("--kubernetes", kubernetes),
            ],
        ),
    )
    evidence, played, interrupted = Evidence(), list[campaign.ScenarioResults](), False
    lanes = workers or max(1, min(os.cpu_count() or 1, psutil.virtual_memory().total // LANE_MEMORY))
    try:
        with (
            progress.terminal("nemesis") as report,
            beds(lanes, judged, supplied, role, report, kubernetes) as started_beds,
        ):
            journal = campaign.Journal(folder / "tried.jsonl")
            whole_campaign = campaign.Campaign(started_beds, journal, report, evidence.keep, at=at, first=first)
            played = whole_campaign.done
            whole_campaign.run(scenarios, faults, limit)
    except KeyboardInterrupt:
        interrupted = True
    except Exception:  # the results are written, and the exception is raised again
        _keep(folder, about, played, evidence, whole=False)
        raise
    document = _keep(folder, about, played, evidence, whole=not interrupted)
    if interrupted:
        return Exit.INTERRUPTED
    summary = document["summary"]
    if not summary["tried"]:
        return Exit.NOTHING_RAN
    return Exit.NOT_CONFORMANT if summary["findings"] else Exit.CONFORMANT


def _keep(
    folder: Path, about: results.About, played: list[campaign.ScenarioResults], evidence: Evidence, *, whole: bool
) -> results.Report:
    """Write the report of the plans that were run, and show it."""
    complete = whole and all(len(entry.tried) == entry.plans for entry in played)
    document = results.report(about, played, complete)
    results.write(folder, document, evidence.rows(played))
    _show(document)
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
    if nemesis_changes.is_one(plan):
        return nemesis_changes.replay(plan, times, implementation, settings, kubernetes)
    document = results.read_plan(plan)
    given = {**({} if implementation else document.get("settings", {})), **assignments(settings or [])}
    role, replayed = Role(document["role"]), results.plan_of(document)
    judged, supplied = load(implementation or document["implementation"], given, role)
    _possible(catalog.chosen([replayed.fault]), judged, role)
    plan_scenario = scenario.load(replayed.scenario)
    if missing := campaign.unmet(judged, plan_scenario):
        raise UsageError(missing, where=str(plan), hint=f"the scenario {plan_scenario.name} needs it")
    bad_count = struck_count = 0
    with progress.terminal("nemesis") as report, bed(judged, supplied, role, report, kubernetes=kubernetes) as target:
        report(plan_scenario.name, "playing it without a fault")
        course = learn(target, plan_scenario)
        for number in range(1, MAX_RUNS_FACTOR * times + 1):
            report(plan_scenario.name, f"time {number}, {struck_count} of {times} with the fault: {replayed}")
            outcome = play(target, plan_scenario, course, replayed)
            typer.echo(f"time {number}: {outcome.verdict}" + (f", in {outcome.place}" if outcome.place else ""))
            struck_count += outcome.verdict is not FaultVerdict.NOT_STRUCK
            typer.echo("".join(f"  {line}\n" for line in outcome.lines), nl=False)
            bad_count += outcome.verdict in BROKEN
            if struck_count == times:
                break
            target.restart()
    typer.echo(f"{bad_count} of {struck_count} times that the fault was injected it ended differently")
    if not struck_count:
        return Exit.NOTHING_RAN
    return Exit.NOT_CONFORMANT if bad_count else Exit.CONFORMANT


@dataclass
class Evidence:
    """The object changes in plans that ended badly."""

    changes: dict[str, list[sides.ObjectChange]] = field(default_factory=dict)

    def keep(self, outcome: FaultOutcome) -> None:
        """Keep the object changes of a plan."""
        if outcome.history is not None:
            self.changes[str(outcome.plan)] = sides.changes(outcome.history)

    def rows(self, played: list[campaign.ScenarioResults]) -> dict[str, list[sides.ChangeRow]]:
        """Map each finding's plan to the rows that show both runs side by side."""
        return {
            str(tried.plan): sides.side_by_side(sides.changes(entry.course.history), self.changes[str(tried.plan)])
            for entry in played
            for tried in entry.findings()
            if entry.course is not None and str(tried.plan) in self.changes
        }


def _possible(faults: list[catalog.Fault], judged: Descriptor, role: Role) -> list[catalog.Fault]:
    """Return the faults. Raises UsageError if one of them cannot be tried on this implementation."""
    for fault in faults:
        if fault.requires and (fault.requires not in judged.features or role != Role.OPERATOR):
            raise UsageError(
                f"{fault.name} is for an operator that claims the feature {fault.requires}",
                where="--fault",
                hint="leave it out",
            )
    return faults


def _show(document: results.Report) -> None:
    for entry in document["scenarios"]:
        if entry["refused"]:
            typer.echo(f"{entry['name']}: refused: {entry['refused']}")
            continue
        counts = Counter({fault: count["findings"] for fault, count in entry["faults"].items()})
        finding_counts = ", ".join(f"{fault} {count}" for fault, count in counts.items() if count) or "none"
        tried = f"{entry['tried']} of {entry['plans']} plans, {entry['pointsTried']} of {entry['points']} points"
        typer.echo(f"{entry['name']}: {tried}; findings: {finding_counts}")
    for finding in document["findings"]:
        typer.echo(f"✗ {finding['number']}. {finding['verdict']}: {finding['text']} ({finding['file']})")
        typer.echo("\n".join(f"    {line}" for line in finding["lines"][:12]))
    if unstable := document["summary"]["unstable"]:
        typer.echo(f"{unstable} plans ended differently, but not each time or by chance: they count for nothing")
