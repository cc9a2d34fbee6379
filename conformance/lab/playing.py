"""Runs trials on a fake cluster. Trials with the same parameters of the implementation share a cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby

from conformance.errors import HarnessError
from conformance.history.order import server_order
from conformance.history.record import Record
from conformance.lab import measures
from conformance.lab.experiment import QUIET, Trial
from conformance.lab.scene import CHANGE, REST, SET, UpdateUnderObservation
from conformance.scale.requests import is_counted
from conformance.suite.environment import RunningTest
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.outcomes.ledger import Ledger
from conformance.suite.scenes.scene import SceneBroken, SceneChecks, SceneEnded
from conformance.suite.session.worker import ClusterEnvironment, open_environment
from conformance.suite.settings import RunSettings
from conformance.testing.scene import SceneEnvironment

Report = Callable[[str, str], None]

IMPLEMENTATION = "reference"


class TrialFailed(Exception):
    """The implementation did not complete an update."""


@dataclass(frozen=True)
class TrialOutcome:
    """The results of one trial. `evicted` are the members that a preemption took, or None if there was no preemption.
    `orphans` are the replicas that lost their partners in the scale-in, or None if there was no scale-in."""

    trial: Trial
    measurement: measures.UpdateMeasurement
    writes: int
    largest_shared_gang: int
    evicted: list[str] | None
    orphans: list[str] | None


def play(trials: Sequence[Trial], report: Report, kubernetes: str = "") -> Iterator[TrialOutcome]:
    """Run all trials on clusters with this version of Kubernetes. Raises TrialFailed, or HarnessError if the suite is
    at fault."""
    number = 0
    for key, group in groupby(sorted(trials, key=_parameters), _parameters):
        with (
            tempfile.TemporaryDirectory(prefix="grove-lab-") as folder,
            _cluster(folder, dict(key), kubernetes) as cluster,
        ):
            for trial in group:
                number += 1
                report(f"{number} of {len(trials)}", trial.key)
                yield _run_trial(cluster, trial)


def _parameters(trial: Trial) -> tuple[tuple[str, str], ...]:
    return tuple(trial.layout.parameters.items())


def _cluster(folder: str, parameters: Mapping[str, str], kubernetes: str) -> closing[ClusterEnvironment]:
    run = f"lab-{os.getpid()}-{len(parameters)}"
    settings = RunSettings(
        run=run, directory=folder, implementation=IMPLEMENTATION, parameters=dict(parameters), kubernetes=kubernetes
    )
    try:
        return closing(open_environment(settings, "main", Ledger(lambda line: None)))
    except Blocked as error:
        raise HarnessError(error.reason, hint="some layouts need a checkout of this project") from error


def _run_trial(cluster: ClusterEnvironment, trial: Trial) -> TrialOutcome:
    running_test = RunningTest(trial.key, SceneChecks(trial.key, ()))
    scene = UpdateUnderObservation(trial)
    with cluster.play(running_test) as env:
        try:
            scene.play(env)
        except (SceneEnded, SceneBroken) as error:
            raise TrialFailed(f"{trial.key}: {error}") from error
        return _outcome(env, trial, scene)


def _outcome(env: SceneEnvironment, trial: Trial, scene: UpdateUnderObservation) -> TrialOutcome:
    records = [record for record in env.history.records() if record.resource != "events"]
    records_in_order = server_order(records)
    if records_in_order is None:
        raise HarnessError("the records of this cluster have no common order")
    change_step, rest_step = env.steps[CHANGE], env.steps[REST]
    records_before: list[Record] = [record for record in records_in_order if change_step.includes(record)]
    records_during = [
        record for record in records_in_order if rest_step.includes(record) and not change_step.includes(record)
    ]
    measurement = measures.UpdateMeter(SET, scene.components, scene.old_generation_hash).measure(
        records_before, records_during
    )
    is_undisturbed = trial.course.name == QUIET
    return TrialOutcome(
        trial,
        measurement,
        _count_writes(env, scene),
        scene.largest_shared_gang,
        None if trial.course.name != "preemption" else measures.members(measurement.evicted, SET, scene.components),
        scene.orphans if is_undisturbed else None,
    )


def _count_writes(env: SceneEnvironment, scene: UpdateUnderObservation) -> int:
    """Return the number of the implementation's writes to the API during the update, without the writes of KWOK and
    kube-scheduler, which every update causes."""
    if env.audit is None:
        return 0
    counts = env.audit.count(scene.writes_before, scene.writes_after, env.namespace)
    return sum(count for key, count in counts.items() if is_counted(key.user, key.program))
