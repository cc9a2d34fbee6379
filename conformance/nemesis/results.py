"""The files of a campaign: its report as JSON and as a page, and a plan file for each finding."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson
import yaml
from msgspec import field

from conformance import disk, documents, formats
from conformance.errors import UsageError
from conformance.formats import Format
from conformance.implementation.descriptor import Role
from conformance.nemesis.campaign import PlanTrial, ScenarioResults
from conformance.nemesis.points import FaultPlan, PointFormat
from conformance.nemesis.sides import ChangeRow
from conformance.pages.render import render

API_VERSION, KIND, PLAN_KIND = "conformance.grove.io/v1alpha1", "NemesisReport", "NemesisPlan"
FOLDER = Path(__file__).parent
SCHEMA, PAGE = FOLDER / "report.schema.json", FOLDER / "page.html"

Report = dict[str, Any]


class PlanFile(Format, frozen=True, kw_only=True):
    """A plan of a campaign, and how to replay it. `settings` are the parameters of the descriptor."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: str
    implementation: str
    settings: dict[str, str] = field(default_factory=dict)
    role: Role
    scenario: str
    fault: str
    point: PointFormat

    @property
    def plan(self) -> FaultPlan:
        """Return the plan."""
        return FaultPlan(self.scenario, self.fault, self.point.point())


@dataclass(frozen=True)
class RunInfo:
    """The judged implementation, and the command and time at which the run was started. `settings` are the parameters
    of the descriptor."""

    implementation: str
    version: str
    role: str
    settings: dict[str, str]
    kubernetes: str
    started_at: str
    command: str


def header(kind: str, run_info: RunInfo) -> Report:
    """Return the fields with which every report of this kind starts."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "implementation": {"name": run_info.implementation, "version": run_info.version, "settings": run_info.settings},
        "kubernetes": run_info.kubernetes,
        "startedAt": run_info.started_at,
        "command": run_info.command,
    }


def report(run_info: RunInfo, scenario_results: Sequence[ScenarioResults], complete: bool) -> Report:
    """Return the report of a campaign."""
    tried = [attempt for entry in scenario_results for attempt in entry.tried]
    findings = [finding for entry in scenario_results for finding in entry.findings()]
    unstable = [attempt for entry in scenario_results for attempt in entry.tried if entry.is_unstable(attempt)]
    return {
        **header(KIND, run_info),
        "role": run_info.role,
        "complete": complete,
        "summary": {
            "plans": sum(entry.plans for entry in scenario_results),
            "tried": len(tried),
            "findings": len(findings),
            "unstable": len(unstable),
            "notStruck": sum(attempt.verdict == "not struck" for attempt in tried),
            "medianSeconds": round(statistics.median(attempt.seconds for attempt in tried), 1) if tried else None,
        },
        "scenarios": [_scenario(entry) for entry in scenario_results],
        "findings": [_tried(number, finding) for number, finding in enumerate(findings, 1)],
        "unstable": [_tried(0, attempt) for attempt in unstable],
    }


def _scenario(scenario_results: ScenarioResults) -> dict[str, Any]:
    faultless_runs = scenario_results.faultless_runs
    faults = Counter(tried.plan.fault for tried in scenario_results.tried)
    bad = Counter(tried.plan.fault for tried in scenario_results.findings())
    return {
        "name": scenario_results.scenario.name,
        "text": scenario_results.scenario.text,
        "refused": scenario_results.refusal,
        "points": len(faultless_runs.points) if faultless_runs else 0,
        "pointsTried": len({tried.plan.point for tried in scenario_results.tried}),
        "plans": scenario_results.plans,
        "tried": len(scenario_results.tried),
        "faults": {fault: {"tried": count, "findings": bad[fault]} for fault, count in sorted(faults.items())},
        "steps": [
            {
                "name": name,
                "seconds": round(rest.seconds, 1),
                "takenDown": rest.taken_down,
                "broken": sorted(rest.broken),
                "writesAtRest": rest.writing,
            }
            for name, rest in (faultless_runs.rests if faultless_runs else {}).items()
        ],
    }


def _tried(number: int, trial: PlanTrial) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "plan": msgspec.to_builtins(trial.plan),
        "text": str(trial.plan),
        "verdict": trial.verdict,
        "step": trial.where,
        "bad": trial.bad,
        "played": trial.played,
        "lines": list(trial.lines),
    }
    return {"number": number, "file": plan_file(number, trial.plan), **entry} if number else entry


def plan_file(number: int, plan: FaultPlan) -> str:
    """Return the name of the file with which a finding can be replayed."""
    return f"plans/{number:02}-{plan.scenario}-{plan.fault}.yaml"


def write(folder: Path, document: Report, rows: dict[str, list[ChangeRow]]) -> None:
    """Write the report, its page and the plans of its findings. `rows` maps a plan (as text) to both runs side by
    side."""
    documents.check(documents.Document(folder / "report.json", document, {}), SCHEMA)
    with disk.usage_errors(location=str(folder), hint="free some space"):
        (folder / "plans").mkdir(exist_ok=True)
        for finding in document["findings"]:
            disk.write(folder / finding["file"], yaml.safe_dump(plan_document(document, finding), sort_keys=False))
        disk.write(folder / "report.json", orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        disk.write(folder / "report.html", page(document, rows))


def plan_document(document: Report, finding: Report) -> Report:
    """Return the input for a replay of a finding."""
    return {
        "apiVersion": API_VERSION,
        "kind": PLAN_KIND,
        "implementation": document["implementation"]["name"],
        "settings": document["implementation"]["settings"],
        "role": document["role"],
        **finding["plan"],
    }


def read_plan(path: Path) -> PlanFile:
    """Read a plan file. Raises UsageError if the file is not a plan."""
    _, file = formats.read(path, PlanFile)
    if file.kind != PLAN_KIND:
        raise UsageError(
            f"is not a {PLAN_KIND}", where=str(path), hint="give a file of the folder plans/ of a campaign"
        )
    return file


def page(document: Report, rows: dict[str, list[ChangeRow]]) -> str:
    """Return the page of a campaign."""
    return render(PAGE, {"report": document, "rows": rows}, styles=["page.css"])
