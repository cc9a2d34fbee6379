"""Read runs and their outcomes from a `report.yaml`, or from a file of recorded runs, which is much smaller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, field, structs

from conformance import formats
from conformance.formats import Format, Text
from conformance.report import reading
from conformance.report.model import Outcome

RequirementId = Annotated[str, Meta(pattern="^[A-Z]{2,10}-[0-9]{3}$")]


class RunFacts(Format, frozen=True, omit_defaults=True):
    """The facts about a run of the suite beside its outcomes. Fields with a default are empty for runs that were
    recorded without them."""

    digest: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$", description="digest of the verdict")]
    implementation: Text
    version: Text
    features: tuple[str, ...]
    started: Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$")]
    suite: Annotated[Text, Meta(description="version and digest of the suite")]
    environment: Mapping[str, str]
    verdict: Text = ""
    profiles: Annotated[Mapping[str, str], Meta(description="profile → its verdict")] = field(default_factory=dict)
    contract: Annotated[str, Meta(description="line and release of Grove's contract")] = ""
    supplied: Annotated[
        Mapping[str, str], Meta(description="roles that another implementation played, with its name")
    ] = field(default_factory=dict)


class RecordedRun(RunFacts, frozen=True, kw_only=True, omit_defaults=True):
    """A run, as a file of recorded runs has it."""

    outcomes: Annotated[
        dict[Outcome, Annotated[list[RequirementId], Meta(min_length=1, extra_json_schema={"uniqueItems": True})]],
        Meta(
            description="outcome → ids of requirements",
            extra_json_schema={"propertyNames": {"enum": [*Outcome]}},
        ),
    ]
    withdrawn: Annotated[
        dict[RequirementId, Text],
        Meta(
            min_length=1,
            description="failures that were errors of the suite: id → what was wrong; written by hand",
        ),
    ] = field(default_factory=dict)


class RecordedRuns(Format, frozen=True):
    """Outcomes of runs, without their evidence."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["RecordedRuns"]
    runs: Annotated[list[RecordedRun], Meta(min_length=1)]


class Run(RunFacts, frozen=True, kw_only=True):
    """One run of the suite: the implementation, the time, the suite, and the outcomes of the selected requirements and
    of other violated invariants."""

    outcomes: Mapping[str, Outcome]
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    """Requirement → the bug of the suite that caused its failure. Such requirements have no outcome."""

    @property
    def date(self) -> str:
        """Return the date on which the run started."""
        return self.started.partition("T")[0]

    @property
    def label(self) -> str:
        """Return a short name for the run: the implementation, its version and the date."""
        return f"{self.implementation} {self.version}, {self.date}"

    @property
    def failed(self) -> frozenset[str]:
        """Return the requirements that failed, expectedly or not."""
        return frozenset(id for id, outcome in self.outcomes.items() if outcome in FAILED)


FAILED = frozenset({Outcome.FAILED, Outcome.EXPECTED_FAILURE})


def read(path: Path) -> list[Run]:
    """Read the run of a report, or the runs of a file of recorded runs. Raises UsageError if the file is neither or is
    invalid."""
    path = reading.report_path(path)
    content = reading.text(path)
    if reading.is_report(content):
        return [_of_report(reading.parse(content, path))]
    _, record = formats.read(path, RecordedRuns)
    return [_of_record(run) for run in record.runs]


def render(runs: Iterable[Run]) -> str:
    """Return recorded runs as YAML."""
    content = msgspec.to_builtins(
        RecordedRuns("conformance.grove.io/v1alpha1", "RecordedRuns", list(map(_record, runs)))
    )
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=None, width=116)


def _of_report(value: Mapping[str, Any]) -> Run:
    verdict, run = value["verdict"], value["run"]
    implementation, selected = verdict["implementation"], verdict["selection"]
    selected_ids = set(selected["ids"])
    return Run(
        digest=value["digest"],
        implementation=implementation["name"],
        version=implementation["version"],
        features=tuple(implementation["features"]),
        started=run["started"],
        suite=f"{verdict['suite']['version']} ({verdict['suite']['digest']})",
        environment=run["environment"],
        outcomes={
            entry["id"]: Outcome(entry["outcome"])
            for entry in verdict["requirements"]
            if not selected_ids or entry["id"] in selected_ids or entry["tests"]
        },
        verdict=verdict["result"],
        profiles={profile["name"]: profile["verdict"] for profile in verdict["profiles"]},
        contract=" ".join(filter(None, (implementation.get("line"), implementation.get("release")))),
        supplied=implementation["suppliedRoles"],
    )


def _of_record(record: RecordedRun) -> Run:
    outcomes = {id: outcome for outcome, ids in record.outcomes.items() for id in ids if id not in record.withdrawn}
    return Run(**{**structs.asdict(record), "outcomes": dict(sorted(outcomes.items()))})


def _record(run: Run) -> RecordedRun:
    ids = {
        outcome: sorted(id for id, actual in run.outcomes.items() if actual is outcome)
        for outcome in Outcome
        if outcome in run.outcomes.values()
    }
    return RecordedRun(**{**structs.asdict(run), "outcomes": ids})
