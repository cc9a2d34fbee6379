"""Read the `report.yaml` of an earlier run."""

from __future__ import annotations

import re
from pathlib import Path

from conformance import bounded, documents
from conformance.errors import HarnessError, UsageError
from conformance.report.document import Document, validate
from conformance.suggestions import explain_missing
from conformance.suite.outcomes import ledger_file

NAME = "report.yaml"
LEDGER = "ledger"
"""The folder of a run that contains its events."""
RUNS = Path("reports")
"""The folder of runs, unless `run --report-dir` sets a different one."""
MAX_BYTES = 1 << 26
"""Maximum size of a report in bytes: reports contain whole objects."""
_KIND = re.compile(r"^kind: ConformanceReport$", re.M)


def report_path(path: Path) -> Path:
    """Return the path of a report. If the path is a folder, return the path of the report in it."""
    return path / NAME if path.is_dir() else path


def is_report(content: str) -> bool:
    """Return whether a text starts like a report."""
    return _KIND.search(content[:1000]) is not None


def load(path: Path) -> Document:
    """Read the report of a run from its path or from the folder of the run. Raises UsageError if it is not a report."""
    path = report_path(path)
    return parse(text(path), path)


def text(path: Path) -> str:
    """Return the text of a file that may be a report. Raises UsageError if the file does not exist or cannot be
    read."""
    if not path.exists():
        problem, near_hint = explain_missing(path)
        run = path.parent
        if path.name == NAME and (run / LEDGER).is_dir():
            hint = f"see grove-conformance report recover {documents.display_path(run)}"
        else:
            hint = nearest_run_hint(run) if path.name == NAME else ""
        hint = hint or near_hint or run_hint(path) or "give the folder of a run, or its report.yaml"
        raise UsageError(problem, where=documents.display_path(path), hint=hint)
    if path.name == NAME and not path.is_file():  # a pipe in an untrusted folder would never end
        raise UsageError(
            "is no file", where=documents.display_path(path), hint="give the folder of a run, or its report.yaml"
        )
    return bounded.text(path, MAX_BYTES, documents.display_path(path))


def require_ledger(run: Path, hint: str) -> Path:
    """Return the folder of a run's ledger. Raises UsageError, with `hint` unless there is a better one, if the run has
    no ledger."""
    ledger = run / LEDGER
    if not (ledger / ledger_file.FILE).is_file():
        no_ledger = f"has no {LEDGER}/{ledger_file.FILE}"
        problem, suggestion = (no_ledger, nearest_run_hint(run)) if run.exists() else explain_missing(run)
        hint = suggestion or run_hint(run) or hint
        raise UsageError(problem, where=documents.display_path(run), hint=hint)
    return ledger


def run_hint(path: Path) -> str:
    """Return a hint if the path is the id of a run instead of its folder; otherwise return an empty string."""
    run = RUNS / path
    return f'did you mean "{run}"?' if (run / LEDGER).is_dir() else ""


def nearest_run_hint(path: Path) -> str:
    """Return a hint for a path that is not a run: the newest run in that folder, or the run that contains that file.
    Return an empty string if there is none."""
    folders = sorted(path.iterdir(), reverse=True) if path.is_dir() else [path.parent]
    run = next((folder for folder in folders if (folder / LEDGER).is_dir()), None)
    return f'did you mean "{documents.display_path(run)}"?' if run else ""


def parse(content: str, path: Path) -> Document:
    """Parse the text of a report. Raises UsageError, with `path` as the location, if it is not a valid report."""
    try:
        document = documents.parse_report(path, content)
        validate(document)
    except HarnessError as error:
        problem = " ".join(str(error).split())
        raise UsageError(problem, where=documents.display_path(path), hint="give the report.yaml of a run") from error
    return document  # type: ignore[no-any-return]
