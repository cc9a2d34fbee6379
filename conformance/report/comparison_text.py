"""A comparison of two reports as text for a terminal, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.evidence.values import brief
from conformance.report.comparison import LOSSES, REGRESSIONS, Change, Changed, Comparison
from conformance.report.markdown import cell, code
from conformance.report.model import NO_VERDICT
from conformance.report.terminal import clean

MOST = 60_000
"""Characters of Markdown: a comment of GitHub has at most 65,536."""
MOST_WHY = 400
"""Characters of what was seen of a requirement."""
_WORSE = REGRESSIONS | LOSSES | {Change.FAILING}
_ONE_RUN = "each time is from one run: `grove-conformance scale compare` tells whether it is slower"


def headline(found: Comparison) -> str:
    """Return what was found, in one line."""
    if not found.common:
        return "nothing to compare: no requirement was judged in both reports"
    counts = found.counts
    said = ", ".join(f"{counts[change]} {change}" for change in Change if change in counts)
    word = "regression" if not REGRESSIONS.isdisjoint(counts) else "no regression"
    both = f"{found.common} requirement{'s' * (found.common != 1)} judged in both"
    undecided = "".join(f"; the {side} report has no verdict" for side in _undecided(found))
    return f"{word}: {said or 'nothing has changed'} ({both}{undecided})"


def _undecided(found: Comparison) -> list[str]:
    """Return which of the two reports have no verdict."""
    return [name for name, side in (("old", found.old), ("new", found.new)) if side.verdict in NO_VERDICT]


def text(found: Comparison) -> Iterator[str]:
    """Yield lines for a terminal."""
    yield f"old: {found.old.name}" + (f": {found.old.verdict}" if found.old.verdict else "")
    yield f"new: {found.new.name}" + (f": {found.new.verdict}" if found.new.verdict else "")
    for name, (old, new) in found.differing.items():
        yield f"{name} differs: {old or 'unknown'} → {new or 'unknown'}"
    for change in Change:
        if listed := found.of(change):
            yield f"\n{change}:"
        for each in listed:
            yield f"  {each.id} ({each.either.level}, {each.either.profile}): {each.either.text}"
            if change in _WORSE and (why := _why(each)):
                yield f"      {clean(why)}"
    if found.slower:
        yield f"\nslower ({_ONE_RUN}):"
    for marker in found.slower:
        yield f"  {marker.marker}: {marker.old:.1f} s → {marker.new:.1f} s"
    yield ""
    yield headline(found)


def markdown(found: Comparison) -> Iterator[str]:
    """Yield lines of Markdown, `MOST` characters or little more: of many changes, the worst are listed. What an
    implementation says stands in code spans, where nothing is markup."""
    left = MOST
    counts = found.counts
    mark = "❌" if not REGRESSIONS.isdisjoint(counts) else "⚠️" if found.exit or _undecided(found) else "✅"
    yield f"### {mark} Conformance: {headline(found)}"
    yield ""
    yield "| | old | new |"
    yield "|---|---|---|"
    rows = {"report": (found.old.name, found.new.name), "verdict": (found.old.verdict, found.new.verdict)}
    for name, pair in {**rows, **found.differing}.items():
        yield f"| {name} | {' | '.join(code(each) for each in pair)} |"
    for change in Change:
        if not (listed := found.of(change)):
            continue
        yield from ("", f"<details{' open' if change in _WORSE else ''}><summary>{change}: {len(listed)}</summary>", "")
        yield "| requirement | level | profile | what it says | why |"
        yield "|---|---|---|---|---|"
        count = 0
        for changed in listed:
            about = changed.either
            why = code(brief(_why(changed), MOST_WHY)) if change in _WORSE else ""
            row = f"| {changed.id} | {about.level} | {about.profile} | {cell(about.text)} | {why} |"
            left -= len(row)
            if left < 0:
                break
            count += 1
            yield row
        if count < len(listed):
            yield f"\n… and {len(listed) - count} more."
        yield from ("", "</details>")
    if found.slower:
        yield from ("", f"Slower ({_ONE_RUN}):", "", "| marker | old | new |", "|---|---|---|")
    for marker in found.slower:
        yield f"| {marker.marker} | {marker.old:.1f} s | {marker.new:.1f} s |"


def _why(each: Changed) -> str:
    return each.new.why if each.new is not None else "the new report does not have it"
