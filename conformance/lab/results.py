"""The results of the laboratory as a document, and as tables for the terminal and for Markdown."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from conformance import bounded
from conformance.errors import UsageError
from conformance.lab.experiment import COURSES, LAYOUTS, WORKLOADS, Trial, Workload
from conformance.lab.playing import TrialOutcome

Document = dict[str, Any]
Trials = Sequence[Mapping[str, Any]]

COLUMNS = (
    "workload",
    "layout",
    "lowest available",
    "units, lowest",
    "units, mean",
    "evicted",
    "orphans",
    "seconds",
    "writes",
)


def document(versions: Mapping[str, str]) -> Document:
    """Return the document of an experiment that starts now."""
    return {
        "apiVersion": "conformance.grove.io/v1alpha1",
        "kind": "LabResult",
        "experiment": "coherent",
        "startedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": {
            "cpus": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "versions": dict(versions),
        },
        "trials": [],
    }


def load(path: Path) -> Document:
    """Read a stored document. Raises UsageError if the file is not a result of this experiment."""
    result = bounded.json(
        bounded.content(path, bounded.MAX_LOG_BYTES, str(path)), str(path), "give a result of the lab"
    )
    if not isinstance(result, dict) or (result.get("kind"), result.get("experiment")) != ("LabResult", "coherent"):
        raise UsageError("is no result of this experiment", where=str(path))
    return result


def add(experiment: Document, outcome: TrialOutcome) -> None:
    """Add the results of a trial."""
    experiment["trials"].append(_trial(outcome))


def has(experiment: Document, trial: Trial) -> bool:
    """Return whether the experiment already has the results of a trial."""
    key = (trial.workload.name, trial.layout.name, trial.course.name, trial.run)
    return any((t["workload"], t["layout"], t["course"], t["run"]) == key for t in experiment["trials"])


def _trial(outcome: TrialOutcome) -> Document:
    trial, measured = outcome.trial, outcome.measurement
    return {
        "workload": trial.workload.name,
        "layout": trial.layout.name,
        "course": trial.course.name,
        "run": trial.run,
        "seconds": measured.duration,
        "lowestAvailable": measured.lowest_available,
        "wholeUnits": {"lowest": measured.lowest_whole_units, "mean": round(measured.mean_whole_units, 2)},
        "largestCompany": outcome.largest_shared_gang,
        "evicted": outcome.evicted,
        "orphans": outcome.orphans,
        "writes": outcome.writes,
        "curve": [[point.at, dict(point.available), point.whole_units] for point in measured.points],
    }


def rows(experiment: Document, course: str) -> Iterator[tuple[str, ...]]:
    """Yield the table rows of one disturbance: the median of all runs, and their range if they differ."""
    for workload in WORKLOADS:
        for layout in LAYOUTS:
            trials = [
                trial
                for trial in experiment["trials"]
                if (trial["course"], trial["workload"], trial["layout"]) == (course, workload.name, layout.name)
            ]
            if trials:
                yield (workload.name, layout.name, *_cells(workload, trials))


def _cells(workload: Workload, trials: Trials) -> tuple[str, ...]:
    def spread_of(value: Callable[[Mapping[str, Any]], float]) -> str:
        return spread([value(trial) for trial in trials])

    lowest = ", ".join(
        f"{name} {spread_of(lambda trial, name=name: trial['lowestAvailable'][name])}/{size}"  # type: ignore[misc]
        for name, (size, _) in workload.sizes.items()
    )
    return (
        lowest,
        spread_of(lambda trial: trial["wholeUnits"]["lowest"]),
        spread_of(lambda trial: trial["wholeUnits"]["mean"]),
        _counts(trials, "evicted"),
        _counts(trials, "orphans"),
        spread_of(lambda trial: trial["seconds"]),
        spread_of(lambda trial: trial["writes"]),
    )


def _counts(trials: Trials, field: str) -> str:
    counts = [len(trial[field]) for trial in trials if trial[field] is not None]
    return spread(counts) if counts else "–"


def spread(values: Sequence[float]) -> str:
    """Return the median of the values, with the lowest and the highest value if they differ: `12.1 (11.8–13.0)`."""
    lowest, median, highest = map(_number, (min(values), statistics.median_low(values), max(values)))
    return median if lowest == highest else f"{median} ({lowest}–{highest})"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.1f}"


def titles(experiment: Document) -> Iterator[tuple[str, str]]:
    """Yield the name and the title of each disturbance in the results."""
    names = {trial["course"] for trial in experiment["trials"]}
    for course in COURSES:
        if course.name in names:
            yield course.name, f"{course.name}: {course.description}"


def show(experiment: Document, console: Console) -> None:
    """Print the tables."""
    for course, title in titles(experiment):
        table = Table(*COLUMNS, title=title)
        for row in rows(experiment, course):
            table.add_row(*row)
        console.print(table)


def markdown(experiment: Document, command: str, picture: str) -> str:
    """Return a page with the tables and the picture."""
    runs = max((trial["run"] for trial in experiment["trials"]), default=0)
    lines = [
        "# Gang layouts of coherent updates, compared",
        "",
        f"    {command}",
        "",
        f"{experiment['startedAt']}, {experiment['environment']['cpus']} CPUs, Kubernetes "
        f"{experiment['environment']['versions'].get('kubernetes', 'unknown')}. Every line was played live, "
        f"{runs} times: the median, and the range where the runs differ. What the columns mean is explained in "
        "docs/findings/coherent-layouts.md of the project.",
        "",
        *(f"- {entry.name}: {entry.description}" for entry in (*WORKLOADS, *LAYOUTS)),
    ]
    for course, title in titles(experiment):
        lines += ["", f"## {title[0].upper()}{title[1:]}", "", _table_row(COLUMNS), _table_row(["---"] * len(COLUMNS))]
        lines += [_table_row(row) for row in rows(experiment, course)]
    return "\n".join([*lines, "", f"![availability during each update]({picture})", ""])


def _table_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
