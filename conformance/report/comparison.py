"""Compare two reports: find the changes from the old report to the new one. Pure.

A comparison is about behavior, not expectations: an expected failure counts as failing, and a stale expectation passes
or fails as its checks did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from conformance.errors import Exit
from conformance.report.document import Document
from conformance.report.facts import sentence
from conformance.report.model import Outcome
from conformance.report.recorded import Run
from conformance.suite.registry.requirement import Registry

MIN_SLOWDOWN_FACTOR, MIN_SLOWDOWN_SECONDS = 1.5, 1.0
"""A marker counts as slower if it takes more than `MIN_SLOWDOWN_FACTOR` times as long, and more than
`MIN_SLOWDOWN_SECONDS` longer. The tolerance is large because each report has only one run."""


class RequirementChange(StrEnum):
    """The change of a requirement from the old report to the new one, worst first."""

    NEWLY_FAILING = "newly failing"
    NEWLY_BLOCKED = "newly blocked"
    NO_LONGER_CLAIMED = "no longer claimed"
    NO_LONGER_JUDGED = "no longer judged"
    FAILING = "failing (not judged before)"
    FIXED = "fixed"
    PASSING = "passing (not judged before)"


REGRESSIONS = frozenset({RequirementChange.NEWLY_FAILING, RequirementChange.NEWLY_BLOCKED})
LOSSES = frozenset({RequirementChange.NO_LONGER_CLAIMED, RequirementChange.NO_LONGER_JUDGED})
"""Changes of requirements that the old report has judged and the new one has not."""


@dataclass(frozen=True)
class RequirementResult:
    """A requirement in one report. `reason`: the first failed check, or the reason why the requirement was not
    judged."""

    outcome: Outcome
    fails: bool = False
    profile: str = ""
    level: str = ""
    text: str = ""
    reason: str = ""

    @property
    def holds(self) -> bool:
        """Return whether the requirement was judged and did not fail. A known limit of the specification does not count
        as a failure."""
        judged = (Outcome.PASSED, Outcome.STALE_EXPECTATION, Outcome.KNOWN_LIMIT)
        return self.outcome in judged and not self.fails


@dataclass(frozen=True)
class ComparedReport:
    """One of the two reports. `facts` describe the implementation, cluster and suite; `markers` are seconds by scene,
    phase and marker."""

    name: str
    verdict: str
    facts: Mapping[str, str]
    requirements: Mapping[str, RequirementResult]
    markers: Mapping[str, float]


@dataclass(frozen=True)
class ChangedRequirement:
    """A requirement that has changed."""

    id: str
    change: RequirementChange
    old: RequirementResult | None
    new: RequirementResult | None

    @property
    def latest(self) -> RequirementResult:
        """Return the requirement from the new report or, if it is missing there, from the old one."""
        judged = self.new or self.old
        assert judged is not None
        return judged


@dataclass(frozen=True)
class SlowerMarker:
    """A timing marker that took longer, in seconds."""

    marker: str
    old: float
    new: float


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison. `common`: the number of requirements that both reports judge. `differing`: facts that
    differ, with their old and new texts."""

    old: ComparedReport
    new: ComparedReport
    changes: tuple[ChangedRequirement, ...]
    slower: tuple[SlowerMarker, ...]
    common: int
    differing: Mapping[str, tuple[str, str]]

    def of(self, change: RequirementChange) -> list[ChangedRequirement]:
        """Return the requirements that have changed in this way."""
        return [changed for changed in self.changes if changed.change is change]

    @property
    def counts(self) -> dict[RequirementChange, int]:
        """Return the number of requirements for each change."""
        return dict(Counter(changed.change for changed in self.changes))

    @property
    def exit(self) -> Exit:
        """Return the exit code. Without a regression, the comparison is partial if the new report judges less than the
        old one."""
        if not self.common:
            return Exit.NOTHING_RAN
        if not REGRESSIONS.isdisjoint(self.counts):
            return Exit.REGRESSION
        return Exit.CONFORMANT if LOSSES.isdisjoint(self.counts) else Exit.PARTIAL


