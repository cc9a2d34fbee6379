"""Runs all instances of a form at the same time. Forms that can share a cluster are run on the same one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TypeVar

from conformance.cluster import gpu_failures
from conformance.cluster.assets import versions
from conformance.cluster.features import FeatureRequest
from conformance.errors import HarnessError
from conformance.history.query import Predicate, Unmet
from conformance.history.view import View
from conformance.lab.gaps import recording
from conformance.lab.gaps.forms import SETS, Form
from conformance.lab.gaps.instances import Counts, GapInstance
from conformance.lab.gaps.mappings import Mapping, MappingRun
from conformance.lab.gaps.plays import InstanceRun
from conformance.lab.gaps.sets import SetInstanceRun, SetMappingRun
from conformance.suite.environment import RunningTest
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.outcomes.ledger import Ledger
from conformance.suite.scenes.api import Object
from conformance.suite.scenes.scene import SceneBroken, SceneChecks, SceneEnded
from conformance.suite.session.worker import ClusterEnvironment, load_implementation, open_environment
from conformance.suite.settings import RunSettings
from conformance.testing.scene import SceneEnvironment

T = TypeVar("T")
Report = Callable[[str, str], None]

TIMEOUT_SECONDS = 60.0


class _FormFailed(Exception):
    """A form could not be completed."""


@dataclass(frozen=True)
class FormFailure:
    """The reason why some or all outcomes of a form are missing."""

    form: Form
    reason: str

    def __str__(self) -> str:
        return f"{self.form.title}: {self.reason}"


@dataclass(frozen=True)
class MappingOutcome:
    """The outcome of one mapping on a number of nodes."""

    form: Form
    mapping: Mapping
    nodes: int
    run: int
    outcome: str


@dataclass(frozen=True)
class GapOutcome:
    """The result of one instance in one form. `problem` describes the difference from the expected outcome, and is
    empty if there is none. `devices` is the number of allocated devices, or None if no pod claims any."""

    form: Form
    instance: GapInstance
    run: int
    counts: Counts
    problem: str
    devices: int | None = None


GapResult = GapOutcome | MappingOutcome | FormFailure


def play(
    forms: Sequence[Form],
    instances: Sequence[GapInstance],
    mappings: Sequence[Mapping],
    runs: int,
    folder: Path,
    report: Report,
) -> Generator[GapResult]:
    """Run the instances and mappings in each form, all of them at the same time on separate nodes, and write their
    recordings to a folder. If a form fails, the other forms are run nevertheless. Raises HarnessError if the suite is
    at fault."""
    for _, same_cluster_forms in groupby(sorted(forms, key=lambda form: repr(form.cluster)), lambda form: form.cluster):
        group = list(same_cluster_forms)
        report(group[0].title, "starting a cluster")
        with tempfile.TemporaryDirectory(prefix="grove-lab-") as scratch, _cluster(scratch, group[0]) as cluster:
            for form in group:
                mappings_of_form = [mapping for mapping in mappings if form.name in mapping.forms]
                report(form.title, f"{len(instances)} instances, {len(mappings_of_form)} mappings, {runs} times")
                try:
                    yield from _outcomes_of(cluster, form, runs, instances, mappings_of_form, folder)
                except _FormFailed as failure:
                    yield FormFailure(form, str(failure))


def load_descriptors(forms: Iterable[Form]) -> None:
    """Load the descriptors of all forms, before anything is run. Raises UsageError if a descriptor is invalid."""
    for form in forms:
        load_implementation(_settings("", form))


def _settings(scratch: str, form: Form) -> RunSettings:
    return RunSettings(
        run=f"gaps-{os.getpid()}",
        directory=scratch,
        implementation=form.implementation,
        parameters=dict(form.parameters),
        kubernetes=versions(form.kubernetes)["kubernetes"],
        cluster_features=FeatureRequest(presets=form.features),
    )


def _cluster(scratch: str, form: Form) -> closing[ClusterEnvironment]:
    try:
        return closing(open_environment(_settings(scratch, form), form.name, Ledger(lambda line: None)))
    except Blocked as error:
        raise HarnessError(error.reason) from error


def _outcomes_of(
    cluster: ClusterEnvironment,
    form: Form,
    runs: int,
    instances: Sequence[GapInstance],
    mappings: Sequence[Mapping],
    folder: Path,
) -> Iterator[GapOutcome | MappingOutcome]:
    numbers = range(1, runs + 1)
    with _scene(cluster, form) as env:
        gap_run_class, mapping_run_class = (
            (SetInstanceRun, SetMappingRun) if form.api == SETS else (InstanceRun, MappingRun)
        )
        gap_runs = [gap_run_class(env, form, instance, run) for run in numbers for instance in instances]
        mapping_runs = [
            mapping_run_class(env, form, mapping, gpus, run)
            for run in numbers
            for mapping in mappings
            for gpus in mapping.sizes
        ]
        plays: list[InstanceRun | MappingRun] = [*gap_runs, *mapping_runs]
        if plays:
            _run_to_rest(env, form, plays)
        if any(play.instance.lost for play in gap_runs):
            _lose_pods(env, form, gap_runs)
        view = env.history.view()
        for play in gap_runs:
            counts = play.counts(view)
            is_right = play.instance.matches_expectation(counts)
            problem = play.find_violation(view) if is_right else f"expected: {play.instance.expect}"
            recording.write(folder / f"{form.name}-{play.run}" / play.instance.name, env, play.bench.name)
            yield GapOutcome(form, play.instance, play.run, counts, problem, play.count_devices(view))
        for mapping_play in mapping_runs:
            name = mapping_play.bench.name
            recording.write(folder / f"{form.name}-{mapping_play.run}" / name, env, name)
            outcome = mapping_play.outcome(view)
            yield MappingOutcome(form, mapping_play.mapping, mapping_play.gpus, mapping_play.run, outcome)


@contextmanager
def _scene(cluster: ClusterEnvironment, form: Form) -> Iterator[SceneEnvironment]:
    key = f"gaps-{form.name}"
    with cluster.play(RunningTest(key, SceneChecks(key, ()))) as env:
        try:
            yield env
        except (SceneEnded, SceneBroken, Blocked) as error:
            raise _FormFailed(str(error)) from error


def _run_to_rest(env: SceneEnvironment, form: Form, plays: Sequence[InstanceRun | MappingRun]) -> None:
    """Create everything, then act as an operator until nothing changes any more."""
    node_manifests = [node for play in plays for node in play.nodes()]
    env.create_nodes(node_manifests)
    env.wait_for("devices published", devices_are_published(node_manifests))
    for play in plays:
        play.create()
    for objects in ([play.groups() for play in plays], [play.pods() for play in plays]):
        for batch in _interleaved(objects):
            env.create_all(batch)
    _ungate(env, [play.gated for play in plays])
    plays[0].witness("witness")
    while True:
        view = _state_at_rest(env, form)
        pods_to_ungate = [list(play.take_pods_to_ungate(view)) for play in plays]
        if not any(pods_to_ungate):
            break
        _ungate(env, pods_to_ungate)


def _ungate(env: SceneEnvironment, pods: Sequence[Sequence[str]]) -> None:
    """Remove the gates of each run's pods one by one, in order."""
    for names in _interleaved(pods):
        env.ungate(names)


