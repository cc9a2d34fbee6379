"""The matrix of the profiles and requirements that each implementation fulfills, and the matrix as an HTML page, as an
HTML fragment and as Markdown tables.

The runs of one version are merged: a requirement failed if it failed in any run; otherwise it has the outcome of the
first run that judged it. A version has the roles that the suite did not have to supply in any of its runs. Operators
and gang schedulers are judged by different requirements, so each role has its own table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from conformance.implementation.descriptor import Role
from conformance.pages import render
from conformance.publishing.published import PublishedImplementation, PublishedUpgrade, PublishedVersion
from conformance.report.markdown import cell, code
from conformance.report.marks import MARKS
from conformance.report.model import Outcome, RunVerdict
from conformance.report.recorded import FAILED, Run
from conformance.suite.registry.requirement import Registry, Requirement

PAGE_TEMPLATE, PART_TEMPLATE = (Path(__file__).parent / name for name in ("matrix.html", "matrix_part.html"))
STYLE = "matrix.css"
UPGRADE_PREFIX = "UPG-"
UNJUDGED_OUTCOMES = frozenset({Outcome.NOT_RUN, Outcome.NOT_CLAIMED, Outcome.BLOCKED, Outcome.HARNESS_ERROR})
HOLDING_OUTCOMES = frozenset({Outcome.PASSED, Outcome.KNOWN_LIMIT, Outcome.STALE_EXPECTATION})
TITLES = {Role.OPERATOR: "Operators", Role.GANG_SCHEDULER: "Gang schedulers"}
PODS_KEPT_ID = "UPG-001"
"""The requirement that an upgrade does not restart pods."""


class CellWord(Enum):
    """The text of a cell: the words, a mark with the same meaning, and the CSS class that determines the color."""

    CONFORMANT = ("conformant", "✓", "good")
    EXCEPT_EXPECTED = ("conformant except expected failures", "~", "good")
    NOT_CONFORMANT = ("not conformant", "✗", "bad")
    PARTIAL = ("judged in part", "◐", "unsure")
    NOT_CLAIMED = ("not claimed", "–", "none")
    NOT_JUDGED = ("not judged yet", "·", "none")
    OTHER_ROLE = ("binds another role", "", "none")

    def __init__(self, words: str, mark: str, kind: str) -> None:
        self.words, self.mark, self.kind = words, mark, kind


@dataclass(frozen=True)
class Cell:
    """The result of a version in one profile. `counts`: the number of requirements by outcome. `minor`: the number of
    failed requirements that do not decide. `unknown`: the number of requirements without an outcome."""

    word: CellWord
    counts: Mapping[Outcome, int]
    minor: int
    unknown: int

    @property
    def details(self) -> list[str]:
        """Return the counts as texts: `1 failed`, `2 failed (does not decide)`, `30 passed`, `5 not in its runs`."""
        major = {Outcome.FAILED: 0, **self.counts}
        major[Outcome.FAILED] -= self.minor
        parts = [f"{number} {outcome}" for outcome, number in major.items() if number]
        parts[bool(major[Outcome.FAILED]) : 0] = [f"{self.minor} failed (does not decide)"] if self.minor else []
        return [*parts, *([f"{self.unknown} not in its runs"] if self.unknown else [])]


@dataclass(frozen=True)
class Column:
    """One version of an implementation, judged by the requirements that bind its roles, or one of them."""

    implementation: PublishedImplementation
    version: PublishedVersion
    outcomes: Mapping[str, Outcome]
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """The versions with one role, and the profiles that bind that role. `newest` has one column for each
    implementation, `older` the other versions."""

    title: str
    profiles: tuple[str, ...]
    newest: tuple[Column, ...]
    older: tuple[Column, ...]


@dataclass(frozen=True)
class Matrix:
    """The results of all published implementations. `profiles` maps each profile to its requirements. `columns` judge
    each version in all its roles, `tables` in one role each. `upgrades` are pairs of the implementation that took over
    and the upgrade."""

    profiles: Mapping[str, tuple[Requirement, ...]]
    columns: tuple[Column, ...]
    tables: tuple[Table, ...]
    upgrades: tuple[tuple[PublishedImplementation, PublishedUpgrade], ...]

    @property
    def newest(self) -> tuple[Column, ...]:
        """Return one column for each implementation."""
        return _newest(self.columns)

    def bound_columns(self, profile: str) -> list[Column]:
        """Return the columns whose roles a profile binds."""
        return [column for column in self.columns if column.cells[profile].word is not CellWord.OTHER_ROLE]


def matrix(implementations: Sequence[PublishedImplementation], registry: Registry) -> Matrix:
    """Return the matrix of published implementations."""
    profiles = {
        profile: entries
        for profile in registry.profiles
        if (entries := tuple(entry for entry in registry.requirements.values() if entry.profile == profile))
    }
    versions = [(implementation, version) for implementation in implementations for version in implementation.versions]
    tables = (_table(role, title, versions, profiles) for role, title in TITLES.items())
    return Matrix(
        profiles,
        tuple(_column(*pair, _roles(pair[1]), profiles) for pair in versions),
        tuple(table for table in tables if table.newest),
        tuple((implementation, upgrade) for implementation in implementations for upgrade in implementation.upgrades),
    )


def merged_outcomes(runs: Iterable[Run]) -> dict[str, Outcome]:
    """Return the outcome of each requirement: the failure if it failed in any run, otherwise the outcome of the first
    run that judged it."""
    outcomes: dict[str, Outcome] = {}
    for run in runs:
        for id, outcome in run.outcomes.items():
            if outcome in FAILED or (
                outcomes.setdefault(id, outcome) in UNJUDGED_OUTCOMES and outcome not in UNJUDGED_OUTCOMES
            ):
                outcomes[id] = outcome
    return outcomes


def _table(
    role: Role,
    title: str,
    versions: Iterable[tuple[PublishedImplementation, PublishedVersion]],
    profiles: Mapping[str, tuple[Requirement, ...]],
) -> Table:
    columns = [_column(*pair, frozenset({role}), profiles) for pair in versions if role in _roles(pair[1])]
    newest = _newest(columns)
    bound_profiles = tuple(name for name, entries in profiles.items() if any(role in entry.roles for entry in entries))
    return Table(title, bound_profiles, newest, tuple(column for column in columns if column not in newest))


def _newest(columns: Iterable[Column]) -> tuple[Column, ...]:
    newest_by_name: dict[str, Column] = {}
    for column in columns:
        newest_by_name.setdefault(column.implementation.name, column)
    return tuple(newest_by_name.values())


def _roles(version: PublishedVersion) -> frozenset[str]:
    """Return the roles of a version: the roles that were not supplied by another implementation in any of its runs."""
    return frozenset(map(str, Role)) - {role for run in version.runs for role in run.supplied}


def _column(
    implementation: PublishedImplementation,
    version: PublishedVersion,
    roles: frozenset[str],
    profiles: Mapping[str, tuple[Requirement, ...]],
) -> Column:
    outcomes = merged_outcomes(version.runs)
    failed_profiles = {
        profile
        for run in version.runs
        for profile, verdict in run.profiles.items()
        if verdict == RunVerdict.NOT_CONFORMANT
    }
    cells = {
        profile: _cell(
            [entry for entry in entries if roles.intersection(entry.roles)], outcomes, profile in failed_profiles
        )
        for profile, entries in profiles.items()
    }
    return Column(implementation, version, outcomes, cells)


def _cell(entries: Sequence[Requirement], outcomes: Mapping[str, Outcome], has_failed: bool) -> Cell:
    """Return the cell for the requirements of a profile that bind a version. `has_failed`: a report says that the
    profile is not conformant, which may be due to a blocked requirement."""
    if not entries:
        return Cell(CellWord.OTHER_ROLE, {}, 0, 0)
    tally = Counter(outcomes[entry.id] for entry in entries if entry.id in outcomes)
    counts = {outcome: tally[outcome] for outcome in Outcome if tally[outcome]}
    must_outcomes = {outcomes[entry.id] for entry in entries if entry.id in outcomes and entry.decides}
    minor = sum(not e.decides and outcomes.get(e.id) is Outcome.FAILED for e in entries)
    unknown = len(entries) - sum(counts.values())
    if unknown and not must_outcomes:  # an invariant that is violated in the scenes of another profile says no more
        return Cell(CellWord.NOT_JUDGED, counts, minor, unknown)
    return Cell(_word(set(counts), must_outcomes - {Outcome.NOT_CLAIMED}, has_failed), counts, minor, unknown)


def _word(outcomes: set[Outcome], must_outcomes: set[Outcome], has_failed: bool) -> CellWord:
    if Outcome.FAILED in must_outcomes or (has_failed and Outcome.BLOCKED in must_outcomes):
        return CellWord.NOT_CONFORMANT
    if not outcomes - UNJUDGED_OUTCOMES:
        return CellWord.NOT_CLAIMED if outcomes == {Outcome.NOT_CLAIMED} else CellWord.NOT_JUDGED
    if not must_outcomes <= HOLDING_OUTCOMES | FAILED:
        return CellWord.PARTIAL
    return CellWord.EXCEPT_EXPECTED if Outcome.EXPECTED_FAILURE in must_outcomes else CellWord.CONFORMANT


# -- pages ----------------------------------------------------------------------------------------------------------


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
        yield from (f"**{table.title}**", "", *_markdown_table(table, table.newest), "")
        if table.older:
            yield from (
                '<details markdown="1"><summary>Other versions</summary>',
                "",
                *_markdown_table(table, table.older),
                "",
            )
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


def _markdown_table(table: Table, columns: Sequence[Column]) -> Iterator[str]:
    titles = (f"{cell(c.implementation.title)}<br>{cell(c.version.title)}" for c in columns)
    yield f"| profile | {' | '.join(titles)} |"
    yield "|---|" + "---|" * len(columns)
    yield f"| contract | {' | '.join(code(column.version.contract) or '–' for column in columns)} |"
    for profile in table.profiles:
        yield f"| {profile} | " + " | ".join(_markdown_cell(column, profile) for column in columns) + " |"


def _markdown_cell(column: Column, profile: str) -> str:
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
