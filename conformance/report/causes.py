"""Group failures by cause, and rank the causes by the number of requirements that they affect. Pure.

A failed requirement has one cause, even if several of its checks failed. Texts are never compared. Two failed
requirements have the same cause if

- they cite the same defect of the specification, and more of the requirements that cite it failed than passed,
- in the same history, they first deviate at the same record, or the same check failed with the same values,
- a process of the implementation ended in the same way, or the implementation has done nothing at all,
- the same installed webhook configurations had been removed by that time.

Requirements that were not judged because such a failure ended their test are held up by the failure's cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from conformance.implementation.output import TAIL_PREFIX
from conformance.report.model import Failure, Outcome, Report, Result
from conformance.suite.registry.selection import INVARIANT

NEAREST_PREFIX, TIMEOUT_PREFIX = "nearest: ", "not seen within "
_GENERAL_PREFIXES = (INVARIANT, "LOAD-")
"""Id prefixes of requirements about any history, and about large sets."""


@dataclass
class Cause:
    """The common cause of failed requirements, with the requirements that could not be judged because of it."""

    failed: list[Result]
    """The failed requirements; the first one provides the title of the cause."""
    held_up: list[Result] = field(default_factory=list)
    defects: tuple[str, ...] = ()
    """The ids of specification defects that explain failures of these requirements, most frequent first."""

    @property
    def results(self) -> list[Result]:
        """Return the results that failed or were held up."""
        return [*self.failed, *self.held_up]

    @property
    def failures(self) -> list[Failure]:
        """Return the distinct failures; several requirements may share one."""
        distinct_failures: dict[bytes, Failure] = {}
        for result in self.failed:
            for failure in result.failures:
                distinct_failures.setdefault(msgspec.json.encode(replace(failure, at=None, deviation=None)), failure)
        return list(distinct_failures.values())

    @property
    def tests(self) -> list[str]:
        """Return the tests in which the failures occurred."""
        return sorted({failure.test for failure in self.failures})

    @property
    def title(self) -> str:
        """Return a one-line description of what is wrong."""
        leading_result = self.failed[0]
        end_reason = next(
            (line for failure in leading_result.failures if (line := failure.removed or stop_reason(failure.observed))),
            "",
        )
        return end_reason or leading_result.requirement.violation or leading_result.requirement.text

    @property
    def weight(self) -> tuple[int, int]:
        """Return the number of affected requirements that decide, and of all affected requirements, for ranking."""
        return sum(result.requirement.decides for result in self.results), len(self.results)


def find_causes(report: Report, defects: Collection[str] = ()) -> list[Cause]:
    """Return the causes of all unexpected failures, sorted by the number of affected requirements. `defects` are the
    ids of the specification's rows that describe defects."""
    failed = {
        result.requirement.id: result
        for result in report.results
        if result.outcome in (Outcome.FAILED, Outcome.STALE_EXPECTATION) and result.failures
    }
    scores = _scores(report.results, failed, defects)
    groups = _Groups(failed)
    for ids in [*_by_defect(failed, scores), *_by_event(failed.values())]:
        groups.join(ids)
    causes = [_cause([failed[id] for id in ids], scores) for ids in groups.all()]
    cause_by_end = {key: cause for cause in causes for result in cause.failed for key in _end_keys(result)}
    cause_by_stop = {
        line: cause for cause in causes for failure in cause.failures if (line := _stop_reason_without_log(failure))
    }
    for result in report.results:
        if result.outcome is Outcome.BLOCKED:
            causes_by_check = [cause_by_end[end_key] for end_key in result.ended_by if end_key in cause_by_end]
            for cause in causes_by_check or [cause for line, cause in cause_by_stop.items() if line in result.reason]:
                if result not in cause.held_up:
                    cause.held_up.append(result)
    return sorted(causes, key=lambda cause: cause.weight, reverse=True)


def nearest_miss(observed: object) -> str:
    """Return the nearest miss of a wait that timed out, or the event that ended the wait (a process that died); empty
    if `observed` is not the text of a wait."""
    lines = observed.splitlines() if isinstance(observed, str) else []
    return stop_reason(observed) or next(
        (line.removeprefix(NEAREST_PREFIX) for line in lines if line.startswith(NEAREST_PREFIX)), ""
    )


def stop_reason(observed: object) -> str:
    """Return the reason why a wait could not succeed: a process has ended, or the implementation does nothing. Empty if
    there is no such reason."""
    lines = observed.splitlines() if isinstance(observed, str) else []
    timeout_line = next((number for number, line in enumerate(lines) if line.startswith(TIMEOUT_PREFIX)), None)
    return lines[0] if timeout_line else ""


