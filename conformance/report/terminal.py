"""The verdict on a terminal: a table per profile, each failure with how to reproduce it, the verdict line last.

Whatever an implementation put into a value is shown as text: no markup, no control characters.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.report import repetitions
from conformance.report.model import NOT_SELECTED, Failure, Outcome, Profile, Report, Result, Word
from conformance.suite.bundle import PICTURE
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
    plain = not console.is_terminal or bool(console.no_color)
    for profile in report.profiles:
        console.print()
        if plain:
            for line in _lines(profile):
                console.print(line, soft_wrap=True)
        else:
            console.print(_table(profile, console.width))
    told = {result.reason for result in report.results if result.outcome is Outcome.HARNESS_ERROR}
    for fault in report.faults:
        if fault in told:
            continue
        _print(console, _line(f"harness error: {fault}", "bold magenta"))
    _unjudged(report, console)
    for failure, results in _failures(report):
        _failure(failure, results, report, path.parent, console)
    for word in _summary(report):
        _print(console, _line(*word))
    _print(console, _line(f"report: {path}"))


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


def judged(roles: Iterable[str]) -> str:
    """Whom a run judges, in words."""
    names = [role.replace("-", " ") for role in sorted(roles, reverse=True)]
    return f"the {names[0]} alone" if len(names) == 1 else f"{' and '.join(names)} together"


def _table(profile: Profile, width: int) -> Table:
    """Every column has its full width, and the sentences what is left."""
    ids = max(len(r.requirement.id) for r in profile.results)
    outcomes = max(len("outcome"), *(len(r.outcome) for r in profile.results))
    table = Table(title=Text(_title(profile)), title_justify="left", title_style="bold")
    table.add_column("", width=1)
    table.add_column("id", width=ids)
    table.add_column("level", width=6)
    sentences = max(20, width - ids - outcomes - 7 - 16)
    table.add_column("requirement", width=sentences, no_wrap=True, overflow="ellipsis")
    table.add_column("outcome", width=outcomes)
    for result in _shown(profile):
        mark, style = _MARK[result.outcome]
        entry = result.requirement
        outcome = Text(str(result.outcome), style)
        table.add_row(Text(mark, style), entry.id, str(entry.level), Text(entry.text), outcome)
    if others := _others(profile):
        table.add_row("", "", "", Text(others, "dim"), "")
    return table


def _lines(profile: Profile) -> list[Text]:
    """The same without a terminal: a line each, to be searched."""
    lines = [_line(_title(profile))]
    for result in _shown(profile):
        entry = result.requirement
        mark = _MARK[result.outcome][0]
        lines.append(_line(f"  {mark} {entry.id:<10} {entry.level:<6} {result.outcome:<17} {entry.text}"))
    if others := _others(profile):
        lines.append(_line(f"    {others}"))
    return lines


def _shown(profile: Profile) -> list[Result]:
    return [result for result in profile.results if result.reason != NOT_SELECTED]


def _others(profile: Profile) -> str:
    """What `--id` left out, without a line for each."""
    count = len(profile.results) - len(_shown(profile))
    return f"and {count} that were not selected" if count else ""


def _title(profile: Profile) -> str:
    return f"{profile.name}: {profile.verdict} — {clean(profile.text)}"


def _unjudged(report: Report, console: Console) -> None:
    """Why something was not judged: each explanation once, with its ids."""
    reasons: dict[tuple[Outcome, str], list[str]] = {}
    for result in report.results:
        if result.reason != NOT_SELECTED and result.outcome in (
            Outcome.BLOCKED,
            Outcome.NOT_RUN,
            Outcome.NOT_CLAIMED,
            Outcome.HARNESS_ERROR,
        ):
            reasons.setdefault((result.outcome, result.reason), []).append(result.requirement.id)
    for (outcome, reason), ids in reasons.items():
        _print(console, _line(f"{outcome}: {reason} ({', '.join(ids)})", _MARK[outcome][1]))


def _failures(report: Report) -> list[tuple[Failure | None, list[Result]]]:
    """Each different failure once, with all requirements that it fails; None for those that fail by passing."""
    found: dict[bytes, tuple[Failure | None, list[Result]]] = {}
    for result in report.results:
        if result.outcome not in (Outcome.FAILED, Outcome.STALE_EXPECTATION):
            continue
        for failure in result.failures or (None,):
            same = (failure.test, failure.what, failure.expected, failure.seen) if failure else result.requirement.id
            found.setdefault(msgspec.json.encode(same), (failure, []))[1].append(result)
    return list(found.values())


def _failure(failure: Failure | None, results: list[Result], report: Report, folder: Path, console: Console) -> None:
    console.print()
    for result in results:
        entry = result.requirement
        mark, style = _MARK[result.outcome]
        level = "" if entry.level is Level.MUST else f" ({entry.level}: does not decide the verdict)"
        reason = f" — {result.reason}" if result.reason else ""
        _print(console, _line(f"{mark} {entry.id} {entry.text}{level}{reason}", style))
    if failure is not None:
        for label, text in _facts(failure, folder):
            _print(console, _block(label, text))
        ids = " ".join(f"--id {result.requirement.id}" for result in results)
        _print(console, _block("reproduce", f"{report.started.reproduce} {ids}"))


def _facts(failure: Failure, folder: Path) -> list[tuple[str, str]]:
    facts = [("test", failure.test)]
    if failure.expected != failure.what:
        facts.append(("check", failure.what))
    if failure.expected is not None:
        facts.append(("expected", _value(failure.expected)))
    facts.append(("seen", _value(failure.seen)))
    if failure.at is not None:
        facts.append(("at", f"{failure.at:.3f} s of the history"))
    if failure.bundle:
        bundle = folder / failure.bundle
        facts.append(("evidence", shlex.quote(str(bundle))))
        if (bundle / PICTURE).is_file():
            facts.append(("picture", shlex.quote(str(bundle / PICTURE))))
    return facts


def _value(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    lines = text.splitlines() or [""]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES} more lines in the report"]
    return "\n".join(lines)


def _block(label: str, text: str) -> Text:
    head, *rest = clean(text).split("\n")
    block = Text(f"    {label + ':':<10} {head}")
    for line in rest:
        block.append(f"\n    {'':<10} {line}")
    return block


def _summary(report: Report) -> list[tuple[str, str]]:
    who = report.started.implementation
    lines = [("", "")]
    lines += [(str(rate), "" if rate.passed == rate.runs else "bold red") for rate in repetitions.rates(report)]
    lines.append((f"judged: {judged(who.roles)}", "dim"))
    for role, player in sorted(who.supplied.items()):
        lines.append((f"the role {role} was supplied by {player} and was not judged", "dim"))
    if not report.complete:
        lines.append(("the report is incomplete", "yellow"))
    lines.append((verdict_line(report), "bold green" if report.verdict in _GOOD else "bold red"))
    return lines


def _print(console: Console, text: Text) -> None:
    """As one line, however long: the terminal folds it, and a path stays in one piece."""
    console.print(text, soft_wrap=True)


def _line(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style)
