"""Read runs and their outcomes from a `report.yaml`, or from a file of recorded runs, which is much smaller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from conformance import documents
from conformance.report import reading
from conformance.report.model import Outcome

SCHEMA = Path(__file__).parent / "recorded.schema.json"
API_VERSION, KIND = "conformance.grove.io/v1alpha1", "RecordedRuns"


@dataclass(frozen=True)
class Run:
    """One run of the suite: the implementation, the time, the suite, and the outcomes of the selected requirements and
    of other violated invariants."""

    digest: str
    """The digest of the run's verdict."""
    implementation: str
    version: str
    features: tuple[str, ...]
    started: str
    suite: str
    environment: Mapping[str, str]
    outcomes: Mapping[str, Outcome]
    verdict: str = ""
    """The run's verdict. This field and the following fields are empty for runs that were recorded without them."""
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Judged profile → its verdict."""
    contract: str = ""
    """The release line and the release of Grove's contract."""
    supplied: Mapping[str, str] = field(default_factory=dict)
    """Role → the other implementation that supplied it."""
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
    return [_of_record(entry) for entry in documents.read(path, SCHEMA).value["runs"]]


def render(runs: Iterable[Run]) -> str:
    """Return recorded runs as YAML."""
    content = {"apiVersion": API_VERSION, "kind": KIND, "runs": [_entry(run) for run in runs]}
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


def _of_record(entry: Mapping[str, Any]) -> Run:
    withdrawn = entry.get("withdrawn", {})
    outcomes = {id: Outcome(outcome) for outcome, ids in entry["outcomes"].items() for id in ids if id not in withdrawn}
    return Run(
        digest=entry["digest"],
        implementation=entry["implementation"],
        version=entry["version"],
        features=tuple(entry["features"]),
        started=entry["started"],
        suite=entry["suite"],
        environment=entry["environment"],
        outcomes=dict(sorted(outcomes.items())),
        verdict=entry.get("verdict", ""),
        profiles=entry.get("profiles", {}),
        contract=entry.get("contract", ""),
        supplied=entry.get("supplied", {}),
        withdrawn=withdrawn,
    )


def _entry(run: Run) -> dict[str, Any]:
    return {
        "digest": run.digest,
        "implementation": run.implementation,
        "version": run.version,
        "features": list(run.features),
        "started": run.started,
        "suite": run.suite,
        "environment": dict(run.environment),
        **{name: value for name, value in _optional(run).items() if value},
        "outcomes": dict(_by_outcome(run)),
        **({"withdrawn": dict(run.withdrawn)} if run.withdrawn else {}),
    }


def _optional(run: Run) -> dict[str, Any]:
    return {
        "verdict": run.verdict,
        "profiles": dict(run.profiles),
        "contract": run.contract,
        "supplied": dict(run.supplied),
    }


def _by_outcome(run: Run) -> Iterator[tuple[str, list[str]]]:
    for outcome in Outcome:
        if ids := [id for id, actual in run.outcomes.items() if actual is outcome]:
            yield str(outcome), sorted(ids)
