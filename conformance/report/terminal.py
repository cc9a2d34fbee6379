"""Show the report on a terminal: failures by cause, with the commands that reproduce them, and the verdict near the
end.

Values from an implementation are shown as plain text, without markup or control characters.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.evidence.bundle import PICTURE
from conformance.evidence.values import one_line
from conformance.grove import lines as contract
from conformance.report import causes, defects, facts, repetitions, tally
from conformance.report.causes import Cause
from conformance.report.marks import MARKS
from conformance.report.model import COUNTED_REASONS, Failure, Outcome, Profile, Report, Result, RunVerdict
from conformance.suite.outcomes.ledger import ScenePlayed
from conformance.suite.registry import basis, quick
from conformance.suite.registry.requirement import Level

PAGE = "report.html"
"""The page for a browser, next to the report."""
TEXT = "report.txt"
"""The file with everything that `--verbose` shows, next to the report."""
_SUCCESSFUL = (RunVerdict.CONFORMANT, RunVerdict.EXCEPT_EXPECTED)
MAX_LINES = 24
"""Maximum number of lines of a value with `--verbose`. The complete value is in the report and the bundle."""
MAX_FAILED = 4
"""The maximum number of additional failed requirements of a cause that are shown with their violations."""
MAX_FULL_CAUSES, MAX_SHORT_CAUSES = 2, 5
"""The number of causes that are shown in full without `--verbose`, and the number of additional causes (or reasons)
that are shown as one line each."""
MAX_IDS = 8


def show(report: Report, path: Path, console: Console, *, verbose: bool = False) -> None:
    """Print the report that was written to `path`: about one screen, or everything with `verbose`."""
    is_plain = not console.is_terminal or bool(console.no_color)
    console.print()
    if verbose:
        for profile in report.profiles:
            if is_plain:
                for line in _lines(profile):
                    console.print(line, soft_wrap=True)
            else:
                console.print(_table(profile, console.width))
            console.print()
    else:
        _print_overview(report, console)
    reasons = {result.reason for result in report.results if result.outcome is Outcome.HARNESS_ERROR}
    for fault in report.faults:
        if fault in reasons:
            continue
        _print_line(console, _line(f"harness error: {fault}", "bold magenta"))
    run_causes = causes.find_causes(report, defects.rows())
    held_up = {result.requirement.id for cause in run_causes for result in cause.held_up}
    _print_unjudged(report, held_up, path.parent, console, verbose=verbose)
    for result in report.results:
        if result.outcome is Outcome.STALE_EXPECTATION and not result.failures:
            _print_requirement(result, console)
    _print_causes(run_causes, report, path.parent, console, verbose=verbose)
    _print_limits(report, path.parent, console)
    for word in _summary(report):
        _print_line(console, _line(*word))
    _print_line(console, _line(f"page: {path.with_name(PAGE)}"))
    _print_line(console, _line(f"report: {path}"))


def clean(text: str) -> str:
    """Return a string that can control neither a terminal nor a CI system that reads the output: control characters
    become escapes, and so does the first character of what a line of output could be taken for (`_COMMAND`). Line feeds
    are kept."""
    return _COMMAND.sub(lambda match: f"{match[1]}\\x{ord(match[2]):02x}", printable(text))


def printable(text: str) -> str:
    """Return a string that cannot control a terminal: control characters become escapes, and line feeds are kept."""
    return "".join(
        c if c == "\n" or (c.isprintable() and c not in "\u2028\u2029") else c.encode("unicode_escape").decode()
        for c in text
    )


_COMMAND = re.compile(r"(^\s*(?=::|```)|(?=##\w*\[))([:`#])", re.MULTILINE)
"""The start of a workflow command of GitHub or Azure, of a service message of TeamCity, or of a fence that would end a
code block in a summary in Markdown. GitHub ignores spaces before a command, and others read commands inside a line."""


def sentence(report: Report) -> str:
    """Return the verdict as a sentence."""
    implementation = report.started.implementation
    predicate = {
        RunVerdict.CONFORMANT: "is conformant",
        RunVerdict.EXCEPT_EXPECTED: "is conformant except for its expected failures",
        RunVerdict.NOT_CONFORMANT: "is NOT conformant",
        RunVerdict.INTERRUPTED: "has no verdict: the run was interrupted",
        RunVerdict.HARNESS_ERROR: "has no verdict: the suite or its cluster failed",
        RunVerdict.UNKNOWN: "has no verdict: no claimed MUST requirement was judged",
        RunVerdict.PARTIAL: "passed what was judged, but not everything was",
        RunVerdict.STALE: "does not behave as its expected failures say",
    }[report.verdict]
    if report.verdict is RunVerdict.PARTIAL:
        if report.has_judged_selection:
            predicate = "passed all that was selected (partial)"
            if quick.is_quick(report.started.only):
                predicate = "passed the few tests of --quick, which say nothing of conformance (partial)"
        elif report.counts[Outcome.FAILED]:
            predicate = "was judged in part, and what failed does not decide a verdict"
    if report.verdict is RunVerdict.NOT_CONFORMANT:
        predicate += "; the run was interrupted" if not report.complete else ""
        predicate += "; there were harness errors besides" if report.faults else ""
    return f"{implementation.name} {implementation.version} {predicate}"


def verdict_line(report: Report) -> str:
    """Return the verdict as one line, with the number of requirements by outcome."""
    implementation = report.started.implementation
    results = [result for profile in report.profiles for result in profile.results]
    counts = ", ".join(f"{n} {word}" for word, n in tally.counts(results, report).items())
    ids = ", ".join(
        f"{result.requirement.id} of {result.requirement.profile}"
        + (" as expected" if result.outcome is Outcome.EXPECTED_FAILURE else "")
        for result in report.other_violations
    )
    violations_note = f"; violated besides: {ids}" if ids else ""
    names = ", ".join(p.name for p in report.profiles)
    passed, total = report.compatibility
    release = f" {implementation.release}" if implementation.release else ""
    compatibility_note = f"; compatible with upstream{release}: {passed} of {total}" if total else ""
    details = f"{names or 'no profile'}: {counts or 'nothing'}{violations_note}"
    return f"{sentence(report)}{compatibility_note}{seeds_phrase(report)} ({details})"


def seeds_phrase(report: Report) -> str:
    """Return how many of the judged seed requirements passed, as the end of a sentence; empty if none was judged."""
    passed, total = report.seeds
    return f"; and {passed} of {total} that the seed documents ask for" if total else ""


def reproduction(report: Report, test: str) -> str:
    """Return the command line that repeats a test of the run."""
    return f"{report.started.reproduce} --test {shlex.quote(test)}"


def judged_roles(roles: Iterable[str]) -> str:
    """Return a phrase with the roles that a run judges."""
    names = [role.replace("-", " ") for role in sorted(roles, reverse=True)]
    return f"the {names[0]} alone" if len(names) == 1 else f"{' and '.join(names)} together"


def _table(profile: Profile, width: int) -> Table:
    """Return a table in which all columns have their full width, except that the requirement texts get the remaining
    width."""
    ids = max(len(r.requirement.id) for r in profile.results)
    outcomes = max(len("outcome"), *(len(r.outcome) for r in profile.results))
    table = Table(title=Text(_title(profile)), title_justify="left", title_style="bold")
    table.add_column("", width=1)
    table.add_column("id", width=ids)
    table.add_column("level", width=6)
    sentences = max(20, width - ids - outcomes - 7 - 16)
    table.add_column("requirement", width=sentences, no_wrap=True, overflow="ellipsis")
    table.add_column("outcome", width=outcomes)
    for result in _selected(profile):
        mark = MARKS[result.outcome]
        entry = result.requirement
        outcome = Text(str(result.outcome), mark.style)
        table.add_row(Text(mark.symbol, mark.style), entry.id, str(entry.level), Text(entry.text), outcome)
    if remaining := _unselected_line(profile):
        table.add_row("", "", "", Text(remaining, "dim"), "")
    return table


def _lines(profile: Profile) -> list[Text]:
    """Return the profile as searchable lines, for output that is not a terminal."""
    lines = [_line(_title(profile))]
    for result in _selected(profile):
        entry = result.requirement
        mark = MARKS[result.outcome].symbol
        lines.append(_line(f"  {mark} {entry.id:<10} {entry.level:<6} {result.outcome:<17} {entry.text}"))
    if remaining := _unselected_line(profile):
        lines.append(_line(f"    {remaining}"))
    return lines


def _selected(profile: Profile) -> list[Result]:
    return [result for result in profile.results if result.reason not in COUNTED_REASONS]


def _unselected_line(profile: Profile) -> str:
    """Return a line with the number of requirements that `--id` or `--shard` left out; empty if there are none."""
    count = len(profile.results) - len(_selected(profile))
    return f"and {count} that were not selected" if count else ""


def _title(profile: Profile) -> str:
    return f"{profile.name}: {profile.verdict} — {clean(profile.text)}"


def _print_overview(report: Report, console: Console) -> None:
    """Print one line for each profile that is not conformant, and one line for all conformant profiles."""
    conformant_profiles = [profile for profile in report.profiles if profile.verdict is RunVerdict.CONFORMANT]
    for profile in report.profiles:
        if profile not in conformant_profiles:
            counts = ", ".join(f"{n} {word}" for word, n in tally.counts(_selected(profile), report).items())
            _print_line(console, _line(f"{profile.name}: {profile.verdict} ({counts or 'nothing selected'})"))
    if conformant_profiles:
        names = ", ".join(f"{profile.name} {profile.counts[Outcome.PASSED]}" for profile in conformant_profiles)
        _print_line(console, _line(f"conformant, with the number of requirements that passed: {names}", "green"))


def _print_unjudged(
    report: Report, held_up: AbstractSet[str], folder: Path, console: Console, *, verbose: bool
) -> None:
    """Print the reasons why requirements were not judged: each reason once with the ids, sorted by outcome and by the
    number of requirements. Requirements that a failure holds up are shown with that failure instead."""
    reasons: dict[tuple[Outcome, str], list[Result]] = {}
    for result in report.results:
        if (
            result.reason not in COUNTED_REASONS
            and result.requirement.id not in held_up
            and result.outcome
            in (
                Outcome.BLOCKED,
                Outcome.NOT_RUN,
                Outcome.NOT_CLAIMED,
                Outcome.HARNESS_ERROR,
            )
        ):
            reasons.setdefault((result.outcome, result.reason), []).append(result)
    order = list(Outcome)
    sorted_reasons = sorted(reasons.items(), key=lambda item: (order.index(item[0][0]), -len(item[1])))
    printed = sorted_reasons if verbose else sorted_reasons[:MAX_SHORT_CAUSES]
    for (outcome, reason), results in printed:
        _print_line(console, _line(f"{outcome}: {reason} ({_ids(results, verbose=verbose)})", MARKS[outcome].style))
        if bundle := next((result.bundle for result in results if result.bundle), ""):
            _print_line(console, _line(f"evidence: {shlex.quote(str(folder / bundle))}", "dim"))
    if len(reasons) > len(printed):
        further_reasons = _plural(len(reasons) - len(printed), "more reason")
        _print_line(console, _line(f"and {further_reasons} why something was not judged: see {folder / TEXT}", "dim"))


def _print_limits(report: Report, folder: Path, console: Console) -> None:
    """Print the known limits of the specification, each once, with the ids of the requirements that it affects."""
    limits: dict[str, list[Result]] = {}
    for result in report.results:
        if result.outcome is Outcome.KNOWN_LIMIT:
            limits.setdefault(result.reason, []).append(result)
    if limits:
        console.print()
        _print_line(console, _line("known limits, which the specification accepts (nobody's failure):"))
    mark = MARKS[Outcome.KNOWN_LIMIT]
    for reason, results in limits.items():
        _print_line(console, _line(f"{mark.symbol} {reason} ({_ids(results, verbose=True)})", mark.style))
        for failure in [failure for result in results for failure in result.failures][:1]:
            _print_line(console, _block("seen", facts.value(failure.observed, facts.SHORT_LINES)))
            if failure.bundle:
                _print_line(console, _block("evidence", shlex.quote(str(folder / failure.bundle))))


def _print_causes(
    run_causes: Sequence[Cause], report: Report, folder: Path, console: Console, *, verbose: bool
) -> None:
    """Print the causes of failures, sorted by the number of requirements that they affect."""
    if run_causes:
        failed = _plural(sum(len(cause.failed) for cause in run_causes), "requirement")
        held_up = len({result.requirement.id for cause in run_causes for result in cause.held_up})
        held_up_note = f", {held_up} held up" if held_up else ""
        console.print()
        _print_line(console, _line(f"{_plural(len(run_causes), 'cause')} of failures: {failed} failed{held_up_note}"))
    for number, cause in enumerate(run_causes, 1):
        if verbose or number <= MAX_FULL_CAUSES:
            _print_cause(number, cause, report, folder, console, verbose=verbose)
        elif number <= MAX_FULL_CAUSES + MAX_SHORT_CAUSES:
            if number == MAX_FULL_CAUSES + 1:
                console.print()
            defect_note = f"; see also {cause.defects[0]}" if cause.defects else ""
            _print_line(
                console,
                _line(f"{number}. {one_line(cause.title, 120)} ({_ids(cause.results, verbose=False)}{defect_note})"),
            )
    if not verbose and len(run_causes) > MAX_FULL_CAUSES + MAX_SHORT_CAUSES:
        further_causes = len(run_causes) - MAX_FULL_CAUSES - MAX_SHORT_CAUSES
        _print_line(console, _line(f"and {_plural(further_causes, 'more cause')}: see {folder / TEXT}", "dim"))


def _print_cause(number: int, cause: Cause, report: Report, folder: Path, console: Console, *, verbose: bool) -> None:
    console.print()
    tests = f" (in {len(cause.tests)} tests)" if len(cause.tests) > 1 else ""
    _print_line(console, _line(f"{number}. {one_line(cause.title)}{tests}", "bold"))
    printed = cause.failed if verbose else cause.failed[:1]
    for result in printed:
        _print_requirement(result, console)
    if remaining_lines := cause.failed[len(printed) :]:
        _print_line(console, _block("failed too", _violations(remaining_lines, MAX_FAILED)))
    if cause.held_up:
        _print_line(console, _block("held up", _ids(cause.held_up, verbose=verbose)))
    if cause.defects:
        _print_line(console, _block("see also", _resembling_defect(cause.defects)))
    for failure in cause.failures if verbose else cause.failures[:1]:
        for label, text in _facts(failure, folder, MAX_LINES if verbose else facts.SHORT_LINES):
            _print_line(console, _block(label, text))
        _print_line(console, _block("reproduce", reproduction(report, failure.test)))


def _violations(results: Sequence[Result], limit: int) -> str:
    """Return the violation of each requirement, one line each; beyond `limit` requirements, only their ids."""
    lines = [f"{r.requirement.id} {r.requirement.violation}".rstrip() for r in results[:limit]]
    remaining_lines = [_ids(results[limit:], verbose=False)] if len(results) > limit else []
    return "\n".join(lines + remaining_lines)


def _resembling_defect(ids: Sequence[str]) -> str:
    """Return a description of the first defect, which explains most of the failures, and the ids of the other
    defects."""
    row = defects.rows()[ids[0]]
    alternatives = f"\nor {', '.join(ids[1:])}" if len(ids) > 1 else ""
    return f"upstream's defect {row.id}: {defects.fact(row)}{alternatives}"


def _print_requirement(result: Result, console: Console) -> None:
    entry = result.requirement
    mark = MARKS[result.outcome]
    level = "" if entry.level is Level.MUST else f" ({entry.level}: does not decide the verdict)"
    decides = "" if entry.level is not Level.MUST else ": does not decide the verdict"
    seed = f" (rests on {entry.seed}, and not on upstream's contract{decides})" if entry.seed else ""
    reason = f" — {result.reason}" if result.reason else ""
    _print_line(console, _line(f"{mark.symbol} {entry.id} {entry.text}{level}{seed}{reason}", mark.style))
    if result.outcome is Outcome.FAILED and (statement := basis.summary(entry)):
        _print_line(console, _block("says so", statement))
        if contradiction := basis.contradictions(entry):
            _print_line(console, _block("but", f"another document says otherwise: {contradiction}"))


def _facts(failure: Failure, folder: Path, limit: int) -> list[tuple[str, str]]:
    labeled = facts.labeled_facts(failure, limit)
    if failure.bundle:
        bundle = folder / failure.bundle
        labeled.append(("evidence", shlex.quote(str(bundle))))
        if (bundle / PICTURE).is_file():
            labeled.append(("picture", shlex.quote(str(bundle / PICTURE))))
    return labeled


def _ids(results: Sequence[Result], *, verbose: bool) -> str:
    ids = [result.requirement.id for result in results]
    printed = ids if verbose or len(ids) <= MAX_IDS + 1 else ids[:MAX_IDS]
    return ", ".join(printed) + (f" and {len(ids) - len(printed)} more" if len(ids) > len(printed) else "")


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _block(label: str, text: str) -> Text:
    head, *remaining_lines = clean(text).split("\n")
    block = Text(f"    {label + ':':<11} {head}")
    for line in remaining_lines:
        block.append(f"\n    {'':<11} {line}")
    return block


def _summary(report: Report) -> list[tuple[str, str]]:
    implementation = report.started.implementation
    lines = [("", "")]
    lines += [(str(rate), "" if rate.passed == rate.runs else "bold red") for rate in repetitions.rates(report)]
    lines += [(line, "dim") for event in report.timed for line in _timed(event)]
    lines.append((f"judged: {judged_roles(implementation.roles)}", "dim"))
    for role, player in sorted(implementation.supplied.items()):
        lines.append((f"the role {role} was supplied by {player} and was not judged", "dim"))
    if implementation.line:
        contract_line = contract.load()[implementation.line]
        lines.append(
            (f"contract: Grove {implementation.release}, line {contract_line.name} ({contract_line.about})", "dim")
        )
    if implementation.discovered:
        lines.append(
            (
                "discovered: " + "; ".join(f"{at}: {value}" for at, value in sorted(implementation.discovered.items())),
                "dim",
            )
        )
    lines += [(line, "dim") for line in _parts(report)]
    if not report.complete:
        lines.append(("the report is incomplete", "yellow"))
    lines.append((verdict_line(report), "bold green" if report.verdict in _SUCCESSFUL else "bold red"))
    return lines


def _parts(report: Report) -> list[str]:
    """Return lines about the selected part of the suite: its shard, and the tests in which invariants were not
    judged."""
    lines = [f"shard {report.started.shard} of the selection"] if report.started.shard else []
    elsewhere = report.started.elsewhere
    partial_results = [r for r in report.results if r.tests and r.requirement.id in elsewhere]
    if partial_results:
        texts = ", ".join(
            f"{r.requirement.id} in {len(r.tests)} of {len(r.tests) + elsewhere[r.requirement.id]} tests"
            for r in partial_results
        )
        lines.append(f"invariants were judged in scenes of the selected profiles: {texts} (--with-invariants for all)")
    return lines


def _timed(event: ScenePlayed) -> list[str]:
    phases = {
        phase: ", ".join(f"{marker} {seconds:.1f} s" for marker, seconds in times.items())
        for phase, times in event.markers.items()
    }
    return [f"timing markers of {event.scene}:", *(f"    {phase}: {markers}" for phase, markers in phases.items())]


def _print_line(console: Console, text: Text) -> None:
    """Print a text as one line of any length: the terminal wraps it, so that a path can still be copied as a whole."""
    console.print(text, soft_wrap=True)


def _line(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style)