def compare(old: ComparedReport, new: ComparedReport) -> Comparison:
    """Compare two reports."""
    common_ids = old.requirements.keys() & new.requirements.keys()
    facts = {**dict.fromkeys(old.facts, ""), **dict.fromkeys(new.facts, "")}
    pairs = {name: (old.facts.get(name, ""), new.facts.get(name, "")) for name in facts}
    return Comparison(
        old,
        new,
        changes=tuple(
            sorted(_changes(old, new), key=lambda changed: (list(RequirementChange).index(changed.change), changed.id))
        ),
        slower=tuple(_slower_markers(old.markers, new.markers)),
        common=sum(_is_judged(old.requirements[id]) and _is_judged(new.requirements[id]) for id in common_ids),
        differing={name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
    )


def compared_report(content: Document, name: str) -> ComparedReport:
    """Return a report as one side of a comparison."""
    verdict, run = content["verdict"], content["run"]
    implementation = verdict["implementation"]
    facts = {
        "implementation": f"{implementation['name']} {implementation['version']}",
        "contract": " ".join(filter(None, (implementation.get("line"), implementation.get("release")))),
        "kubernetes": run["environment"].get("kubernetes", ""),
        "suite": f"{verdict['suite']['version']} ({verdict['suite']['digest'][:19]})",
    }
    return ComparedReport(
        name,
        verdict["result"],
        facts,
        {entry["id"]: _judged(entry) for entry in verdict["requirements"]},
        {
            f"{timed['scene']} {phase['name']}/{marker}": seconds
            for timed in run.get("markers", ())
            for phase in timed["phases"]
            for marker, seconds in phase["markers"].items()
        },
    )


def of_record(run: Run, registry: Registry, name: str) -> ComparedReport:
    """Return a recorded run as one side of a comparison. The profile, level and text of requirements come from the
    registry, if it still has them."""
    facts = {
        "implementation": f"{run.implementation} {run.version}",
        "kubernetes": run.environment.get("kubernetes", ""),
        "suite": run.suite,
    }
    requirements = {}
    for id, outcome in run.outcomes.items():
        fails = outcome in (Outcome.FAILED, Outcome.EXPECTED_FAILURE)
        entry = registry.requirements.get(id)
        about = (entry.profile, str(entry.level), entry.text) if entry is not None else ()
        requirements[id] = RequirementResult(outcome, fails, *about)
    return ComparedReport(name, "", facts, requirements, {})


def _judged(entry: Mapping[str, Any]) -> RequirementResult:
    reason = entry.get("reason", "")
    if failures := entry.get("failures"):
        first = failures[0]
        reason = sentence(first["what"], first["expected"], first["seen"])
    outcome = Outcome(entry["outcome"])
    fails = bool(failures) and outcome is not Outcome.KNOWN_LIMIT
    return RequirementResult(outcome, fails, entry["profile"], entry["level"], entry["text"], reason)


def _is_judged(judged: RequirementResult) -> bool:
    return judged.holds or judged.fails


def _changes(old: ComparedReport, new: ComparedReport) -> Iterator[ChangedRequirement]:
    same_suite = old.facts.get("suite") == new.facts.get("suite")
    for id in old.requirements.keys() | new.requirements.keys():
        old_result, new_result = old.requirements.get(id), new.requirements.get(id)
        if new_result is None and not same_suite:
            continue  # the suite of the new report may not have the requirement
        change = _change(old_result, new_result)
        if change is not None:
            yield ChangedRequirement(id, change, old_result, new_result)


def _change(old: RequirementResult | None, new: RequirementResult | None) -> RequirementChange | None:
    was_judged = old is not None and _is_judged(old)
    if new is None:
        return RequirementChange.NO_LONGER_JUDGED if was_judged else None
    if new.fails:
        return (
            RequirementChange.FAILING
            if not was_judged
            else RequirementChange.NEWLY_FAILING
            if old is not None and old.holds
            else None
        )
    if new.holds:
        return (
            RequirementChange.PASSING
            if not was_judged
            else RequirementChange.FIXED
            if old is not None and old.fails
            else None
        )
    if new.outcome is Outcome.NOT_CLAIMED:
        was_claimed = old is not None and old.outcome not in (Outcome.NOT_CLAIMED, Outcome.NOT_RUN)
        return RequirementChange.NO_LONGER_CLAIMED if was_claimed else None
    if not was_judged:
        return None
    is_blocked = new.outcome is Outcome.BLOCKED and old is not None and old.holds
    return RequirementChange.NEWLY_BLOCKED if is_blocked else RequirementChange.NO_LONGER_JUDGED


def _slower_markers(old: Mapping[str, float], new: Mapping[str, float]) -> Iterator[SlowerMarker]:
    for marker in sorted(old.keys() & new.keys()):
        old_seconds, new_seconds = old[marker], new[marker]
        if new_seconds > old_seconds * MIN_SLOWDOWN_FACTOR and new_seconds - old_seconds > MIN_SLOWDOWN_SECONDS:
            yield SlowerMarker(marker, old_seconds, new_seconds)