def _interleaved(lists: Sequence[Sequence[T]]) -> Iterator[list[T]]:
    """Yield the first entries of all lists, then the second entries, and so on: this keeps the order within each list,
    and all runs advance together."""
    for entries in zip_longest(*lists):
        yield [entry for entry in entries if entry is not None]


def _lose_pods(env: SceneEnvironment, form: Form, plays: Sequence[InstanceRun]) -> None:
    """Take pods from the instances that are to lose some, and wait until nothing changes any more."""
    for instance_play in plays:
        instance, counts = instance_play.instance, instance_play.counts(env.history.view())
        if instance.lost and instance.bound_part(counts) == "minimum":
            instance_play.lose_pods()
    plays[0].witness("last-witness")
    _state_at_rest(env, form)


def _state_at_rest(env: SceneEnvironment, form: Form) -> View:
    """Return the state once nothing changes any more."""
    start = env.history.now()
    view = env.quiet(form.patience, TIMEOUT_SECONDS, real=True)
    if env.history.now() - start >= TIMEOUT_SECONDS:
        raise _FormFailed(f"something still moves after {TIMEOUT_SECONDS:g} s")
    return view


def devices_are_published(node_manifests: Sequence[Object]) -> Predicate:
    """Return a predicate: each device of the nodes is in a ResourceSlice."""
    annotations = {node["metadata"]["name"]: node["metadata"].get("annotations") for node in node_manifests}

    def check(view: View) -> bool | Unmet:
        slices = view.list("resourceslices")
        missing = (name for name in annotations if not gpu_failures.are_published(slices, name, annotations[name]))
        return next((Unmet(f"the devices of {name} are not published") for name in missing), True)

    return check
