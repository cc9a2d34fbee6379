"""A comparison of two reports as text for a terminal, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.evidence.values import one_line
from conformance.report.comparison import LOSSES, REGRESSIONS, ChangedRequirement, Comparison, RequirementChange
from conformance.report.markdown import cell, code
from conformance.report.model import NO_VERDICT
from conformance.report.terminal import clean

MAX_LENGTH = 60_000
"""Approximate maximum length of the Markdown in characters: a GitHub comment has at most 65,536."""
MAX_REASON_LENGTH = 400
"""Maximum length in characters of the failure of a requirement."""
_WORSE_CHANGES = REGRESSIONS | LOSSES | {RequirementChange.FAILING}
_ONE_RUN_NOTE = "each time is from one run: `grove-conformance scale compare` tells whether it is slower"


def headline(comparison: Comparison) -> str:
    """Return the result of the comparison as one line."""
    if not comparison.common:
        return "nothing to compare: no requirement was judged in both reports"
    counts = comparison.counts
    summary = ", ".join(f"{counts[change]} {change}" for change in RequirementChange if change in counts)
    word = "regression" if not REGRESSIONS.isdisjoint(counts) else "no regression"
    common = f"{comparison.common} requirement{'s' * (comparison.common != 1)} judged in both"
    undecided_note = "".join(f"; the {side} report has no verdict" for side in _reports_without_verdict(comparison))
    return f"{word}: {summary or 'nothing has changed'} ({common}{undecided_note})"


def _reports_without_verdict(comparison: Comparison) -> list[str]:
    """Return the names (`old`, `new`) of the compared reports that have no verdict."""
    return [name for name, side in (("old", comparison.old), ("new", comparison.new)) if side.verdict in NO_VERDICT]


def text(comparison: Comparison) -> Iterator[str]:
    """Yield lines for a terminal."""
    return map(clean, _lines(comparison))


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"old: {comparison.old.name}" + (f": {comparison.old.verdict}" if comparison.old.verdict else "")
    yield f"new: {comparison.new.name}" + (f": {comparison.new.verdict}" if comparison.new.verdict else "")
    for name, (old, new) in comparison.differing.items():
        yield f"{name} differs: {old or 'unknown'} → {new or 'unknown'}"
    for change in RequirementChange:
        if changed_requirements := comparison.of(change):
            yield f"\n{change}:"
        for changed in changed_requirements:
            yield f"  {changed.id} ({changed.latest.level}, {changed.latest.profile}): {changed.latest.text}"
            if change in _WORSE_CHANGES and (reason := _reason(changed)):
                yield f"      {reason}"
    if comparison.slower:
        yield f"\nslower ({_ONE_RUN_NOTE}):"
    for marker in comparison.slower:
        yield f"  {marker.marker}: {marker.old:.1f} s → {marker.new:.1f} s"
    yield ""
    yield headline(comparison)


def markdown(comparison: Comparison) -> Iterator[str]:
    """Yield lines of Markdown, in total at most little more than `MAX_LENGTH` characters: if there are many changes,
    only the worst are listed. Text from an implementation is put in code spans, where nothing is markup."""
    remaining = MAX_LENGTH
    counts = comparison.counts
    mark = (
        "❌"
        if not REGRESSIONS.isdisjoint(counts)
        else "⚠️"
        if comparison.exit or _reports_without_verdict(comparison)
        else "✅"
    )
    yield f"### {mark} Conformance: {headline(comparison)}"
    yield ""
    yield "| | old | new |"
    yield "|---|---|---|"
    rows = {
        "report": (comparison.old.name, comparison.new.name),
        "verdict": (comparison.old.verdict, comparison.new.verdict),
    }
    for name, pair in {**rows, **comparison.differing}.items():
        yield f"| {name} | {' | '.join(code(value) for value in pair)} |"
    for change in RequirementChange:
        if not (changed_requirements := comparison.of(change)):
            continue
        is_open = " open" if change in _WORSE_CHANGES else ""
        yield from (
            "",
            f"<details{is_open}><summary>{change}: {len(changed_requirements)}</summary>",
            "",
        )
        yield "| requirement | level | profile | what it says | why |"
        yield "|---|---|---|---|---|"
        count = 0
        for changed in changed_requirements:
            about = changed.latest
            reason = code(one_line(_reason(changed), MAX_REASON_LENGTH)) if change in _WORSE_CHANGES else ""
            row = f"| {changed.id} | {about.level} | {about.profile} | {cell(about.text)} | {reason} |"
            remaining -= len(row)
            if remaining < 0:
                break
            count += 1
            yield row
        if count < len(changed_requirements):
            yield f"\n… and {len(changed_requirements) - count} more."
        yield from ("", "</details>")
    if comparison.slower:
        yield from ("", f"Slower ({_ONE_RUN_NOTE}):", "", "| marker | old | new |", "|---|---|---|")
    for marker in comparison.slower:
        yield f"| {marker.marker} | {marker.old:.1f} s | {marker.new:.1f} s |"


def _reason(changed: ChangedRequirement) -> str:
    return changed.new.reason if changed.new is not None else "the new report does not have it"
