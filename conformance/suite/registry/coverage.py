"""Coverage of the specification: the scenarios and binding rows that are judged, and the reasons why others are not.

Pure functions over the data in fixtures/coverage/. This package does not depend on the mutants: `page` gets them as an
argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from conformance import data, formats
from conformance.formats import Format
from conformance.specification import Row
from conformance.suite.registry.basis import BINDING_KINDS
from conformance.suite.registry.requirement import Level, Registry

SCENARIO_ID = re.compile(r"[A-Z]+-SH?[0-9]+|WL-[GP][0-9]+|WL37-[BGLMPT][0-9]+")
"""A pattern for the ids of scenarios, and of instances that were run by hand."""
LIMIT_ID = re.compile(r"KEP-L[0-9]+")
"""A pattern for the ids of limits: gaps that the texts accept but that inference workloads suffer from."""
Gaps = Mapping[str, Sequence[str]]
"""Row → the instances and mappings of `grove-conformance lab gaps` that demonstrate it."""
RUN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The letters that stand for runs in the page."""
UNMARKED_PREFIXES = ("API", "COL", "NAME", "EVT")
"""Prefixes of rows whose tables have no column for marks; according to the introductions of their pages, these rows are
contract."""


Ids = tuple[Annotated[str, Meta(pattern="^[A-Z0-9]+-([A-Z]+-?)?[0-9]+b?$")], ...]
Words = Annotated[str, Meta(min_length=10)]


class ScenarioCoverage(Format, frozen=True):
    """A scenario of the specification. `tests` are tests of this project that cover what its checks do not."""

    id: Annotated[str, Meta(pattern="^[A-Z]+(37)?-(SH?|[BGLMPT])[0-9]+$")]
    title: Annotated[str, Meta(min_length=5, description="short description")]
    checks: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="ids of the requirements that judge it",
            extra_json_schema={"uniqueItems": True},
        ),
    ] = ()
    reason: Annotated[Words, Meta(description="the parts that are not checked, and why")] = ""
    tests: Annotated[tuple[Annotated[str, Meta(pattern="^tests/")], ...], Meta(min_length=1)] = ()
    pending: Annotated[Words, Meta(description="what has to be built before it can be checked")] = ""


class ScenarioList(Format, frozen=True):
    """The format of scenarios.yaml."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["Scenarios"]
    scenarios: list[ScenarioCoverage]


class Reason(Format, frozen=True):
    """The reason why some rows have no check, or what must be built before they can have one."""

    reason: Words
    rows: Annotated[Ids, Meta(min_length=1, extra_json_schema={"uniqueItems": True})]


RowKind = Annotated[str, Meta(pattern="^(contract|defect|limit)$", description="contract, defect or limit")]
Binding = Mapping[str, Annotated[Mapping[RowKind, Ids], Meta(extra_json_schema={"required": ["contract", "defect"]})]]
"""Document → kind → ids of its rows. Limits are what the texts accept."""
DefectKind = Annotated[
    str, Meta(pattern="^(documentation|unseen|tried)$", description="documentation, unseen or tried")
]
Uncaught = Mapping[DefectKind, tuple[Reason, ...]]
"""Kind → why defect rows have no requirement. `documentation`: only the documentation is wrong; `unseen`: never seen on
a control plane; `tried`: seen, but no check is possible."""


class RowList(Format, frozen=True):
    """The format of rows.yaml."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["Rows"]
    binding: Binding
    reasons: tuple[Reason, ...]
    pending: tuple[Reason, ...]


