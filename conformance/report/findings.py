"""Findings: sections of Markdown pages that describe what runs showed to be wrong with an implementation. They are
checked against recorded runs.

A section whose heading starts with requirement ids is a finding about these requirements: `## CORE-025, CORE-026: what
is wrong`. Each of the requirements must fail in one of the runs, except those after `**Not in every run:**`; and each
failure must have a finding. A finding about a requirement that rests on a seed must say so in a paragraph that starts
with `**Seed.**`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance import bounded, documents
from conformance.errors import UsageError
from conformance.report.model import Outcome
from conformance.report.recorded import FAILED, Run
from conformance.suggestions import explain_missing
from conformance.suite.registry.requirement import Registry

HEADING = re.compile(r"(#{2,4}) (.*)")
FINDING_HEADING = re.compile(r"([A-Z]{2,10}-[0-9]{3}\b[^:]*): (.+)")
TOKEN = re.compile(r"([A-Z]{2,10})-([0-9]{3})|\b([0-9]{3})\b|\bto\b")
SOMETIMES_MARK = "**Not in every run:**"
SEED_MARK = "**Seed.**"
FENCE = "```"


@dataclass(frozen=True)
class Finding:
    """One section: what is wrong, and the requirements that fail because of it."""

    ids: tuple[str, ...]
    title: str
    page: Path
    line: int
    heading: str
    body: str

    @property
    def location(self) -> str:
        """Return the file and line of the heading."""
        return f"{documents.display_path(self.page)}:{self.line}"

    @property
    def anchor(self) -> str:
        """Return the anchor that GitHub generates for the heading."""
        return re.sub(r"[^\w\- ]", "", self.heading.lower()).replace(" ", "-")

    @property
    def sometimes_failing(self) -> frozenset[str]:
        """Return the requirements that do not fail in every run."""
        lines = (line.partition(SOMETIMES_MARK)[2] for line in self.body.splitlines())
        return frozenset(id for line in lines for id in ids(line))


def ids(text: str) -> tuple[str, ...]:
    """Return the requirements that a text names: `CORE-014 to 016, 018` names four."""
    requirement_ids: list[str] = []
    prefix, is_range = "", False
    for token in TOKEN.finditer(text):
        if token[0] == "to":
            is_range = bool(requirement_ids)
            continue
        prefix, number = token[1] or prefix, token[2] or token[3]
        first_number = int(requirement_ids[-1].rpartition("-")[2]) + 1 if is_range else int(number)
        requirement_ids += [f"{prefix}-{index:03}" for index in range(first_number, int(number) + 1)] if prefix else []
        is_range = False
    return tuple(requirement_ids)


def read(pages: Iterable[Path]) -> list[Finding]:
    """Read the findings in Markdown files and in folders of Markdown files. Raises UsageError if a path does not exist
    or a file cannot be read."""
    findings: list[Finding] = []
    for location in pages:
        if not location.exists():
            problem, near_hint = explain_missing(location)
            raise UsageError(
                problem, where=documents.display_path(location), hint=near_hint or "give a page or a folder of pages"
            )
        for page in sorted(location.glob("*.md")) if location.is_dir() else [location]:
            findings += sections(page, bounded.text(page, bounded.MAX_BYTES, documents.display_path(page)))
    return findings


def sections(page: Path, text: str) -> Iterator[Finding]:
    """Yield the findings of one page. A section ends at the next heading of the same or a higher level."""
    lines = text.splitlines()
    headings: list[tuple[int, int, str]] = []
    is_fenced = False
    for number, line in enumerate(lines):
        is_fenced ^= line.lstrip().startswith(FENCE)
        if not is_fenced and (match := HEADING.fullmatch(line)):
            headings.append((number, len(match[1]), match[2]))
    for location, (number, level, heading) in enumerate(headings):
        if finding_heading := FINDING_HEADING.fullmatch(heading):
            end = next((at for at, other, _ in headings[location + 1 :] if other <= level), len(lines))
            body = "\n".join(lines[number + 1 : end])
            yield Finding(ids(finding_heading[1]), finding_heading[2], page, number + 1, heading, body)


def problems(findings: Sequence[Finding], runs: Sequence[Run], registry: Registry) -> list[str]:
    """Return a message for each finding that the runs do not confirm, and for each failure without a finding."""
    errors: list[str] = []
    for finding in findings:
        errors += [f"{finding.location}: {problem}" for problem in _finding_problems(finding, runs, registry)]
    found_ids = {id for finding in findings for id in finding.ids}
    for run in runs:
        for id in sorted(run.failed - found_ids - registry.retired.keys()):
            level = registry.requirements[id].level if id in registry.requirements else "unknown"
            errors.append(f"{id} ({level}) failed in the run of {run.label}, and no finding names it")
    return list(dict.fromkeys(errors))


def _finding_problems(finding: Finding, runs: Sequence[Run], registry: Registry) -> Iterator[str]:
    for id in finding.ids:
        if id not in registry.requirements:
            yield f"{id} is not a requirement; {documents.suggestion(id, registry.requirements)}"
            continue
        outcomes = {run.outcomes[id] for run in runs if id in run.outcomes}
        if not outcomes & FAILED and id not in finding.sometimes_failing:
            yield f"{id} did not fail: {_in_words(outcomes)}"
        if registry.requirements[id].seed and SEED_MARK not in finding.body:
            yield f"{id} rests on a seed ({registry.requirements[id].seed}), and no paragraph says so ({SEED_MARK})"


def _in_words(outcomes: Iterable[Outcome]) -> str:
    return ", ".join(sorted(outcomes)) or "no run judged it"
