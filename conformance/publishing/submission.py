"""Publish a report in a folder of reports: `<release>/<implementation>/<line>-<version>-<mode>-report.yaml`.

The layout follows Gateway API's conformance reports, with Grove's release and line in place of Gateway API's version
and channel. A README.md next to the reports lists them and says how to reproduce them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.errors import UsageError
from conformance.report import reading
from conformance.report.document import Document
from conformance.report.markdown import code, replace_between
from conformance.report.model import NO_VERDICT

SUFFIX = "-report.yaml"
SCHEDULERS_FOLDER = "gang-schedulers"
"""The folder of implementations that are not judged by a release of Grove: gang schedulers without an operator."""
README = "README.md"


def check(content: Document, location: str) -> None:
    """Raise UsageError if a report is too incomplete to be published. A report of an implementation that is not
    conformant may be published."""
    verdict = content["verdict"]
    if not verdict["complete"] or verdict["result"] in NO_VERDICT:
        problem, hint = f"has no verdict ({verdict['result']})", "repeat the run, and let it end by itself"
        raise UsageError(problem, where=location, hint=hint)
    if verdict["selection"]["ids"] or verdict["selection"].get("shard"):
        problem = "judges single requirements or a shard"
        raise UsageError(problem, where=location, hint="give the report of a run of everything, or of whole profiles")


def report_path(content: Document, mode: str) -> Path:
    """Return the path of a report within the folder of reports. Raises UsageError if a name cannot be turned into a
    file name."""
    implementation = content["verdict"]["implementation"]
    release = implementation.get("release") or SCHEDULERS_FOLDER
    name = "-".join(filter(None, (implementation.get("line", ""), implementation["version"], mode)))
    return Path(_component(release), _component(implementation["name"]), _component(name) + SUFFIX)


def readme(existing: str, content: Document, folder: Path, *, url: str = "") -> str:
    """Return the README of an implementation's folder. `existing`: the existing README, in which only the list of
    reports is replaced; empty if there is none."""
    rows = "\n".join(_rows(folder))
    if existing:
        return replace_between(existing, "reports", rows)
    implementation, selection = content["verdict"]["implementation"], content["verdict"]["selection"]
    profile_options = "".join(f" --profile {profile}" for profile in selection["profiles"])
    return "\n".join(
        (
            f"# {_line(implementation['name'])}",
            "",
            *([f"<{url}>", ""] if url else []),
            "<!-- reports -->",
            "",
            rows,
            "",
            "<!-- end -->",
            "",
            "## Reproduce",
            "",
            f"    grove-conformance run --implementation DESCRIPTOR{profile_options}",
            "",
            "Say here how to get the program that was judged, and its descriptor.",
            "",
        )
    )


def _rows(folder: Path) -> Iterator[str]:
    yield "| report | version | contract | judged as | Kubernetes | verdict | passed | failed |"
    yield "|---|---|---|---|---|---|---|---|"
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        content = reading.load(path)
        verdict, run = content["verdict"], content["run"]
        implementation, counts = verdict["implementation"], verdict["counts"]
        cells = (
            code(implementation["version"]),
            code(" ".join(filter(None, (implementation.get("line"), implementation.get("release"))))) or "–",
            code(", ".join(implementation["roles"])),
            code(run["environment"].get("kubernetes", "")),
            verdict["result"],
            str(counts["passed"]),
            str(_failed(counts)),
        )
        yield f"| [{path.name}]({path.name}) | {' | '.join(cells)} |"


def _failed(counts: Mapping[str, int]) -> int:
    return counts["failed"] + counts["expected-failure"]


def _component(text: str) -> str:
    """Return a text as one component of a path. Raises UsageError if nothing is left of it."""
    component = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")
    if not component:
        raise UsageError(f"{text!r} cannot be a file name", hint="give the descriptor a name and a version of letters")
    return component


def _line(text: str) -> str:
    return " ".join(re.sub(r"[<>\[\]`|\\#*_]", " ", text).split())
