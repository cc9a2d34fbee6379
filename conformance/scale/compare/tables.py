"""A comparison in readable form: tables on a terminal, and Markdown for a pull request."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from conformance.scale.compare.validity import summary
from conformance.scale.compare.verdicts import TimeVerdict

Document = dict[str, Any]
Row = tuple[str, str, str, str, str]

HEADER = ("", "base", "head", "head / base", "verdict")
SHOWN_TIMES = (
    "pods-created",
    "pods-scheduled",
    "pods-ready",
    "available",
    "updated",
    "deleted",
    "at-target",
    "cpu-operator",
)
"""Suffixes of the names of the times that the tables show. The JSON document has all times."""
HEADLINE_COUNTS = ("writes", "reads", "cpu-ms")
"""The counts that the headline shows if there are no usable times."""
MAX_WRITES = 8
"""Maximum number of kinds of writes that are listed if the total number of writes has changed."""


def show(document: Document, console: Console) -> None:
    """Print a comparison."""
    console.print(title(document), markup=False, highlight=False, soft_wrap=True, style="italic")
    if table_rows := list(rows(document)):
        table = Table()
        for number, name in enumerate(HEADER):
            table.add_column(name, no_wrap=number == 0)
        for row in table_rows:
            table.add_row(*row)
        console.print(table)
    for line in notes(document):
        console.print(line, markup=False, highlight=False)
    console.print(headline(document), markup=False, style="bold")
    console.print(document["why"], markup=False)
    for reason in document["gate"]:
        console.print(f"fails: {reason}", markup=False, style="bold")


def markdown(document: Document, command: str) -> str:
    """Return a comparison as Markdown."""
    lines = [
        f"### {title(document)}",
        "",
        f"**{headline(document)}**",
        "",
        document["why"],
        *(f"\n**fails**: {reason}" for reason in document["gate"]),
        "",
        *_markdown_table(list(rows(document))),
        *(f"- {line}" for line in notes(document)),
        "",
        "Medians of the rounds; intervals of 95 % by bootstrap. Only the first row is tested. Repeat it with:",
        "",
        f"    {command}",
        "",
    ]
    return "\n".join(lines)


def _markdown_table(table_rows: list[Row]) -> Iterator[str]:
    if table_rows:
        for row in (HEADER, ("---",) * len(HEADER), *table_rows):
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        yield ""


def names(document: Document) -> tuple[str, str]:
    """Return the names of the base and the head: the names of their descriptors or, if these are equal, the names with
    the versions, the names with the binders, or the sides as they were given."""
    sides = document["base"], document["head"]
    implementations = [side["implementation"] for side in sides]
    name_pairs = (
        [implementation["name"] for implementation in implementations],
        [f"{implementation['name']} {implementation['version']}" for implementation in implementations],
        [f"{side['implementation']['name']} with {side['binder']}" for side in sides],
        [side["name"] for side in sides],
    )
    base, head = next((name_pair for name_pair in name_pairs if name_pair[0] != name_pair[1]), name_pairs[-1])
    return base, head


def title(document: Document) -> str:
    """Return the subject of a comparison in one line."""
    scenario, round_counts = document["scenario"], document["rounds"]
    base, head = names(document)
    rounds = str(round_counts["used"])
    if round_counts["unused"]:
        rounds = f"times of {rounds} of {round_counts['played']}"
    first_day, last_day = document["measured"]["from"], document["measured"]["to"]
    period = first_day if first_day == last_day else f"{first_day} to {last_day}"
    return f"{scenario['name']}: {base} (base) and {head} (head), {rounds} rounds, {period}"


def headline(document: Document) -> str:
    """Return the answer in one line: the faster side and the ratio or, if there are no usable times, the ratios of the
    counts."""
    estimate, metric = document["primary"]["estimate"], document["question"]["metric"]
    if estimate is None:
        usable = "one usable time" if document["rounds"]["used"] else "no usable time"
        count_texts = [
            f"{name} {count['verdict']} ({count['ratio']:.2f})"
            for name, count in document["counts"].items()
            if name in HEADLINE_COUNTS and count["ratio"] is not None
        ]
        return f"{document['verdict']}: {usable} of {metric}" + (
            f"; counts: {', '.join(count_texts)}" if count_texts else ""
        )
    base, head = names(document)
    verdict = {
        TimeVerdict.FASTER: f"{head} is faster than {base}",
        TimeVerdict.SLOWER: f"{head} is slower than {base}",
        TimeVerdict.NO_DIFFERENCE: f"no difference seen between {head} and {base}",
    }.get(TimeVerdict(document["verdict"]), f"inconclusive whether {head} is faster than {base}")
    base_text, head_text = (_value(metric, document["primary"][side]) for side in ("base", "head"))
    interval = f"95 % interval {estimate['low']:.2f} to {estimate['high']:.2f}"
    return f"{verdict}: {metric} {head_text} instead of {base_text}, {estimate['ratio']:.2f} times as long ({interval})"


def rows(document: Document) -> Iterator[Row]:
    """Yield the rows of the table: the tested metric, the counts, and the most informative other times. A value that no
    round has is left out."""
    metric = document["question"]["metric"]
    if any(document["primary"][side] for side in ("base", "head")):
        yield _time(metric, document["primary"], document["verdict"])
    for name, count in document["counts"].items():
        if not count["base"] and not count["head"]:
            continue
        yield (
            f"{name} per pod",
            _median(count["base"], 3),
            _median(count["head"], 3),
            "" if count["ratio"] is None else f"{count['ratio']:.3f}",
            f"{count['verdict']} ({count['why']})",
        )
    for name, time in document["times"].items():
        if name.endswith(SHOWN_TIMES):
            yield _time(name, time, "")


def _time(name: str, time: Document, verdict: str) -> Row:
    estimate = time["estimate"]
    ratio = "-" if estimate is None else f"{estimate['ratio']:.3f} ({estimate['low']:.3f} to {estimate['high']:.3f})"
    base, head = (_value(name, time[side]) if time[side] else "-" for side in ("base", "head"))
    return name, base, head, ratio, verdict


def _value(name: str, values: list[float]) -> str:
    return _median(values, 2) + ("" if name.endswith("×floor") else " s")


def _median(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f}" if values else "-"


def notes(document: Document) -> Iterator[str]:
    """Yield warnings, changes in the writes, unused rounds, the compared programs, and the machine."""
    for warning in document["warnings"]:
        yield f"warning: {warning}"
    if document["counts"]["writes"]["verdict"] in ("more", "fewer"):
        for change in document["changedWrites"][:MAX_WRITES]:
            base, head = change["base"], change["head"]
            yield f"{change['request']}: {base:.2f} per pod in the base, {head:.2f} in the head ({head - base:+.2f})"
    for unused in document["rounds"]["unused"]:
        yield f"the times of round {unused['round']} were not used: {summary(unused['reasons'])}"
    machine = document["environment"]
    for side, name in zip(("base", "head"), names(document), strict=True):
        programs = document[side]["implementation"]["programs"].values()
        program_text = "; ".join(
            f"{program['program']} {(program['commit'] or program['digest'] or '?').removeprefix('sha256:')[:12]}"
            for program in programs
        )
        yield f"{side}: {name}" + (f" ({program_text})" if program_text else "")
    yield f"machine: {machine['cpus']} × {machine['cpuModel']}, {machine['memoryMiB'] / 1024:.0f} GiB"
