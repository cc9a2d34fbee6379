"""The matrix as an HTML page, as an HTML fragment, and as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from conformance.pages import render
from conformance.publishing.matrix import PODS_KEPT_ID, CellWord, Column, Matrix, Table
from conformance.publishing.published import PublishedUpgrade
from conformance.report.markdown import cell, code
from conformance.report.marks import MARKS
from conformance.report.model import Outcome

PAGE_TEMPLATE, PART_TEMPLATE = (Path(__file__).parent / name for name in ("matrix.html", "matrix_part.html"))
STYLE = "matrix.css"
UPGRADE_PREFIX = "UPG-"


def page(matrix: Matrix) -> str:
    """Return the HTML page: one file that loads nothing from the network."""
    return render.render(PAGE_TEMPLATE, _values(matrix, lambda page: ""), styles=[STYLE])


def part(matrix: Matrix, link: Callable[[str], str]) -> str:
    """Return the matrix as a fragment for another site's page, including its style. `link` returns the URL of a
    findings page from its path in a description."""
    return render.fragment(PART_TEMPLATE, _values(matrix, link), styles=[STYLE])


def markdown(matrix: Matrix) -> str:
    """Return the table of profiles and versions, with the runs and the upgrades."""
    return "\n".join(_lines(matrix))


def summary(matrix: Matrix) -> str:
    """Return a table with one line for the newest version of each implementation: the profiles that it fulfills, the
    profiles that it does not fulfill, and the other profiles. Profiles that bind another role are left out."""
    lines = ["| implementation | ✓ conformant | ✗ not conformant | the other profiles |", "|---|---|---|---|"]
    for column in matrix.newest:
        profiles_by_word: dict[CellWord, list[str]] = {word: [] for word in CellWord}
        for profile, judged in column.cells.items():
            profiles_by_word[judged.word].append(profile)
        other_words = [
            f"{word.words}: {', '.join(profiles_by_word[word])}"
            for word in (CellWord.EXCEPT_EXPECTED, CellWord.PARTIAL)
            if profiles_by_word[word]
        ]
        other_words += [
            f"{len(profiles_by_word[word])} {word.words}"
            for word in (CellWord.NOT_CLAIMED, CellWord.NOT_JUDGED)
            if profiles_by_word[word]
        ]
        cells = (
            f"**{cell(column.implementation.title)}** {cell(column.version.title)}",
            *(", ".join(profiles_by_word[word]) or "–" for word in (CellWord.CONFORMANT, CellWord.NOT_CONFORMANT)),
            "; ".join(other_words) or "–",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def upgrade_result(upgrade: PublishedUpgrade) -> tuple[CellWord, str]:
    """Return whether an upgrade kept all pods running, and the other results of its run."""
    if upgrade.run is None:
        return CellWord.NOT_JUDGED, ""
    outcomes = {id: outcome for id, outcome in upgrade.run.outcomes.items() if id.startswith(UPGRADE_PREFIX)}
    judged = {id: outcome for id, outcome in outcomes.items() if outcome not in (Outcome.NOT_RUN, Outcome.NOT_CLAIMED)}
    passed = sum(outcome is Outcome.PASSED for outcome in judged.values())
    remaining = (f"{id} {outcome}" for id, outcome in sorted(judged.items()) if outcome is not Outcome.PASSED)
    details = ", ".join((*([f"{passed} passed"] if passed else ()), *remaining))
    pods_kept = judged.get(PODS_KEPT_ID)
    if pods_kept is Outcome.PASSED:
        return CellWord.CONFORMANT, details
    return (CellWord.NOT_CONFORMANT if pods_kept is Outcome.FAILED else CellWord.NOT_JUDGED), details


def _values(matrix: Matrix, link: Callable[[str], str]) -> dict[str, object]:
    return {
        "matrix": matrix,
        "words": list(CellWord),
        "marks": MARKS,
        "upgrades": [(*pair, upgrade_result(pair[1])) for pair in matrix.upgrades],
        "runs": _runs,
        "link": link,
    }


def _runs(column: Column) -> Iterator[str]:
    """Yield one line for each run of a version: its date, Kubernetes version, suite and supplied roles."""
    for run in column.version.runs:
        kubernetes = run.environment.get("kubernetes", "?")
        supplied = "".join(f", {role} by {name}" for role, name in sorted(run.supplied.items()))
        yield f"{run.date}, Kubernetes {kubernetes}, suite {run.suite[:26]}…){supplied}"


def _lines(matrix: Matrix) -> Iterator[str]:
    for table in matrix.tables:
        yield from (f"**{table.title}**", "", *_table(table, table.newest), "")
        if table.older:
            yield from ('<details markdown="1"><summary>Other versions</summary>', "", *_table(table, table.older), "")
            yield from ("</details>", "")
    yield "; ".join(f"{word.mark} {word.words}" for word in CellWord if word.mark) + "."
    yield ""
    for column in matrix.columns:
        yield f"- **{cell(column.implementation.title)}, {cell(column.version.title)}**: " + "; ".join(_about(column))
    if matrix.upgrades:
        yield from ("", "| takes over from | to | pods kept | what was judged |", "|---|---|---|---|")
    for implementation, upgrade in matrix.upgrades:
        word, details = upgrade_result(upgrade)
        pods_kept = {CellWord.CONFORMANT: "✓ yes", CellWord.NOT_CONFORMANT: "✗ no"}.get(
            word, f"{word.mark} {word.words}"
        )
        notes = "; ".join(filter(None, (details, *map(_link, upgrade.findings))))
        target = f"{cell(implementation.title)} {cell(upgrade.target)}"
        yield f"| {cell(upgrade.source)} | {target} | {pods_kept} | {notes} |"


def _table(table: Table, columns: Sequence[Column]) -> Iterator[str]:
    titles = (f"{cell(c.implementation.title)}<br>{cell(c.version.title)}" for c in columns)
    yield f"| profile | {' | '.join(titles)} |"
    yield "|---|" + "---|" * len(columns)
    yield f"| contract | {' | '.join(code(column.version.contract) or '–' for column in columns)} |"
    for profile in table.profiles:
        yield f"| {profile} | " + " | ".join(_cell(column, profile) for column in columns) + " |"


def _cell(column: Column, profile: str) -> str:
    judged = column.cells[profile]
    if judged.word in (CellWord.NOT_CLAIMED, CellWord.NOT_JUDGED, CellWord.OTHER_ROLE):
        return judged.word.mark
    return f"{judged.word.mark} {', '.join(judged.details)}"


def _about(column: Column) -> Iterator[str]:
    version = column.version
    yield from map(cell, _runs(column)) if version.runs else ("not judged yet",)
    if version.note:
        yield cell(version.note)
    yield from map(_link, version.findings)


def _link(page: str) -> str:
    return f"[findings]({page})"