class DefectList(Format, frozen=True):
    """The format of defects.yaml."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["Defects"]
    uncaught: Uncaught
    unseen: tuple[Reason, ...]


@dataclass(frozen=True)
class Rows:
    """The binding rows of the specification, by document and kind, and the reasons why some have no check."""

    binding: Binding
    reasons: tuple[Reason, ...]
    uncaught: Uncaught = field(default_factory=dict)
    pending: tuple[Reason, ...] = ()
    """Rows about features that are not built yet."""
    unseen: tuple[Reason, ...] = ()
    """The reasons why no requirement of a defect row failed on an operator that has the defect."""


@dataclass(frozen=True)
class OperatorRun:
    """A recorded run of an operator with defects: its label, and the requirements that failed."""

    label: str
    failed: frozenset[str]


def folder() -> Path:
    """Return the folder of the data."""
    return data.folder("fixtures") / "coverage"


def scenarios(path: Path | None = None) -> list[ScenarioCoverage]:
    """Read the scenarios. Raises UsageError with file, line and field if the file is invalid."""
    return formats.read(path or folder() / "scenarios.yaml", ScenarioList)[1].scenarios


def rows(path: Path | None = None, defects: Path | None = None) -> Rows:
    """Read the rows, and the reasons for defects that no requirement detects. Raises UsageError with file, line and
    field if a file is invalid."""
    _, listed = formats.read(path or folder() / "rows.yaml", RowList)
    _, excused = formats.read(defects or folder() / "defects.yaml", DefectList)
    return Rows(listed.binding, listed.reasons, excused.uncaught, listed.pending, excused.unseen)


def claims(registry: Registry) -> dict[str, tuple[str, ...]]:
    """Return a mapping from each id of the specification to the requirements that name it in their `source`."""
    result: dict[str, tuple[str, ...]] = {}
    for entry in registry.requirements.values():
        for fact in entry.source:
            result[fact] = (*result.get(fact, ()), entry.id)
    return result


def caught(registry: Registry, rows_table: Rows) -> dict[str, tuple[str, ...]]:
    """Return a mapping from each defect row that has requirements to these requirements."""
    requirements_by_row = claims(registry)
    return {
        row: requirements_by_row[row]
        for kinds in rows_table.binding.values()
        for row in kinds["defect"]
        if row in requirements_by_row
    }


def observed(defects: Mapping[str, Sequence[str]], runs: Sequence[OperatorRun]) -> dict[str, list[str]]:
    """Return a mapping from each detected defect row to those of its requirements that failed, each with the letters of
    the runs in which it failed."""
    return {
        row: [f"{id} ({letters})" for id in ids if (letters := ", ".join(_letters(id, runs)))]
        for row, ids in defects.items()
    }


def _letters(id: str, runs: Sequence[OperatorRun]) -> list[str]:
    return [RUN_LETTERS[number] for number, run in enumerate(runs) if id in run.failed]


def unseen(defects: Mapping[str, Sequence[str]], rows_table: Rows, runs: Sequence[OperatorRun]) -> list[str]:
    """Return a message for each detected defect that was neither seen on an operator nor has a reason, and for each one
    with both."""
    failures = observed(defects, runs)
    excused = [row for reason in rows_table.unseen for row in reason.rows]
    messages = [
        f"{row}: no requirement of it failed, and no reason says why"
        for row in defects
        if not failures[row] and row not in excused
    ]
    messages += [f"{row}: has a reason, and {', '.join(failures[row])} failed" for row in excused if failures.get(row)]
    return messages + [f"{row}: has a reason, and is not detected" for row in excused if row not in defects]


def checks_of(registry: Registry, scenario: ScenarioCoverage) -> tuple[str, ...]:
    """Return the requirements that judge a scenario: first the requirements that it lists, then the requirements that
    name it in their `source`."""
    return tuple(dict.fromkeys((*scenario.checks, *claims(registry).get(scenario.id, ()))))


def problems(
    registry: Registry, all_scenarios: Sequence[ScenarioCoverage], rows_table: Rows, gaps: Gaps | None = None
) -> list[str]:
    """Return a message for each scenario or row that has neither a check nor a reason, or inconsistently has both. A
    scenario in `gaps` needs neither."""
    result = [f"{id}: duplicate id" for id in _duplicates([scenario.id for scenario in all_scenarios])]
    for scenario in all_scenarios:
        unknown = [id for id in scenario.checks if id not in registry.requirements]
        result += [f"{scenario.id}: names {id}, which is not a requirement" for id in unknown]
        checks = checks_of(registry, scenario)
        if not checks and not scenario.reason and not scenario.pending and scenario.id not in (gaps or {}):
            result.append(f"{scenario.id}: has neither checks nor a reason")
        if scenario.pending and (checks or scenario.reason):
            result.append(f"{scenario.id}: is pending, and has checks or a reason")
    binding = [id for kinds in rows_table.binding.values() for ids in kinds.values() for id in ids]
    result += [f"{id}: duplicate id" for id in _duplicates(binding)]
    requirements_by_row = claims(registry)
    uncaught = [reason for reasons in rows_table.uncaught.values() for reason in reasons]
    excused = [id for reason in (*rows_table.reasons, *rows_table.pending, *uncaught) for id in reason.rows]
    result += [f"{id}: has two reasons" for id in _duplicates(excused)]
    result += [f"{id}: has a reason, and is not a binding row" for id in excused if id not in binding]
    result += [
        f"{id}: has a reason, and {requirements_by_row[id][0]} claims it" for id in excused if id in requirements_by_row
    ]
    result += [
        f"{id}: has neither a check nor a reason"
        for id in binding
        if id not in requirements_by_row and id not in excused
    ]
    return result


def missing(spec: Mapping[str, Row], all_scenarios: Sequence[ScenarioCoverage], rows_table: Rows) -> list[str]:
    """Return a message for each scenario, contract row and limit of the specification that is not listed."""
    listed_ids = {scenario.id for scenario in all_scenarios} | {
        id for kinds in rows_table.binding.values() for ids in kinds.values() for id in ids
    }
    kinds = {row.id: _kind(row) for id, row in spec.items() if id not in listed_ids}
    return [f"{id}: is a {kind} that is not listed" for id, kind in kinds.items() if kind]


def _kind(row: Row) -> str:
    """Return the kind of a row that must be listed: scenario, contract row or limit; "" for any other row."""
    if SCENARIO_ID.fullmatch(row.id):
        return "scenario"
    if LIMIT_ID.fullmatch(row.id):
        return "limit"
    is_unmarked = not row.mark and row.id.partition("-")[0] in UNMARKED_PREFIXES
    return "contract row" if row.mark == "contract" or is_unmarked else ""


def page(
    registry: Registry,
    all_scenarios: Sequence[ScenarioCoverage],
    rows_table: Rows,
    detected: Mapping[str, Sequence[str]],
    runs: Sequence[OperatorRun] = (),
    gaps: Gaps | None = None,
) -> str:
    """Render docs/coverage.md. `detected` maps requirements to the names of the mutants that they have detected; `runs`
    are recorded runs of operators with known defects."""
    lines = [
        "# Coverage",
        "",
        "<!-- made by `make docs` from fixtures/coverage/, the requirements and the mutants; do not edit -->",
        "",
        "Which parts of the specification are judged, by which requirements ([requirements.md](requirements.md)), and",
        "which deliberate wrong behaviors of the reference (*mutants*) they have been seen to detect. What rests",
        "neither on a public document nor on a convention of Kubernetes is no MUST, and has its basis in parentheses.",
        "",
        "## Scenarios",
        "",
        f"{len(all_scenarios)} scenarios, {sum(bool(entry.pending) for entry in all_scenarios)} of which are pending.",
        "",
        "The table of gaps is what `grove-conformance lab gaps` writes ([findings](findings/workload-api.md)).",
        "",
        "| scenario | what | checks | mutants | table of gaps | what is not checked, and why |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_scenario_row(registry, scenario, detected, gaps or {}) for scenario in all_scenarios]
    requirements_by_row = claims(registry)
    lines += [
        "",
        "## Binding rows",
        "",
        "Contract rows state what is required; defect rows state what upstream does wrong, which no implementation may",
        "do; limits are what the texts accept, and inference lacks. The requirement that checks a row names it in",
        "brackets in [requirements.md](requirements.md).",
        "",
        "| document | kind | rows | checked | with a reason | pending |",
        "|---|---|---|---|---|---|",
    ]
    pending = {id for reason in rows_table.pending for id in reason.rows}
    for document, kinds in rows_table.binding.items():
        for kind, ids in kinds.items():
            checked_rows = sum(id in requirements_by_row for id in ids)
            pending_rows = sum(id in pending for id in ids)
            counts = (len(ids), checked_rows, len(ids) - checked_rows - pending_rows, pending_rows)
            lines.append(f"| {document} | {kind} | {' | '.join(map(str, counts))} |")
    lines += _defects(registry, rows_table, detected, runs)
    lines += ["", "## Why there is no check", "", "| why | rows |", "|---|---|"]
    lines += [f"| {_cell(reason.reason)} | {', '.join(reason.rows)} |" for reason in rows_table.reasons]
    lines += ["", "## Pending", "", f"{len(pending)} rows are about what is not built yet.", ""]
    lines += ["| what is missing | rows |", "|---|---|"]
    lines += [f"| {_cell(reason.reason)} | {', '.join(reason.rows)} |" for reason in rows_table.pending]
    return "\n".join(lines) + "\n"


def _scenario_row(
    registry: Registry, scenario: ScenarioCoverage, detected: Mapping[str, Sequence[str]], gaps: Gaps
) -> str:
    checks = checks_of(registry, scenario)
    mutants = sorted({name for id in checks for name in detected.get(id, ())})
    tests = [f"`{path}`" for path in scenario.tests]
    pending_reason = f"pending: {scenario.pending}" if scenario.pending else ""
    reason = "; ".join(filter(None, [pending_reason, scenario.reason, f"see {', '.join(tests)}" if tests else ""]))
    instances = ", ".join(gaps.get(scenario.id, ()))
    cells = (scenario.id, scenario.title, _with_basis(registry, checks), ", ".join(mutants), instances, reason)
    return f"| {' | '.join(map(_cell, cells))} |"


def _defects(
    registry: Registry, rows_table: Rows, detected: Mapping[str, Sequence[str]], runs: Sequence[OperatorRun]
) -> list[str]:
    defects = caught(registry, rows_table)
    tried = sum(len(reason.rows) for reason in rows_table.uncaught.get("tried", ()))
    failures = observed(defects, runs)
    failed = frozenset[str]().union(*(run.failed for run in runs))
    by_must = sum(
        any(registry.requirements[id].level is Level.MUST for id in failed.intersection(ids))
        for ids in defects.values()
    )
    share = round(100 * len(defects) / max(1, len(defects) + tried))
    seen_on_operators = sum(map(bool, failures.values()))
    lines = [
        "",
        "## Defects of upstream",
        "",
        f"{len(defects)} defects are detected, {tried} were seen but are not: {share} % are detected. Rows about",
        "documentation, and rows that were never seen on a control plane, are not counted.",
        "",
        "*Detected* means that a requirement names the row, and that a mutant has been seen to fail that requirement.",
        "A mutant shows that the check can tell, and not that it does tell where the defect is at home. Therefore the",
        "last column names the requirements of the row that failed on an operator that has the defect, in these runs",
        "([findings](findings/grove-operator.md)); such a failure may have another cause than this row, too.",
        "",
        f"{seen_on_operators} of the {len(defects)} were seen on an operator, {by_must} of them by a MUST",
        "([why not by more](findings/grove-operator.md#recall-by-a-must)).",
        "",
        "| run | operator and date | requirements that failed |",
        "|---|---|---|",
        *(f"| {RUN_LETTERS[number]} | {_cell(run.label)} | {len(run.failed)} |" for number, run in enumerate(runs)),
        "",
        "| defect | caught by | mutants | seen on an operator |",
        "|---|---|---|---|",
    ]
    for row, ids in defects.items():
        mutants = sorted({name for id in ids for name in detected.get(id, ())})
        lines.append(f"| {row} | {_with_basis(registry, ids)} | {', '.join(mutants)} | {', '.join(failures[row])} |")
    lines += ["", "| detected, and not seen on an operator: why | defects |", "|---|---|"]
    lines += [f"| {_cell(reason.reason)} | {', '.join(reason.rows)} |" for reason in rows_table.unseen]
    lines += ["", "| not caught | why | defects |", "|---|---|---|"]
    for kind, reasons in rows_table.uncaught.items():
        lines += [f"| {kind} | {_cell(reason.reason)} | {', '.join(reason.rows)} |" for reason in reasons]
    return lines


def _with_basis(registry: Registry, ids: Iterable[str]) -> str:
    """Return the ids, each followed by its basis if that basis cannot support a MUST."""
    kinds = {id: registry.requirements[id].basis for id in ids}
    return ", ".join(id if kind in BINDING_KINDS else f"{id} ({kind})" for id, kind in kinds.items())


def _duplicates(ids: Sequence[str]) -> list[str]:
    return sorted({id for id in ids if ids.count(id) > 1})


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
