"""What of the specification is judged: its scenarios and its binding rows, each with the checks or with a reason why
there is none. Pure; the data are in fixtures/coverage/.

Which deliberate faults a check has caught is the business of the judged side: `page` is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance import data, documents
from conformance.suite.requirement import Registry


@dataclass(frozen=True)
class Scenario:
    """A scenario of the specification. `reason` says why nothing more of it is checked, `tests` where else it is."""

    id: str
    title: str
    checks: tuple[str, ...]
    reason: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Reason:
    """Why some rows have no check of their own."""

    text: str
    rows: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """The rows of the specification that bind, by document and kind (contract, defect), and what excuses some."""

    binding: Mapping[str, Mapping[str, tuple[str, ...]]]
    reasons: tuple[Reason, ...]
    caught: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Defect row → the requirements that catch it."""
    uncaught: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    """Why a defect row has none, by kind: `documentation`, `unseen`, `tried`."""


def folder() -> Path:
    return data.folder("fixtures") / "coverage"


def scenarios(path: Path | None = None) -> list[Scenario]:
    """Reads the scenarios. Raises UsageError with file, line and field."""
    found = documents.read(path or folder() / "scenarios.yaml", folder() / "scenarios.schema.json").value
    return [
        Scenario(
            entry["id"],
            _line(entry["title"]),
            tuple(entry.get("checks", ())),
            _line(entry.get("reason", "")),
            tuple(entry.get("tests", ())),
        )
        for entry in found["scenarios"]
    ]


def rows(path: Path | None = None, defects: Path | None = None) -> Rows:
    """Read the rows, and what catches the defects among them. Raises UsageError with file, line and field."""
    found = documents.read(path or folder() / "rows.yaml", folder() / "rows.schema.json").value
    binding = {
        document: {kind: tuple(ids) for kind, ids in kinds.items()} for document, kinds in found["binding"].items()
    }
    reasons = tuple(Reason(_line(entry["reason"]), tuple(entry["rows"])) for entry in found["reasons"])
    known = documents.read(defects or folder() / "defects.yaml", folder() / "defects.schema.json").value
    uncaught: dict[str, tuple[Reason, ...]] = {}
    for entry in known["uncaught"]:
        reason = Reason(_line(entry["reason"]), tuple(entry["rows"]))
        uncaught[entry["kind"]] = (*uncaught.get(entry["kind"], ()), reason)
    return Rows(binding, reasons, {row: tuple(ids) for row, ids in known["caught"].items()}, uncaught)


def problems(registry: Registry, stories: Sequence[Scenario], table: Rows) -> list[str]:
    """What is neither checked nor excused, or both, one sentence each."""
    found = [f"{id}: stands twice" for id in _twice([story.id for story in stories])]
    for story in stories:
        unknown = [id for id in story.checks if id not in registry.requirements]
        found += [f"{story.id}: names {id}, which is no requirement" for id in unknown]
        if not story.checks and not story.reason:
            found.append(f"{story.id}: has neither checks nor a reason")
    told = {story.id: story.checks for story in stories}
    binding = [id for kinds in table.binding.values() for ids in kinds.values() for id in ids]
    found += [f"{id}: stands twice" for id in _twice(binding)]
    claimed: dict[str, str] = {}
    claims: dict[str, set[str]] = {}
    for entry in registry.requirements.values():
        for fact in entry.source:
            claimed.setdefault(fact, entry.id)
            claims.setdefault(fact, set()).add(entry.id)
            if fact in told and entry.id not in told[fact]:
                found.append(f"{fact}: {entry.id} rests on it, and is not among its checks")
    uncaught = [reason for reasons in table.uncaught.values() for reason in reasons]
    excused = [id for reason in (*table.reasons, *uncaught) for id in reason.rows]
    for row, ids in table.caught.items():
        if set(ids) != claims.get(row, set()):
            right = ", ".join(sorted(claims.get(row, ()))) or "no requirement"
            found.append(f"{row}: caught by {', '.join(ids)}, and {right} names it")
    defects = {id for kinds in table.binding.values() for id in kinds["defect"]}
    found += [
        f"{id}: a defect that defects.yaml does not list"
        for id in sorted(defects & claims.keys() - table.caught.keys())
    ]
    found += [f"{id}: has two reasons" for id in _twice(excused)]
    found += [f"{id}: has a reason, and is no binding row" for id in excused if id not in binding]
    found += [f"{id}: has a reason, and {claimed[id]} claims it" for id in excused if id in claimed]
    found += [f"{id}: has neither a check nor a reason" for id in binding if id not in claimed and id not in excused]
    return found


