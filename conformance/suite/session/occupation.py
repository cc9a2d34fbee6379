"""The occupation of an existing cluster by a run: checks before anything is installed, and the cleanup at its end.

The remains of a killed run can be found, because objects that a run creates have a label (`existing.marks`), and KWOK's
own Stages are stored in the cluster until they are restored.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from conformance.cluster import abilities, pace
from conformance.cluster.abilities import Ability
from conformance.cluster.existing import kwok_stages, leftovers, other_scheduler
from conformance.cluster.existing.claim import ClusterClaim, claim_cluster
from conformance.cluster.existing.leftovers import Leftover
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.cluster.progress import ProgressReporter, report_nothing
from conformance.cluster.state import Owner
from conformance.errors import HarnessError, UsageError
from conformance.implementation.process import ProcessGroup
from conformance.suite.session import admitted, existing
from kube import errors
from kube.client import Client

T = TypeVar("T")

SCHEDULER_WAIT_SECONDS = 2.0
"""Seconds within which another scheduler would bind a pod."""
STAGES_TIMEOUT_SECONDS = 15.0
"""Seconds within which KWOK must apply Stages that were installed. It usually takes less than one."""


@dataclass(frozen=True)
class OccupationTerms:
    """The changes that a run makes in an existing cluster while it uses it. `scheduler`: the scheduler name that a
    process of the run will serve; empty if there is none. `install_stages`: whether our Stages are installed for KWOK;
    `keep_stages`: whether they stay after the run."""

    run: str
    options: Sequence[str] = ()
    """The options of the command line that choose the cluster."""
    scheduler: str = ""
    install_stages: bool = False
    keep_stages: bool = False
    time_scale: float = 1.0


@dataclass(frozen=True)
class Occupation:
    """An occupied cluster. `unplayed`: abilities that the cluster lacks, each with what was seen instead; `simulator`:
    the process alongside KWOK, if the run has started one; `lines`: information for the owner of the cluster."""

    claim: ClusterClaim
    unplayed: Mapping[str, str]
    simulator: Owner | None = None
    lines: Sequence[str] = field(default_factory=tuple)


@contextmanager
def occupied(
    kubeconfig: Path, terms: OccupationTerms, report: ProgressReporter = report_nothing
) -> Iterator[Occupation]:
    """Occupy a cluster inside the context; at its end, remove everything with the label of the run. Raises UsageError
    if another run uses the cluster, if a killed run has left objects, if KWOK does not apply our Stages, or if another
    scheduler serves the judged scheduler name; raises HarnessError if the cluster does not respond."""
    run_action = partial(_with_client, kubeconfig)
    pace.stretch(terms.time_scale)
    with ExitStack() as stack:
        claim = stack.enter_context(claim_cluster(kubeconfig, terms.run, report))
        _require_clean([item for item in run_action(leftovers.find) if not item.retained], terms)
        stack.callback(_remove_objects, kubeconfig, terms)
        lines, simulator = list[str](), None
        if terms.install_stages:
            lines, simulator = _install_stages(kubeconfig, terms, stack)
        unplayed = _lacking_abilities(kubeconfig, terms)
        if terms.install_stages and (lacking := {Ability.BEHAVIORS, Ability.STARTUP} & unplayed.keys()):
            reason = "; ".join(unplayed[ability] for ability in sorted(lacking))
            raise UsageError(
                f"its KWOK does not play our Stages: {reason}",
                where="--install-stages",
                hint="start it with --enable-crds=Stage, as its chart does",
            )
        yield Occupation(claim, {str(ability): reason for ability, reason in unplayed.items()}, simulator, lines)


def clean(kubeconfig: Path, run: str = "") -> list[Leftover]:
    """Remove the objects that killed runs, or one killed run, have left on a cluster, and return them. Raises
    UsageError if a run uses the cluster."""
    with claim_cluster(kubeconfig, "cluster clean"):
        items = _with_client(kubeconfig, lambda client: leftovers.find(client, run))
        _with_client(kubeconfig, lambda client: leftovers.remove(client, items, kubeconfig))
    return items


# -- within ----------------------------------------------------------------------------------------------------------


def _place(terms: OccupationTerms) -> str:
    return shlex.join(terms.options) or "the current context"


def _require_clean(leftovers_found: Sequence[Leftover], terms: OccupationTerms) -> None:
    if leftovers_found:
        hint = shlex.join(["grove-conformance", "cluster", "clean", *terms.options])
        raise UsageError(
            f"a run that was killed has left {leftovers.describe(leftovers_found)}", where=_place(terms), hint=hint
        )


def _install_stages(kubeconfig: Path, terms: OccupationTerms, stack: ExitStack) -> tuple[list[str], Owner]:
    """Install our Stages for KWOK, and start the kubelet simulation that complements KWOK."""
    if existing.own_cluster(kubeconfig) is not None:
        raise UsageError("the cluster is of the suite and has them", where="--install-stages", hint="leave it out")
    if not terms.options:
        raise UsageError(
            "needs a cluster that you name", where="--install-stages", hint="add --context, or --kubeconfig"
        )
    try:
        _with_client(kubeconfig, kwok_stages.require_unused)
        former_count = _with_client(kubeconfig, lambda client: kwok_stages.install(client, terms.run))
    except UsageError as error:
        raise UsageError(error.what, where="--install-stages", hint=error.hint) from None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grove-conformance-")))
    group = ProcessGroup(
        kubelet.command_for_other_cluster(kubeconfig),
        environment=os.environ,
        directory=folder,
        log=folder / f"{kubelet.COMPONENT}.log",
    )
    stack.callback(group.kill)
    fate = (
        "they stay" if terms.keep_stages else f"puts these back at the end{'' if former_count else ' (there is none)'}"
    )
    return [f"replaces the {former_count} Stages of its KWOK by ours; {fate}"], Owner.of(group.pid)


def _lacking_abilities(kubeconfig: Path, terms: OccupationTerms) -> dict[Ability, str]:
    """Return the abilities that the cluster lacks, each with what was seen instead. KWOK needs a moment to apply new
    Stages."""
    seconds = pace.patience(existing.ABILITY_TIMEOUT_SECONDS)
    stage_seconds = pace.patience(STAGES_TIMEOUT_SECONDS)
    deadline = time.monotonic() + (stage_seconds if terms.install_stages else 0)

    async def find_missing(client: Client) -> dict[Ability, str]:
        while existing.own_cluster(kubeconfig) is None:
            missing = await abilities.find_missing_abilities(client, seconds, terms.run)
            if not missing or time.monotonic() > deadline:
                return missing
        return {}

    async def check_all(client: Client) -> dict[Ability, str]:
        scheduler_wait = SCHEDULER_WAIT_SECONDS * max(1.0, terms.time_scale)
        answers = await asyncio.gather(
            find_missing(client),
            _require_no_other_scheduler(client, terms, scheduler_wait),
            admitted.require(client, terms.run),
            return_exceptions=True,  # all of them remove the objects that they created
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return cast(dict[Ability, str], answers[0])

    try:
        return _with_client(kubeconfig, check_all)
    except UsageError as error:
        raise UsageError(error.what, where=_place(terms), hint=error.hint) from None


async def _require_no_other_scheduler(client: Client, terms: OccupationTerms, seconds: float) -> None:
    if terms.scheduler:
        await other_scheduler.require_none(client, terms.scheduler, seconds, terms.run)


def _remove_objects(kubeconfig: Path, terms: OccupationTerms) -> None:
    """Remove all objects with the label of the run."""

    async def remove_objects(client: Client) -> None:
        if terms.install_stages and terms.keep_stages:
            await kwok_stages.keep(client)
        items = await leftovers.find(client, terms.run)
        await leftovers.remove(client, [item for item in items if not item.retained], kubeconfig)

    _with_client(kubeconfig, remove_objects)


def _with_client(kubeconfig: Path, action: Callable[[Client], Awaitable[T]]) -> T:
    """Run an action with a client. Raises HarnessError if the API server does not respond as expected."""

    async def run_action() -> T:
        async with Client.from_kubeconfig(kubeconfig, user_agent="grove-conformance/suite") as client:
            return await action(client)

    try:
        return asyncio.run(run_action())
    except errors.REQUEST_FAILED as error:
        raise HarnessError(f"the API server does not answer as it should: {error}", where=str(kubeconfig)) from error
