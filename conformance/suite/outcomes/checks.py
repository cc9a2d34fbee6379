"""The checks of a running test, by requirement id. Needs no cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Literal

from conformance.errors import HarnessError
from conformance.evidence.values import one_line, to_json_types
from conformance.history import redaction
from conformance.history.record import Record
from conformance.suite.outcomes import ledger

Ids = str | Sequence[str]

Moment = Record | float | None
"""The moment at which a check went wrong: the first record that shows it, or a time in seconds of the history."""


class Absent(Enum):
    """A placeholder for the value of an object that does not exist."""

    ABSENT = "(no such object)"


ABSENT = Absent.ABSENT


class CheckFailed(AssertionError):
    """The implementation failed, and the test ends here. The ledger already contains all details. The class is an
    AssertionError because Allure and other tools use that to distinguish failures from errors of the test."""


class Blocked(AssertionError):
    """The test could not judge anything. `cause` says whether the implementation is at fault, and `step` names the step
    of the scene that was not reached."""

    def __init__(self, reason: str, cause: ledger.Cause, step: str = "") -> None:
        self.reason, self.cause, self.step = reason, cause, step
        super().__init__(reason)


class Checks:
    """The outcomes of one test. Each outcome is passed to `write` immediately; `finish` raises the exception with which
    the test must end.

    Once all requirements in `decisive_ids` (if any) have failed, the test ends, because its result can no longer
    change. `selected` are the declared ids that the run selects (default: all); only these need an outcome.
    """

    def __init__(
        self,
        test: str,
        declared: Sequence[str],
        write: Callable[[ledger.Check], None],
        decisive_ids: AbstractSet[str] = frozenset(),
        selected: AbstractSet[str] = frozenset(),
    ) -> None:
        self.test, self.declared, self._write, self._decisive_ids = test, tuple(declared), write, decisive_ids
        self.selected = tuple(id for id in self.declared if not selected or id in selected)
        self.recorded: list[ledger.Check] = []
        self.blocked = False
        """Whether the test ends because the implementation can no longer be judged, although no check has failed."""
        self.require_reliable: Callable[[bool], None] = lambda thoroughly: None
        """Called before a check is recorded; raises HarnessError if the cluster is unreliable. The argument is True
        before a failure is recorded, and requests a thorough check, which also finds problems that have just
        started."""

    @property
    def failures(self) -> list[ledger.Check]:
        """Return the checks that did not pass."""
        return [c for c in self.recorded if c.outcome != "passed"]

    @property
    def is_decided(self) -> bool:
        """Return whether all selected requirements have failed, so that the rest of the test need not run."""
        return bool(self._decisive_ids) and self._decisive_ids <= {c.id for c in self.recorded if c.outcome == "failed"}

    def expect(self, id: str, description: str, expected: object, actual: object, *, at: Moment = None) -> bool:
        """Record whether `actual` equals `expected`. The test continues in both cases.

        A value that is ABSENT blocks the check (in a mapping of many objects, only for the absent ones): an object that
        does not exist is not wrong. A separate check judges whether it must exist.
        """
        if actual is ABSENT:
            self._record(id, description, "unknown", to_json_types(expected), ABSENT.value, at)
            return False
        if isinstance(expected, Mapping) and isinstance(actual, Mapping):
            absent_keys = [key for key, value in actual.items() if value is ABSENT]
            if absent_keys:
                self._record(id, description, "unknown", None, f"there is no {', '.join(map(str, absent_keys))}", at)
                expected, actual = (
                    {k: v for k, v in side.items() if k not in absent_keys} for side in (expected, actual)
                )
            if absent_keys and not expected:
                return False
        expected_plain, actual_plain = to_json_types(expected), to_json_types(actual)
        self._record(
            id, description, "passed" if expected_plain == actual_plain else "failed", expected_plain, actual_plain, at
        )
        return expected_plain == actual_plain

    def passed(self, ids: Ids, description: str, *, at: Moment = None) -> None:
        """Record that requirements have passed."""
        for id in _ids(ids):
            self._record(id, description, "passed", None, None, at)

    def holds(
        self, id: str, description: str, verdict: bool | None, actual: object = None, *, at: Moment = None
    ) -> bool:
        """Record a three-valued result. None (unknown) does not count as a pass."""
        outcome: Literal["passed", "failed", "unknown"] = (
            "unknown" if verdict is None else "passed" if verdict else "failed"
        )
        self._record(id, description, outcome, None if verdict else "holds at every moment", to_json_types(actual), at)
        return verdict is True

    def invariant(self, id: str, statement: str, verdict: bool | None, actual: object, *, at: Moment = None) -> None:
        """Record a result like `holds`, for a rule that is judged in every test. A test in which the rule is broken
        need not have declared it."""
        if id not in self.declared:
            self.declared = (*self.declared, id)
        self.holds(id, statement, verdict, actual, at=at)

    def record_doubt(self, id: str, error: HarnessError) -> None:
        """Ignore a broken rule if the machine was too slow for a verdict, as `error` says; but raise that error if the
        test has declared the rule."""
        if id in self.declared:
            raise error

    def fail(self, ids: Ids, description: str, expected: object, actual: object, *, at: Moment = None) -> CheckFailed:
        """Record failures, and return the exception with which the test must end."""
        for id in _ids(ids):
            self._record(id, description, "failed", to_json_types(expected), to_json_types(actual), at)
        return CheckFailed(f"{', '.join(_ids(ids))}: {description}: {one_line(redaction.value(to_json_types(actual)))}")

    def broken(self, description: str, expected: object, actual: object, *, at: Moment = None) -> Exception:
        """Return the exception with which a test ends if the implementation has made it impossible: it has rejected a
        write, does not start, or has deleted nodes. No requirement is judged in that case, but a run in which this
        happens is not conformant."""
        self.require_reliable(True)
        self.blocked = True
        return Blocked(
            f"{description}: {one_line(redaction.value(to_json_types(actual)))}", "implementation", description
        )

    def spoil(self, description: str, actual: object) -> None:
        """Record that another client has falsified the objects on which the test relies: none of its requirements count
        as passed, and only those with an observed failure count as failed."""
        for id in self.declared:
            if not any(check.id == id and check.outcome == "failed" for check in self.recorded):
                self.holds(id, description, None, actual)

    def open(self) -> tuple[str, ...]:
        """Return the declared ids that have no outcome so far."""
        judged_ids = {c.id for c in self.recorded}
        return tuple(id for id in self.declared if id not in judged_ids)

    def finish(self) -> None:
        """End a test that ran to its end. Raises CheckFailed if a check did not pass, or HarnessError if a selected id
        was not judged."""
        if self.failures:
            raise CheckFailed("; ".join(f"{c.id}: {c.what}: {one_line(c.seen)}" for c in self.failures))
        if missing_ids := [id for id in self.open() if id in self.selected]:
            raise HarnessError(f"the test ended without an outcome for {', '.join(missing_ids)}", where=self.test)

    def _record(
        self,
        id: str,
        description: str,
        outcome: Literal["passed", "failed", "unknown"],
        expected: object,
        actual: object,
        at: Moment,
    ) -> None:
        if id not in self.declared:
            raise HarnessError(f"the test judges {id} without declaring it", where=self.test)
        self.require_reliable(outcome != "passed")
        expected, actual = redaction.value(expected), redaction.value(actual)
        moment, deviation = _moment(at)
        check = ledger.Check(
            test=self.test,
            id=id,
            what=description,
            outcome=outcome,
            expected=expected,
            seen=actual,
            at=moment,
            deviation=deviation if outcome == "failed" else None,
        )
        self.recorded.append(check)
        self._write(check)
        if outcome == "failed" and self.is_decided:
            raise CheckFailed(f"{id}: {description}: {one_line(actual)}")


def _ids(ids: Ids) -> Sequence[str]:
    return (ids,) if isinstance(ids, str) else ids


def _moment(at: Moment) -> tuple[float | None, ledger.Deviation | None]:
    """Return the time of a moment and, if the moment is a record, its deviation."""
    if not isinstance(at, Record):
        return at, None
    return round(at.at, 3), ledger.Deviation(f"{at.resource}/{at.name}", at.revision)
