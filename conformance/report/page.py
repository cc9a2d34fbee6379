"""Render `report.html`: a run as one page that needs no network. The pictures of bundles are separate files of the run.

The page shows, in this order: the verdict and its basis; the failures by cause, with the commands that run them again;
and each requirement, worst outcome first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conformance.evidence.bundle import PICTURE
from conformance.evidence.values import one_line
from conformance.pages.render import render as rendered
from conformance.report import about, causes, defects, diff, document, facts, repetitions, tally, terminal
from conformance.report.causes import Cause
from conformance.report.marks import MARKS
from conformance.report.model import COUNTED_REASONS, Failure, Outcome, Report, Result, RunVerdict
from conformance.suite.registry import basis

Values = dict[str, Any]

TEMPLATE = Path(__file__).with_name("page.html")
MAX_BYTES = 1 << 20
SIZES = ((60, 8), (24, 3), (8, 1), (2, 1))
"""Pairs of the maximum number of lines of a value and of failures of a requirement. The first pair with which the page
is not too large is used."""
MAX_TESTS = 8
MAX_FULL_CAUSES = 3
"""The number of causes that are shown in full, with their failures and reproduction commands."""
MAIN_FACTS = ("implementation", "judged", "supplied", "contract", "basis", "kubernetes", "started")
"""The facts of a run that are shown without expanding the details."""
BASIS_PHRASES = {
    basis.BasisKind.DOCUMENT: "by documents",
    basis.BasisKind.CONVENTION: "by conventions of Kubernetes",
    basis.BasisKind.DECISION: "by decision",
    basis.BasisKind.CODE: "by upstream's code",
}
_FOLDER = re.compile(r"^(?:'[^']*/|\S*/)(?=grove-conformance\b)|(?<=grove-conformance)'(?= )")
"""A pattern for the program's folder on the machine of the run, which readers of a page do not have, and for its
quotes."""
VERDICT_CLASSES = {
    RunVerdict.CONFORMANT: "good",
    RunVerdict.EXCEPT_EXPECTED: "good",
    RunVerdict.NOT_CONFORMANT: "bad",
    RunVerdict.STALE: "bad",
}
"""The CSS class of each verdict; other verdicts are unsure."""


def render(report: Report, folder: Path) -> str:
    """Return the page of a run. `folder` is the folder of the run."""
    run_causes = causes.find_causes(report, defects.rows())
    for lines, failures in SIZES:
        values = _values(report, run_causes, folder, lines, failures)
        text = rendered(TEMPLATE, values, styles=["page.css"], scripts=["page.js"])
        if len(text.encode("utf-8", "replace")) <= MAX_BYTES:
            break
    return text


def _values(report: Report, run_causes: list[Cause], folder: Path, lines: int, failures: int) -> Values:
    results = [result for result in report.results if result.reason not in COUNTED_REASONS]
    numbers: dict[str, list[int]] = {}
    for number, cause in enumerate(run_causes, 1):
        for result in cause.results:
            numbers.setdefault(result.requirement.id, []).append(number)
    facts_of_run = _run_facts(report, results)
    reasons = {result.reason for result in results if result.outcome is Outcome.HARNESS_ERROR}
    is_successful = report.verdict is RunVerdict.PARTIAL and report.has_judged_selection
    return {
        "kind": "good" if is_successful else VERDICT_CLASSES.get(report.verdict, "unsure"),
        "headline": terminal.sentence(report) + terminal.seeds_phrase(report),
        "counts": tally.counts(results, report),
        "marks": {str(outcome): mark for outcome, mark in MARKS.items()} | {tally.UNDECIDED: MARKS[Outcome.FAILED]},
        "about": {label: text for label, text in facts_of_run.items() if label in MAIN_FACTS},
        "more": {label: text for label, text in facts_of_run.items() if label not in MAIN_FACTS},
        "faults": [fault for fault in report.faults if fault not in reasons],
        "causes": [_cause(number, cause, report, folder) for number, cause in enumerate(run_causes, 1)],
        "in_full": MAX_FULL_CAUSES,
        "profiles": [
            {
                "name": p.name,
                "text": p.text,
                "verdict": str(p.verdict),
                "counts": tally.counts(results_of_profile, report),
            }
            for p in report.profiles
            if (results_of_profile := [r for r in p.results if r.reason not in COUNTED_REASONS])
        ],
        "groups": [
            {"outcome": word, "rows": rows}
            for word in tally.ORDER
            if (rows := list(_rows(word, results, report, numbers, folder, lines, failures)))
        ],
        "left_out": len(report.results) - len(results),
        "timed": [
            {"scene": event.scene, "rows": [(phase, name, f"{at:.1f}") for phase, name, at in _markers(event.markers)]}
            for event in report.timed
        ],
        "rates": [str(rate) for rate in repetitions.rates(report)],
    }


def _run_facts(report: Report, results: Collection[Result]) -> dict[str, str]:
    bases = Counter(result.requirement.basis for result in results)
    facts_of_run = about.run_facts(report) | {
        "basis": ", ".join(f"{bases[kind]} {BASIS_PHRASES[kind]}" for kind in BASIS_PHRASES if bases[kind]),
        "started": f"{document.instant(report.started.wall)}, took {facts.duration(report.seconds)}",
        "workers": str(report.started.workers),
        **dict(sorted(report.started.environment.items())),
    }
    return {label: text for label, text in facts_of_run.items() if label not in ("verdict", "profiles")}


def _cause(number: int, cause: Cause, report: Report, folder: Path) -> Values:
    first_failure = next((failure for failure in cause.failures if failure.bundle), cause.failures[0])
    row = defects.rows()[cause.defects[0]] if cause.defects else None
    return {
        "number": number,
        "title": one_line(cause.title),
        "failed": [result.requirement.id for result in cause.failed],
        "held_up": [result.requirement.id for result in cause.held_up],
        "decides": any(result.requirement.decides for result in cause.failed),
        "sentence": facts.sentence(first_failure.what, first_failure.expected, first_failure.observed),
        "like": f"{row.id}: {defects.fact(row)}" if row else "",
        **_evidence(first_failure, report, folder),
    }


def _rows(
    word: str,
    results: Collection[Result],
    report: Report,
    numbers: Mapping[str, list[int]],
    folder: Path,
    lines: int,
    failures: int,
) -> Iterator[Values]:
    """Yield the requirements whose outcome has this word, sorted by their first cause and by id."""
    matching = [result for result in results if tally.word(result, report) == word]
    for result in sorted(matching, key=lambda r: (numbers.get(r.requirement.id, [len(results)])[0], r.requirement.id)):
        entry = result.requirement
        yield {
            "id": entry.id,
            "level": str(entry.level),
            "decides": entry.decides,
            "profile": entry.profile,
            "text": entry.text,
            "title": entry.violation if result.failures and entry.violation else entry.text,
            "seed": entry.seed,
            "says": basis.summary(entry),
            "otherwise": basis.contradictions(entry),
            "reason": result.reason,
            "causes": numbers.get(entry.id, []),
            "tests": result.tests[:MAX_TESTS],
            "more_tests": len(result.tests[MAX_TESTS:]),
            "failures": [_failure(failure, report, folder, lines) for failure in result.failures[:failures]],
            "more": len(result.failures[failures:]),
            "bundle": _link(result.bundle),
        }


def _failure(failure: Failure, report: Report, folder: Path, lines: int) -> Values:
    is_compared, observed = failure.expected not in (None, failure.what), failure.observed
    return {
        "test": failure.test,
        "what": failure.what,
        "compared": is_compared,
        "lines": diff.diff_lines(failure.expected, observed, lines)
        if is_compared
        else diff.plain_lines(observed, lines),
        "since": facts.moment(failure),
        **_evidence(failure, report, folder),
    }


def _evidence(failure: Failure, report: Report, folder: Path) -> Values:
    """Return the paths of a failure's evidence, and the command that runs its test again."""
    has_picture = bool(failure.bundle) and (folder / failure.bundle / PICTURE).is_file()
    return {
        "bundle": _link(failure.bundle),
        "picture": _link(failure.bundle, PICTURE) if has_picture else "",
        "command": _FOLDER.sub("", terminal.reproduction(report, failure.test)),
    }


def _link(*parts: str) -> str:
    """Return the relative URL of a file of the run."""
    return quote("/".join(parts)) if parts[0] else ""


def _markers(phases: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, str, float]]:
    for phase, times in phases.items():
        yield from ((phase, name, at) for name, at in times.items())
