"""The generated parts of docs/findings/grove-operator.md. They show recorded runs and the findings of the other
pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from conformance import data
from conformance.publishing import matrix
from conformance.report import findings, recorded
from conformance.report.findings import Finding
from conformance.report.model import Outcome
from conformance.report.recorded import Run
from conformance.suite.registry import requirement
from conformance.suite.registry.basis import BINDING_KINDS, Basis
from conformance.suite.registry.requirement import Level, Registry

FOLDER = data.PROJECT / "docs" / "findings"
INDEX_PAGE = FOLDER / "grove-operator.md"
FINDING_PAGES = tuple(
    FOLDER / f"grove-operator-{name}.md"
    for name in ("hashes", "updates", "availability", "pods", "objects", "admission")
)
RUNS_FILE = data.folder("fixtures") / "findings" / "grove-operator.runs.yaml"
GANG_MAPS_PAGE = FOLDER / "grove-operator-gang-maps.md"
"""The findings about a build in which every set has PodGangMaps."""
GANG_MAP_RUNS_FILE = data.folder("fixtures") / "findings" / "grove-operator-gang-maps.runs.yaml"
GENERATED_PART = re.compile(r"(<!-- made by `make docs`: (\w+) -->\n).*?(\n<!-- end -->)", re.S)
COLUMNS = (Outcome.PASSED, Outcome.FAILED, Outcome.BLOCKED, Outcome.NOT_CLAIMED)


def render_page() -> str:
    """Return the index page with current generated parts."""
    runs, entries, registry = recorded.read(RUNS_FILE), findings.read(FINDING_PAGES), requirement.load()
    parts = {
        "runs": _run_table(runs),
        "profiles": _profile_table(runs, registry),
        "findings": _finding_table(entries, registry),
        "recall": _recall_table(entries, registry),
    }
    return GENERATED_PART.sub(
        lambda match: match[1] + "\n" + "\n".join(parts[match[2]]) + "\n" + match[3], INDEX_PAGE.read_text("utf-8")
    )


def _run_table(runs: Iterable[Run]) -> Iterator[str]:
    yield from ("| run | operator | claimed | started | suite | digest of the verdict |", "|---|---|---|---|---|---|")
    for number, run in enumerate(runs, 1):
        operator = f"{run.implementation} {run.version}"
        cells = (
            number,
            operator,
            ", ".join(run.features),
            run.started,
            f"`{run.suite[:30]}…`",
            f"`{run.digest[:19]}…`",
        )
        yield f"| {' | '.join(map(str, cells))} |"


def _profile_table(runs: Sequence[Run], registry: Registry) -> Iterator[str]:
    yield f"| profile | {' | '.join(COLUMNS)} | requirements that failed |"
    yield "|---|---|---|---|---|---|"
    merged_outcomes = matrix.merged_outcomes(runs)
    for profile in registry.profiles:
        judged_ids = (
            id for id, entry in registry.requirements.items() if entry.profile == profile and id in merged_outcomes
        )
        outcomes = {id: merged_outcomes[id] for id in judged_ids}
        counts = [sum(outcome is column for outcome in outcomes.values()) or "–" for column in COLUMNS]
        failed_ids = [_id_with_level(id, registry) for id, outcome in outcomes.items() if outcome is Outcome.FAILED]
        if counts[:3] != ["–"] * 3:
            yield f"| {profile} | {' | '.join(map(str, counts))} | {', '.join(failed_ids)} |"


def _id_with_level(id: str, registry: Registry) -> str:
    level = registry.requirements[id].level
    return id if level is Level.MUST else f"{id} ({level})"


def _finding_table(entries: Iterable[Finding], registry: Registry) -> Iterator[str]:
    yield from ("| what | requirements |", "|---|---|")
    for page, page_findings in groupby(entries, lambda finding: finding.page):
        yield f"| **{_title(page)}** | |"
        for finding in page_findings:
            ids = ", ".join(_id_with_level(id, registry) for id in finding.ids)
            yield f"| [{finding.title}]({page.name}#{finding.anchor}) | {ids} |"


def _recall_table(entries: Sequence[Finding], registry: Registry) -> Iterator[str]:
    """Yield the number of findings that fail a MUST, and a table of what upstream's documents say about the other
    findings."""
    decisive_findings = [
        entry for entry in entries if any(registry.requirements[id].level is Level.MUST for id in entry.ids)
    ]
    yield f"{len(decisive_findings)} of {len(entries)} findings fail a MUST. The others decide nothing:"
    yield from ("", "| finding | requirement | documents | why it is no MUST |", "|---|---|---|---|")
    for entry in entries:
        for id in () if entry in decisive_findings else entry.ids:
            basis = registry.requirements[id]
            reason = basis.reason or (
                f"No document says: {basis.unwritten}" if basis.unwritten else _quoted_words(basis)
            )
            cells = (
                f"[{entry.title}]({entry.page.name}#{entry.anchor})",
                _id_with_level(id, registry),
                _document_summary(basis),
                reason,
            )
            yield f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |"


def _quoted_words(basis: Basis) -> str:
    return f"The document says no more than “{basis.quotes[0].words}”"


def _document_summary(basis: Basis) -> str:
    if basis.contradicts:
        return "contradict each other"
    return "say a part" if basis.basis in BINDING_KINDS else "silent"


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n")[0].rpartition(": ")[2]


if __name__ == "__main__":
    INDEX_PAGE.write_text(render_page(), "utf-8")
