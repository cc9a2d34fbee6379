"""Interchange with Grove's own scale tests: their result file (spec E2E-341), and their published history (E2E-352)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from conformance import bounded, documents
from conformance.errors import UsageError
from conformance.scale.markers import MARKERS
from conformance.scale.results import Result


def result_file(result: Result, namespace: str) -> dict[str, Any]:
    """Return a result in the form of upstream's `scale-test-results.json`, which upstream's dashboard reads. It
    contains only the markers that upstream has, under the names that the scenario gives them."""
    phases = [_phase(phase, result) for phase in result["phases"]]
    test_start = _parse_time(result["phases"][0]["startedAt"]) if phases else None
    for phase, phase_result in zip(phases, result["phases"], strict=True):
        assert test_start is not None
        started = (_parse_time(phase_result["startedAt"]) - test_start).total_seconds()
        phase["durationFromTestStartSeconds"] = started + _phase_seconds(phase_result)
    return {
        "testName": result["scenario"]["name"],
        "runID": result["run"],
        "namespace": namespace,
        "pcsCount": 1,
        "phases": phases,
        "testDurationSeconds": phases[-1]["durationFromTestStartSeconds"] if phases else 0.0,
    }


def _phase(phase: Result, result: Result) -> dict[str, Any]:
    started = _parse_time(phase["startedAt"])
    names = result["scenario"]["upstreamNames"].get(phase["name"], {})
    milestones = sorted(
        (seconds, names.get(marker, marker))
        for marker, seconds in phase["markers"].items()
        if seconds is not None and MARKERS[marker].upstream
    )
    if phase["holdSeconds"]:
        milestones.append((_phase_seconds(phase), "steady-state-window"))
    return {
        "name": phase["name"],
        "startTime": _format_time(started),
        "endTime": _format_time(started + timedelta(seconds=_phase_seconds(phase))),
        "durationFromTestStartSeconds": 0.0,
        "milestones": [
            {
                "name": name,
                "timestamp": _format_time(started + timedelta(seconds=seconds)),
                "durationFromPhaseStartSeconds": seconds,
            }
            for seconds, name in milestones
        ],
    }


def _phase_seconds(phase: Result) -> float:
    return float(phase["seconds"] + phase["holdSeconds"])


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _format_time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class PublishedRun:
    """One line of upstream's history. `seconds` maps `phase/marker` to the time since the start of the phase."""

    test: str
    run: str
    commit: str
    at: str
    total: float
    seconds: dict[str, float]


def history(path: Path) -> Iterator[PublishedRun]:
    """Yield the runs in upstream's `index/runs.ndjson`. Raises UsageError for a line that is not a run."""
    file_name, hint = documents.display_path(path), "give index/runs.ndjson of their branch"
    for number, line in enumerate(bounded.content(path, bounded.MAX_LOG_BYTES, file_name).splitlines(), start=1):
        if line.strip():
            location = f"{file_name}:{number}"
            try:
                yield _parse_run(bounded.json(line, location, hint))
            except bounded.CONSTRUCTOR_ERRORS as error:
                raise UsageError(f"is not a run of upstream's history: {error!r}", where=location, hint=hint) from error


def _parse_run(line: dict[str, Any]) -> PublishedRun:
    return PublishedRun(
        test=line["testName"],
        run=line["runID"],
        commit=line["commit"],
        at=line["runTimestamp"],
        total=float(line["totalSeconds"]),
        seconds={
            f"{phase['name']}/{milestone['name']}": float(milestone["valueSeconds"])
            for phase in line["phases"]
            for milestone in phase["milestones"]
        },
    )