def _cause(results: list[Result], scores: Mapping[str, tuple[int, int]]) -> Cause:
    ordered_results = sorted(results, key=_leading_order)
    citations = Counter(row for result in ordered_results for row in result.requirement.source if row in scores)
    ranked_rows = sorted(citations, key=lambda row: (-citations[row], scores[row][1]))  # fewest passes first if equal
    return Cause(ordered_results, defects=tuple(ranked_rows))


def _leading_order(result: Result) -> tuple[bool, bool, str]:
    """Return a sort key that puts first the requirements that describe a cause best: MUSTs, then requirements about
    specific scenes."""
    entry = result.requirement
    return not entry.decides, entry.id.startswith(_GENERAL_PREFIXES), entry.id


def _scores(results: Iterable[Result], failed: Collection[str], defects: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return, for each defect, how many of the requirements that cite it failed and passed."""
    scores: dict[str, tuple[int, int]] = {}
    for result in results:
        for row in set(result.requirement.source).intersection(defects):
            failed_count, passed_count = scores.get(row, (0, 0))
            scores[row] = (
                failed_count + (result.requirement.id in failed),
                passed_count + (result.outcome is Outcome.PASSED),
            )
    return scores


def _by_defect(failed: Mapping[str, Result], scores: Mapping[str, tuple[int, int]]) -> list[list[str]]:
    """Return groups of requirements that fail because of the same defect. Each requirement counts for only one defect,
    the one that explains most failures, so that a requirement that cites several defects does not merge their
    groups."""
    remaining = dict(failed)
    groups = []
    while remaining:
        ids_by_row = {
            row: [id for id, result in remaining.items() if row in result.requirement.source]
            for row, (failed_count, passed_count) in scores.items()
            if failed_count > passed_count
        }
        row = min(ids_by_row, key=lambda row: (-len(ids_by_row[row]), scores[row][1], row), default=None)
        if row is None or len(ids_by_row[row]) < 2:
            break
        groups.append(ids_by_row[row])
        remaining = {id: result for id, result in remaining.items() if id not in ids_by_row[row]}
    return groups


def _by_event(failed: Iterable[Result]) -> list[list[str]]:
    """Return groups of requirements that fail because of the same event: a record, a check, or the end of a process."""
    ids_by_event: dict[Hashable, list[str]] = {}
    for result in failed:
        for event in {event for failure in _first_deviations(result.failures) for event in _events(failure)}:
            ids_by_event.setdefault(event, []).append(result.requirement.id)
    return list(ids_by_event.values())


def _first_deviations(failures: Iterable[Failure]) -> list[Failure]:
    """Return the failures, without those that deviate at a later record than another failure in the same history,
    because they may be its consequences."""
    first_revision: dict[str, int] = {}
    all_failures = list(failures)
    for failure in all_failures:
        if failure.deviation is not None:
            revision = first_revision.setdefault(failure.history, failure.deviation.revision)
            first_revision[failure.history] = min(revision, failure.deviation.revision)
    return [f for f in all_failures if f.deviation is None or f.deviation.revision == first_revision[f.history]]


def _events(failure: Failure) -> list[Hashable]:
    values = msgspec.json.encode((failure.what, failure.expected, failure.observed))
    events: list[Hashable] = [(failure.history, values)]
    if failure.deviation is not None:
        events.append((failure.history, failure.deviation))
    if stop := failure.removed or _stop_reason_without_log(failure):
        events.append(stop)
    return events


def _stop_reason_without_log(failure: Failure) -> str:
    """Return the reason why a wait could not succeed (a process has ended, or the implementation does nothing), without
    the log tail."""
    return stop_reason(failure.observed).partition(TAIL_PREFIX)[0]


def _end_keys(result: Result) -> list[tuple[str, str]]:
    """Return the keys under which tests that ended early refer to the failures of a requirement."""
    check_keys = [(failure.test, f"{result.requirement.id} failed ({failure.what})") for failure in result.failures]
    return check_keys + [(failure.scene, failure.what) for failure in result.failures if failure.scene]


class _Groups:
    """A partition of ids into disjoint sets."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._group_by_id = {id: [id] for id in ids}

    def join(self, ids: Iterable[str]) -> None:
        """Merge the sets of these ids."""
        merged = list(dict.fromkeys(member for id in ids for member in self._group_by_id[id]))
        self._group_by_id |= dict.fromkeys(merged, merged)

    def all(self) -> list[list[str]]:
        """Return the sets."""
        return list({id(group): group for group in self._group_by_id.values()}.values())
