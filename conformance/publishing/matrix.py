"""The matrix of the profiles and requirements that each implementation fulfills. Pure.

The runs of one version are merged: a requirement failed if it failed in any run; otherwise it has the outcome of the
first run that judged it. A version has the roles that the suite did not have to supply in any of its runs. Operators
and gang schedulers are judged by different requirements, so each role has its own table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from conformance.implementation.descriptor import Role
from conformance.publishing.published import PublishedImplementation, PublishedUpgrade, PublishedVersion
from conformance.report.model import Outcome, RunVerdict
from conformance.report.recorded import FAILED, Run
from conformance.suite.registry.requirement import Registry, Requirement

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
    """One version of an implementation, judged by the requirements that bind its `roles`."""

    implementation: PublishedImplementation
    version: PublishedVersion
    roles: frozenset[str]
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
        profile: tuple(entry for entry in registry.requirements.values() if entry.profile == profile)
        for profile in registry.profiles
    }
    profiles = {profile: entries for profile, entries in profiles.items() if entries}
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
    return Column(implementation, version, roles, outcomes, cells)


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
