"""`grove-conformance validate`: the project's own data files against their schemas.

To check another kind of file, add a row to VALIDATORS.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from conformance import documents
from conformance.cluster import features, fleets, node_profiles, pod_behaviors, policies, stages
from conformance.data import folder
from conformance.errors import UsageError
from conformance.grove import health, lines, samples, served, workloads
from conformance.grove.admission import manifests
from conformance.grove.coherent import traces
from conformance.grove.scheduling import scenarios
from conformance.implementation import loading
from conformance.lab.gaps import instances
from conformance.report import recorded
from conformance.scale import scenario
from conformance.suite.registry import coverage
from conformance.suite.session import shards


def _workload(path: Path) -> None:
    """Check a workload and the pod behaviors that it names."""
    workloads.check(path)
    for mistake in pod_behaviors.mistakes_of_set(workloads.load(path.stem, place=path.parent)):
        raise UsageError(mistake.what, where=f"{documents.display_path(path)}: {mistake.where}", hint=mistake.hint)


def _samples(path: Path) -> None:
    """Check the list of samples and the nodes that the samples name."""
    for name, sample in samples.read(path).items():
        for argument in sample.nodes:
            fleets.requested_nodes(argument, location=f"{documents.display_path(path)}: {name}.nodes")


Validator = tuple[str, str, Callable[[Path], object]]

VALIDATORS: list[Validator] = [
    ("kwok-profiles", "nodes/*.yaml", node_profiles.load),
    ("kwok-profiles", "behaviors.yaml", pod_behaviors.read),
    ("kwok-profiles", "fleets/*.yaml", fleets.load),
    ("kwok-profiles", "stages/*/*.yaml", stages.load_file),
    ("fixtures", "implementations/*.yaml", loading.validate),
    ("fixtures", "features/*.yaml", features.read),
    ("fixtures", "policies/*.yaml", policies.read),
    ("fixtures", "workloads/*.yaml", _workload),
    ("fixtures", "samples/samples.yaml", _samples),
    ("fixtures", "scale/*.yaml", scenario.read),
    ("fixtures", "health/*.yaml", health.read),
    ("fixtures", "admission/*.yaml", manifests.read),
    ("fixtures", "api/*.yaml", served.read),
    ("fixtures", "coherent/traces.yaml", traces.traces),
    ("fixtures", "contract/lines.yaml", lines.read),
    ("fixtures", "costs/scenes.yaml", shards.read),
    ("fixtures", "coverage/scenarios.yaml", coverage.scenarios),
    ("fixtures", "coverage/rows.yaml", coverage.rows),
    ("fixtures", "coverage/defects.yaml", lambda path: coverage.rows(defects=path)),
    ("fixtures", "findings/*.runs.yaml", recorded.read),
    ("fixtures", "scheduling/*.yaml", scenarios.read),
    ("fixtures", "gaps/*.yaml", instances.load),
]
"""Data folder, pattern of file names, and a function that reads such a file and raises UsageError if it is invalid."""


def validate() -> None:
    """Check the data files (node profiles, stages, workloads, …) against their schemas."""
    count, messages = 0, []
    for data_folder, pattern, load in VALIDATORS:
        for path in sorted(folder(data_folder).glob(pattern)):
            count += 1
            try:
                load(path)
            except UsageError as error:
                messages.append(str(error))
    for line in messages[:-1]:
        typer.echo(line, err=True)
    if messages:
        raise UsageError(messages[-1])
    typer.echo(f"{count} data files are valid")
