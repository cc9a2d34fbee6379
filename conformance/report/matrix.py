"""The matrix: what the implementations fulfil of each profile, and of each requirement. Pure.

Several runs of one version count together: a requirement failed if it failed in any of them, and has the outcome of the
first that judged it otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from conformance.report.model import Outcome, RunVerdict
from conformance.report.published import Implementation, Upgrade, Version
from conformance.report.recorded import FAILED, Run
from conformance.suite.registry.requirement import Registry, Requirement

UNJUDGED = frozenset({Outcome.NOT_RUN, Outcome.NOT_CLAIMED, Outcome.BLOCKED, Outcome.HARNESS_ERROR})
HOLDS = frozenset({Outcome.PASSED, Outcome.KNOWN_LIMIT, Outcome.STALE_EXPECTATION})
PODS_KEPT = "UPG-001"
"""The requirement that an upgrade restarts no pods."""


class Word(Enum):
    """What a cell says: the words, the mark that says the same, and the kind, which the color follows."""

    CONFORMANT = ("conformant", "✓", "good")
    EXCEPT_EXPECTED = ("conformant except expected failures", "~", "good")
    NOT_CONFORMANT = ("not conformant", "✗", "bad")
    PARTIAL = ("judged in part", "◐", "unsure")
    NOT_CLAIMED = ("not claimed", "–", "none")
    NOT_JUDGED = ("not judged yet", "·", "none")

    def __init__(self, words: str, mark: str, kind: str) -> None:
        self.words, self.mark, self.kind = words, mark, kind


@dataclass(frozen=True)
class Cell:
    """A profile of one version. `counts` has the outcomes that occur; `minor`: those that failed and decide nothing;
    `unknown`: requirements without an outcome."""

    word: Word
    counts: Mapping[Outcome, int]
    minor: int
    unknown: int

    @property
    def details(self) -> list[str]:
        """Return what is counted: `1 failed`, `2 failed (does not decide)`, `30 passed`, `5 not in its runs`."""
        major = {Outcome.FAILED: 0, **self.counts}
        major[Outcome.FAILED] -= self.minor
        found = [f"{number} {outcome}" for outcome, number in major.items() if number]
        found[bool(major[Outcome.FAILED]) : 0] = [f"{self.minor} failed (does not decide)"] if self.minor else []
        return [*found, *([f"{self.unknown} not in its runs"] if self.unknown else [])]


@dataclass(frozen=True)
class Column:
    """One version of an implementation."""

    implementation: Implementation
    version: Version
    outcomes: Mapping[str, Outcome]
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Matrix:
    """`profiles` have their requirements, in order of ids; `upgrades` the implementation that took over."""

    profiles: Mapping[str, tuple[Requirement, ...]]
    columns: tuple[Column, ...]
    upgrades: tuple[tuple[Implementation, Upgrade], ...]


def matrix(implementations: Sequence[Implementation], registry: Registry) -> Matrix:
    """Return the matrix of published implementations."""
    profiles = {
        profile: tuple(entry for entry in registry.requirements.values() if entry.profile == profile)
        for profile in registry.profiles
    }
    profiles = {profile: entries for profile, entries in profiles.items() if entries}
    columns = [_column(each, version, profiles) for each in implementations for version in each.versions]
    return Matrix(
        profiles, tuple(columns), tuple((each, upgrade) for each in implementations for upgrade in each.upgrades)
    )


def merged(runs: Iterable[Run]) -> dict[str, Outcome]:
    """Return the outcome of each requirement: failed if it failed in any run, else that of the first that judged it."""
    found: dict[str, Outcome] = {}
    for run in runs:
        for id, outcome in run.outcomes.items():
            if outcome in FAILED or (found.setdefault(id, outcome) in UNJUDGED and outcome not in UNJUDGED):
                found[id] = outcome
    return found


def _column(
    implementation: Implementation, version: Version, profiles: Mapping[str, tuple[Requirement, ...]]
) -> Column:
    outcomes = merged(version.runs)
    told = {
        profile
        for run in version.runs
        for profile, verdict in run.profiles.items()
        if verdict == RunVerdict.NOT_CONFORMANT
    }
    cells = {profile: _cell(entries, outcomes, profile in told) for profile, entries in profiles.items()}
    return Column(implementation, version, outcomes, cells)


def _cell(entries: Sequence[Requirement], outcomes: Mapping[str, Outcome], told: bool) -> Cell:
    """`told`: a report says that the profile is not conformant, which something blocked may decide."""
    tally = Counter(outcomes[entry.id] for entry in entries if entry.id in outcomes)
    counts = {outcome: tally[outcome] for outcome in Outcome if tally[outcome]}
    must = {outcomes[entry.id] for entry in entries if entry.id in outcomes and entry.decides}
    minor = sum(not e.decides and outcomes.get(e.id) is Outcome.FAILED for e in entries)
    unknown = len(entries) - sum(counts.values())
    return Cell(_word(set(counts), must - {Outcome.NOT_CLAIMED}, told), counts, minor, unknown)


def _word(outcomes: set[Outcome], must: set[Outcome], told: bool) -> Word:
    if Outcome.FAILED in must or (told and Outcome.BLOCKED in must):
        return Word.NOT_CONFORMANT
    if not outcomes - UNJUDGED:
        return Word.NOT_CLAIMED if outcomes == {Outcome.NOT_CLAIMED} else Word.NOT_JUDGED
    if not must <= HOLDS | FAILED:
        return Word.PARTIAL
    return Word.EXCEPT_EXPECTED if Outcome.EXPECTED_FAILURE in must else Word.CONFORMANT
