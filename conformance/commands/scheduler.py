"""`grove-conformance scheduler`: checks on any cluster whether its scheduler kept gangs whole."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import orjson
import typer

from conformance import disk
from conformance.errors import Exit, UsageError
from conformance.grove import labels
from conformance.grove.kinds import PODGANGMAPS, PODGANGS, SCALING_GROUPS
from conformance.history import redaction, storage
from conformance.history.recorder import Recorder, Watched
from conformance.invariants import placements
from conformance.invariants.placements import Fate, GangState, Placements
from conformance.invariants.settled_gangs import SETTLED_SECONDS
from kube import config
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES, PODS

AGENT = "grove-conformance-scheduler"

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Ask of any cluster whether its scheduler kept gangs whole."
)

WATCHED_RESOURCES = (
    Watched(PODS, labels.GANG, keep=redaction.placement),
    Watched(NODES, keep=redaction.node),
    *(Watched(resource) for resource in (PODGANGS, SCALING_GROUPS)),
)
"""The resources that the placement rules read. They are only listed and watched: nothing in the cluster is changed."""

POLL_SECONDS = 0.5
"""Seconds between two checks for new records."""


@app.callback()
def scheduler() -> None:
    """Ask of any cluster whether its scheduler kept gangs whole."""


@app.command()
def record(
    output: Annotated[Path, typer.Argument(metavar="HISTORY", help="The file to write.")],
    kubeconfig: Annotated[Path, typer.Option(help="Of the cluster to watch.")],
    seconds: Annotated[
        float | None, typer.Option("--for", min=1, help="Seconds to record; without it, until Ctrl-C.")
    ] = None,
) -> int:
    """Record what a cluster does with its gangs, only by listing and watching.

    The user needs permission to list and watch pods, nodes, PodGangs and PodCliqueScalingGroups. The images, commands,
    environments and volumes of pods are not recorded.
    """
    disk.make_folder(output.parent, location=str(output), hint="give another file")
    recorder = Recorder(kubeconfig, AGENT, (*WATCHED_RESOURCES, *asyncio.run(_watched_maps(kubeconfig))))
    recorder.start()
    typer.echo(f"recording to {output}" + (f" for {seconds:g} s" if seconds else "; Ctrl-C ends it"), err=True)
    last_seq = 0
    try:
        with disk.usage_errors(location=str(output), hint="give another file"), storage.Recording(output) as recording:
            try:
                while seconds is None or recorder.now() < seconds:
                    time.sleep(POLL_SECONDS)
                    last_seq = _write_new_records(recording, recorder, last_seq)
            except KeyboardInterrupt:
                typer.echo("", err=True)
            finally:
                _write_new_records(recording, recorder, last_seq)
    finally:
        recorder.stop()
    typer.echo(f"{recorder.last_seq()} changes in {recorder.now():.0f} s; next: scheduler judge {output}")
    return Exit.CONFORMANT


async def _watched_maps(kubeconfig: Path) -> list[Watched]:
    """Return PodGangMaps as a resource to watch, if the cluster serves them. In sets with PodGangMaps, anchors replace
    base gangs."""
    import aiohttp  # both modules are slow to import
    from kubernetes.config import ConfigException

    try:
        async with Client(config.load(kubeconfig), user_agent=AGENT) as client:
            await client.list(PODGANGMAPS)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return []
        raise UsageError(f"cannot be listed: {error}", where=str(PODGANGMAPS)) from error
    except (OSError, TimeoutError, ConfigException, aiohttp.ClientError) as error:
        raise UsageError(f"cannot be used: {error}", where=f"--kubeconfig {kubeconfig}") from error
    return [Watched(PODGANGMAPS)]


def _write_new_records(recording: storage.Recording, recorder: Recorder, last_seq: int) -> int:
    records = recorder.all_records(last_seq)
    recording.now = recorder.now()
    recording.write(records)
    return records[-1].seq if records else last_seq


@app.command()
def judge(
    history: Annotated[Path, typer.Argument(metavar="HISTORY", help="A recording, or history.jsonl.gz of a bundle.")],
    settle: Annotated[
        float, typer.Option(min=SETTLED_SECONDS, help="Seconds that the scheduler may take to go on with a gang.")
    ] = SETTLED_SECONDS,
    output: Annotated[Path | None, typer.Option("--json", help="Write the result to this file, too.")] = None,
) -> int:
    """Judge a recorded history: torn gangs, scaled gangs before their base gangs, required domains, overcommitted
    nodes.

    Exits with 1 if a rule was broken, with 5 if there was no gang to judge, and with 6 if the recording ends before it
    is clear whether a gang stays torn.
    """
    _, now, records = storage.load(history)
    judgement = placements.judge(records, now, settle)
    for line in describe(judgement, now):
        typer.echo(line)
    if output is not None:
        disk.make_folder(output.parent, location=f"--json {output}", hint="give another file")
        with disk.usage_errors(location=f"--json {output}", hint="give another file"):
            output.write_bytes(orjson.dumps(document(judgement, now), option=orjson.OPT_INDENT_2) + b"\n")
    if not any(fate.state is not GangState.OLDER for fate in judgement.fates):
        raise UsageError("has no gang to judge", where=str(history), hint="record while gangs are created")
    if judgement.broken_rules:
        return Exit.NOT_CONFORMANT
    return Exit.PARTIAL if _fates_in(judgement, GangState.TORN) else Exit.CONFORMANT


def describe(judgement: Placements, now: float) -> list[str]:
    """Return the result as lines of readable text."""
    counts = Counter(fate.state for fate in judgement.fates)
    namespace_count = len({fate.namespace for fate in judgement.fates})
    parts = ", ".join(f"{counts[state]} {state}" for state in GangState if counts[state]) or "none"
    lines = [f"{len(judgement.fates)} gangs in {namespace_count} namespaces, {now:.0f} s: {parts}"]
    lines += [f"  torn: {fate.namespace}/{fate.gang}: {fate.missing}" for fate in _fates_in(judgement, GangState.TORN)]
    if bound_fates := [fate for fate in judgement.fates if fate.binding_seconds is not None]:
        slowest = max(bound_fates, key=lambda fate: fate.binding_seconds or 0.0)
        lines.append(
            f"  longest from the first bound pod to admission: {slowest.binding_seconds:.1f} s, {slowest.gang}"
        )
    for rule in sorted({(result.id, result.statement) for _, result in judgement.results}):
        violations = [(namespace, result) for namespace, result in judgement.broken_rules if result.id == rule[0]]
        is_judged = any(result.holds for _, result in judgement.results if result.id == rule[0])
        state_word = "broken" if violations else "holds" if is_judged else "not judged"
        lines.append(f"{rule[0]} {state_word}: {rule[1]}")
        if not is_judged and not violations:
            reasons = {result.reason for _, result in judgement.results if result.id == rule[0]}
            lines += [f"  {reason}" for reason in sorted(reasons)]
        for namespace, result in violations:
            lines.append(f"  {namespace or 'the cluster'}: {result.reason}")
            lines += [f"    {record}" for record in result.records]
    return lines


def document(judgement: Placements, now: float) -> dict[str, object]:
    """Return the result as a JSON document."""
    return {
        "seconds": round(now, 3),
        "gangs": [
            {
                "namespace": fate.namespace,
                "name": fate.gang,
                "state": fate.state,
                "firstBound": fate.bound,
                "admitted": fate.admitted,
                "missing": fate.missing,
            }
            for fate in judgement.fates
        ],
        "rules": [
            {"id": result.id, "namespace": namespace, "holds": result.holds, "reason": result.reason}
            for namespace, result in judgement.results
        ],
    }


def _fates_in(judgement: Placements, state: GangState) -> list[Fate]:
    return [fate for fate in judgement.fates if fate.state is state]
