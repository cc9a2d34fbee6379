"""The files of a search: its report as JSON and as a page, and each finding as changes and as kubectl commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson
import yaml

from conformance import disk, documents
from conformance.nemesis.changes import desired
from conformance.nemesis.changes.desired import SetChange
from conformance.nemesis.changes.search import Divergence
from conformance.nemesis.results import API_VERSION, RunInfo, header
from conformance.pages.render import render

KIND, REPORT_KIND = "NemesisChanges", "NemesisChangesReport"
FOLDER = Path(__file__).parent
SCHEMA, PAGE = FOLDER / "changes.schema.json", FOLDER / "page.html"

Document = dict[str, Any]


def report(
    run_info: RunInfo, deviations: Sequence[Divergence], sequence_count: int, seed: int, complete: bool
) -> Document:
    """Return the report of a search. `sequence_count` is the number of sequences that were run."""
    return {
        **header(REPORT_KIND, run_info),
        "seed": seed,
        "complete": complete,
        "played": sequence_count,
        "findings": [
            {"number": number, "file": file_of(number), **_deviation(deviation)}
            for number, deviation in enumerate((deviation for deviation in deviations if deviation.is_finding), 1)
        ],
        "unstable": [_deviation(deviation) for deviation in deviations if not deviation.is_finding],
    }


def _deviation(deviation: Divergence) -> Document:
    return {
        "changes": [str(change) for change in deviation.changes],
        "bad": deviation.bad,
        "played": deviation.played,
        "lines": list(deviation.lines),
    }


def file_of(number: int) -> str:
    """Return the name of the file with which a finding can be replayed."""
    return f"changes/{number:02}.yaml"


def write(folder: Path, document: Document, deviations: Iterable[Divergence]) -> None:
    """Write the report, its page, and a file for each finding."""
    findings = [deviation for deviation in deviations if deviation.is_finding]
    with disk.usage_errors(location=str(folder), hint="free some space"):
        (folder / "changes").mkdir(exist_ok=True)
        disk.write(folder / "changes" / "set.yaml", yaml.safe_dump(desired.manifest(desired.TEMPLATE), sort_keys=False))
        for number, finding in enumerate(findings, 1):
            disk.write(folder / file_of(number), text(document, finding.changes))
        disk.write(folder / "report.json", orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        disk.write(folder / "report.html", page(document, findings))


def page(document: Document, findings: Iterable[Divergence]) -> str:
    """Return the page of a search."""
    commands = {number: list(desired.kubectl_commands(finding.changes)) for number, finding in enumerate(findings, 1)}
    return render(PAGE, {"report": document, "commands": commands})


def text(document: Document, changes: Sequence[SetChange]) -> str:
    """Return the file of a finding: the input of a replay, with the kubectl commands as comments."""
    value = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "implementation": document["implementation"]["name"],
        "settings": document["implementation"]["settings"],
        "changes": msgspec.to_builtins(changes),
    }
    commands = "".join(
        line + "\n" if line.startswith("#") else f"# {line}\n" for line in desired.kubectl_commands(changes)
    )
    return commands + yaml.safe_dump(value, sort_keys=False)


def read(path: Path) -> Document:
    """Read the file of a finding. Raises UsageError if the file is invalid."""
    return dict(documents.read(path, SCHEMA).value)


def changes_of(document: Document) -> list[SetChange]:
    """Return the changes in the file of a finding."""
    return msgspec.convert(document["changes"], list[SetChange])


def is_changes_file(path: Path) -> bool:
    """Return whether a file contains changes and not a plan. Raises UsageError if the file cannot be read."""
    return documents.parse(path).value.get("kind") == KIND
