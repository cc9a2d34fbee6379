"""`grove-conformance nemesis change`: changes of a set in any order. The set must end in the state that was desired
last."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from conformance import disk
from conformance.cluster import progress
from conformance.cluster.assets import versions
from conformance.commands.disturbed import Implementation, Settings, command_line, load
from conformance.commands.kubernetes import Kubernetes
from conformance.commands.options import decode_into
from conformance.errors import Exit, UsageError
from conformance.implementation.descriptor import Role
from conformance.implementation.parameters import assignments
from conformance.nemesis import results
from conformance.nemesis.bed import open_testbed
from conformance.nemesis.changes import results as changes_results
from conformance.nemesis.changes import search
from conformance.nemesis.changes.desired import SetChange
from conformance.nemesis.changes.playing import ChangeRunner
from conformance.nemesis.changes.results import is_changes_file
from conformance.nemesis.duration import parse_seconds
from conformance.nemesis.rest import NotAtRest

__all__ = ["change", "is_changes_file", "replay"]


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """The options of `nemesis change`."""

    implementation: Implementation = "reference"
    settings: Settings = None
    budget: Annotated[str, typer.Option(metavar="DURATION", help="The time, as 90s, 30m or 2h.")] = "15m"
    first: Annotated[bool, typer.Option("--first", help="End with the first finding.")] = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is generated; 0: a new one.")] = 0
    report_dir: Annotated[Path, typer.Option(help="Folder for the folder of this search.")] = Path("reports")
    kubernetes: Kubernetes = ""


@decode_into(ChangeOptions)
def change(_: typer.Context, options: ChangeOptions) -> int:
    """Change a set in generated ways, and check that it always ends in the state that was desired last, regardless of
    the states that were desired before."""
    parameter_values = assignments(options.settings or [])
    judged, supplied = load(options.implementation, parameter_values, Role.OPERATOR)
    deadline = time.monotonic() + parse_seconds(options.budget, "--budget")
    start_time, seed = datetime.now(UTC), options.seed or _new_seed()
    folder = options.report_dir / f"changes-{start_time:%Y%m%d-%H%M%S}"
    disk.make_folder(folder, location=str(folder), hint="give another folder")
    arguments = [("--first", options.first), ("--budget", options.budget), ("--seed", seed)]
    arguments.append(("--kubernetes", options.kubernetes))
    run_info = results.RunInfo(
        judged.name,
        judged.version,
        Role.OPERATOR.value,
        dict(parameter_values),
        versions(options.kubernetes)["kubernetes"],
        start_time.isoformat(timespec="seconds"),
        command_line("change", options.implementation, parameter_values, arguments),
    )
    deviations, sequence_count, interrupted = list[search.Divergence](), 0, False
    try:
        with (
            progress.terminal("nemesis") as report,
            open_testbed(judged, supplied, Role.OPERATOR, report, kubernetes=options.kubernetes) as target,
        ):
            player = ChangeRunner(target)

            def report_changes(changes: Sequence[SetChange]) -> None:
                minutes = max(0.0, deadline - time.monotonic()) / 60
                report(
                    judged.name,
                    f"{player.played} played, {len(deviations)} found, {minutes:.0f} min left: {_describe(changes)}",
                )

            try:
                search.Search(player, deadline, report_changes, deviations, options.first).run(seed)
            finally:
                sequence_count = player.played
    except KeyboardInterrupt:
        interrupted = True
    except NotAtRest as error:
        raise UsageError(
            f"a set that is only created and scaled does not come to rest: {error}",
            where=f"--implementation {options.implementation}",
            hint="judge it with run first",
        ) from error
    document = changes_results.report(run_info, deviations, sequence_count, seed, not interrupted)
    changes_results.write(folder, document, deviations)
    _show_changes(document)
    typer.echo(f"page: {folder / 'report.html'}\nreport: {folder / 'report.json'}")
    if interrupted:
        return Exit.INTERRUPTED
    if not sequence_count:
        return Exit.NOTHING_RAN
    return Exit.NOT_CONFORMANT if document["findings"] else Exit.CONFORMANT


def replay(path: Path, times: int, implementation: str, settings: list[str] | None, kubernetes: str) -> int:
    """Repeat the changes of a finding, and report how often the set ends in a different state."""
    document = changes_results.read(path)
    parameter_values = {**({} if implementation else document.get("settings", {})), **assignments(settings or [])}
    judged, supplied = load(implementation or document["implementation"], parameter_values, Role.OPERATOR)
    changes, different_count = changes_results.changes_of(document), 0
    with (
        progress.terminal("nemesis") as report,
        open_testbed(judged, supplied, Role.OPERATOR, report, kubernetes=kubernetes) as target,
    ):
        player = ChangeRunner(target)
        for number in range(1, times + 1):
            report(judged.name, f"time {number} of {times}: {_describe(changes)}")
            lines = player.run_again(changes)
            typer.echo(f"time {number}: {'different' if lines else 'same'}")
            typer.echo("".join(f"  {line}\n" for line in lines), nl=False)
            different_count += bool(lines)
    typer.echo(f"{different_count} of {times} times it ended differently")
    return Exit.NOT_CONFORMANT if different_count else Exit.CONFORMANT


def _describe(changes: Sequence[SetChange]) -> str:
    return ", ".join(map(str, changes))


def _new_seed() -> int:
    return random.SystemRandom().randrange(1, 2**31)


def _show_changes(document: results.Report) -> None:
    for finding in document["findings"]:
        typer.echo(f"✗ {finding['number']}. ends elsewhere: {', '.join(finding['changes'])} ({finding['file']})")
        typer.echo("\n".join(f"    {line}" for line in finding["lines"][:12]))
    typer.echo(f"{document['played']} sequences of changes played, {len(document['findings'])} findings")
    if unstable := len(document["unstable"]):
        typer.echo(f"{unstable} ended differently, but not each time: they count for nothing")