def page(registry: Registry, stories: Sequence[Scenario], table: Rows, faults: Mapping[str, Sequence[str]]) -> str:
    """docs/coverage.md. `faults`: requirement → names of the faults of the reference that it has caught."""
    lines = [
        "# Coverage",
        "",
        "<!-- made by `make docs` from fixtures/coverage/, the requirements and the registered faults; do not edit -->",
        "",
        "What of the specification is judged, by which requirements ([requirements.md](requirements.md)), and which",
        "deliberate faults of the reference (*mutants*) these have been seen to catch.",
        "",
        "## Scenarios",
        "",
        "| scenario | what | checks | mutants | what is not checked, and why |",
        "|---|---|---|---|---|",
    ]
    for story in stories:
        mutants = sorted({name for id in story.checks for name in faults.get(id, ())})
        where = [f"`{path}`" for path in story.tests]
        reason = "; ".join(filter(None, [story.reason, f"see {', '.join(where)}" if where else ""]))
        cells = (story.id, story.title, ", ".join(story.checks), ", ".join(mutants), reason)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    claimed = {fact for entry in registry.requirements.values() for fact in entry.source}
    lines += [
        "",
        "## Rows that bind",
        "",
        "Contract rows say what must be, defect rows what upstream does wrong and must not be. The requirement that",
        "checks a row names it in brackets in [requirements.md](requirements.md).",
        "",
        "| document | kind | rows | checked | with a reason |",
        "|---|---|---|---|---|",
    ]
    for document, kinds in table.binding.items():
        for kind, ids in kinds.items():
            checked = sum(id in claimed for id in ids)
            lines.append(f"| {document} | {kind} | {len(ids)} | {checked} | {len(ids) - checked} |")
    lines += _defects(table, faults)
    lines += ["", "## Why there is no check", "", "| why | rows |", "|---|---|"]
    lines += [f"| {_cell(reason.text)} | {', '.join(reason.rows)} |" for reason in table.reasons]
    return "\n".join(lines) + "\n"


def _defects(table: Rows, faults: Mapping[str, Sequence[str]]) -> list[str]:
    tried = sum(len(reason.rows) for reason in table.uncaught.get("tried", ()))
    share = round(100 * len(table.caught) / max(1, len(table.caught) + tried))
    lines = [
        "",
        "## Defects of upstream",
        "",
        f"{len(table.caught)} defects are caught, {tried} were seen and are not: {share} % are caught. Rows about",
        "documentation, and rows that nobody has seen on a control plane, are not counted.",
        "",
        "| defect | caught by | mutants |",
        "|---|---|---|",
    ]
    for row, ids in table.caught.items():
        mutants = sorted({name for id in ids for name in faults.get(id, ())})
        lines.append(f"| {row} | {', '.join(ids)} | {', '.join(mutants)} |")
    lines += ["", "| not caught | why | defects |", "|---|---|---|"]
    for kind, reasons in table.uncaught.items():
        lines += [f"| {kind} | {_cell(reason.text)} | {', '.join(reason.rows)} |" for reason in reasons]
    return lines


def _twice(ids: Sequence[str]) -> list[str]:
    return sorted({id for id in ids if ids.count(id) > 1})


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
