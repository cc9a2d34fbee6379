"""The verdict on a terminal: a table per profile, each failure with how to reproduce it, the verdict line last.

Whatever an implementation put into a value is shown as text: no markup, no control characters.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.report.model import Failure, Outcome, Profile, Report, Result, Word
from conformance.suite.requirement import Level

_MARK = {
    Outcome.PASSED: ("✓", "green"),
    Outcome.FAILED: ("✗", "bold red"),
    Outcome.HARNESS_ERROR: ("!", "bold magenta"),
    Outcome.BLOCKED: ("▪", "red"),
    Outcome.STALE_EXPECTATION: ("≠", "yellow"),
    Outcome.EXPECTED_FAILURE: ("~", "yellow"),
    Outcome.NOT_RUN: ("·", "dim"),
    Outcome.NOT_CLAIMED: ("-", "dim"),
}
_GOOD = (Word.CONFORMANT, Word.EXCEPT_EXPECTED)
MOST_LINES = 24
"""Lines of a value that are shown; the whole is in the report and the bundle."""


def show(report: Report, path: Path, console: Console) -> None:
    """Prints the report that was written to `path`."""
    for profile in report.profiles:
        console.print(_table(profile))
    for fault in report.faults:
        console.print(_line(f"harness error: {fault}", "bold magenta"))
    _unjudged(report, console)
    for result in report.results:
        if result.outcome in (Outcome.FAILED, Outcome.STALE_EXPECTATION):
            _failure(result, report, path.parent, console)
    for word in _summary(report):
        console.print(_line(*word))
    console.print(_line(f"report: {path}"))


def clean(text: str) -> str:
    """Text without what would command a terminal: control characters are shown as escapes, line feeds kept."""
    return "".join(
        c if c == "\n" or (c.isprintable() and c not in "\u2028\u2029") else c.encode("unicode_escape").decode()
        for c in text
    )


def verdict_line(report: Report) -> str:
    """The one line that says it all."""
    who = report.started.implementation
    counts = ", ".join(f"{n} {outcome}" for outcome, n in report.counts.items() if n)
    names = ", ".join(p.name for p in report.profiles)
    said = {
        Word.CONFORMANT: "is conformant",
        Word.EXCEPT_EXPECTED: "is conformant except for its expected failures",
        Word.NOT_CONFORMANT: "is NOT conformant",
        Word.INTERRUPTED: "has no verdict: the run was interrupted",
        Word.HARNESS_ERROR: "has no verdict: the suite or its cluster failed",
        Word.UNKNOWN: "has no verdict: nothing that counts was judged",
        Word.PARTIAL: "passed what was judged, but not everything was",
        Word.STALE: "behaves otherwise than its expected failures say",
    }[report.verdict]
    return f"{who.name} {who.version} {said} ({names or 'no profile'}: {counts or 'nothing'})"


def _table(profile: Profile) -> Table:
    table = Table(title=Text(f"{profile.name}: {clean(profile.text)}"), title_justify="left", title_style="bold")
    for column in ("", "id", "level"):
        table.add_column(column, no_wrap=True)
    table.add_column("requirement", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("outcome", no_wrap=True)
    for result in profile.results:
        mark, style = _MARK[result.outcome]
        entry = result.requirement
        outcome = Text(str(result.outcome), style)
        table.add_row(Text(mark, style), entry.id, str(entry.level), Text(entry.text), outcome)
    return table


def _unjudged(report: Report, console: Console) -> None:
    """Why something was not judged: each explanation once, with its ids."""
    reasons: dict[tuple[Outcome, str], list[str]] = {}
    for result in report.results:
        if result.outcome in (Outcome.BLOCKED, Outcome.NOT_RUN, Outcome.NOT_CLAIMED, Outcome.HARNESS_ERROR):
            reasons.setdefault((result.outcome, result.reason), []).append(result.requirement.id)
    for (outcome, reason), ids in reasons.items():
        console.print(_line(f"{outcome}: {reason} ({', '.join(ids)})", _MARK[outcome][1]))


def _failure(result: Result, report: Report, folder: Path, console: Console) -> None:
    entry = result.requirement
    console.print()
    console.print(_line(f"{_MARK[result.outcome][0]} {entry.id} {entry.text}", _MARK[result.outcome][1]))
    if result.reason:
        console.print(_line(f"    {result.reason}"))
    if entry.level is not Level.MUST:
        console.print(_line(f"    ({entry.level}: does not decide the verdict)", "dim"))
    for failure in result.failures:
        for label, text in _facts(failure, folder):
            console.print(_block(label, text))
    if result.failures:
        console.print(_block("reproduce", f"{report.started.reproduce} --id {entry.id}"))


def _facts(failure: Failure, folder: Path) -> list[tuple[str, str]]:
    facts = [("test", failure.test), ("check", failure.what)]
    if failure.expected is not None and failure.expected != failure.what:
        facts.append(("expected", _value(failure.expected)))
    facts.append(("seen", _value(failure.seen)))
    if failure.at is not None:
        facts.append(("at", f"{failure.at:.3f} s of the history"))
    if failure.bundle:
        facts.append(("evidence", shlex.quote(str(folder / failure.bundle))))
    return facts


def _value(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    lines = text.splitlines() or [""]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES} more lines in the report"]
    return "\n".join(lines)


def _block(label: str, text: str) -> Text:
    head, *rest = clean(text).split("\n")
    block = Text(f"    {label + ':':<10} {head}", overflow="fold", no_wrap=False)
    for line in rest:
        block.append(f"\n    {'':<10} {line}")
    return block


def _summary(report: Report) -> list[tuple[str, str]]:
    lines = [("", "")]
    for role, who in sorted(report.started.implementation.supplied.items()):
        lines.append((f"the role {role} was supplied by {who} and was not judged", "dim"))
    if not report.complete:
        lines.append(("the report is incomplete", "yellow"))
    lines.append((verdict_line(report), "bold green" if report.verdict in _GOOD else "bold red"))
    return lines


def _line(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style)
