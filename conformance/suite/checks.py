"""What a running test judged, id by id. Needs no cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Literal

from conformance.errors import HarnessError
from conformance.evidence.values import brief, plain
from conformance.history import redaction
from conformance.suite import ledger

Ids = str | Sequence[str]


class Absent(Enum):
    """Stands for what an object has, where there is no such object."""

    ABSENT = "(no such object)"


ABSENT = Absent.ABSENT


class CheckFailed(AssertionError):
    """The test ends here: the implementation failed. Everything to tell is in the ledger already. An AssertionError,
    because by that Allure and others tell a failure of what is tested from one of the test."""


class Blocked(AssertionError):
    """The test could not judge anything. `cause` says whether the implementation is to blame."""

    def __init__(self, reason: str, cause: ledger.Cause) -> None:
        self.reason, self.cause = reason, cause
        super().__init__(reason)


class Checks:
    """Outcomes of one test. Writes each to `tell` at once; `finish` raises what the test has to end with.

    Once all of `enough` have failed (if it is given), the test ends: nothing that is still asked can be learned.
    `asked` are the declared ids that the run wants to know of (all, if it is not given): only these need an outcome.
    """

    def __init__(
        self,
        test: str,
        declared: Sequence[str],
        tell: Callable[[ledger.Check], None],
        enough: AbstractSet[str] = frozenset(),
        asked: AbstractSet[str] = frozenset(),
    ) -> None:
        self.test, self.declared, self._tell, self._enough = test, tuple(declared), tell, enough
        self.asked = tuple(id for id in self.declared if not asked or id in asked)
        self.made: list[ledger.Check] = []
        self.doubt: Callable[[bool], None] = lambda thoroughly: None
        """Called before a check is recorded. Raises HarnessError where the cluster cannot be relied on; `thoroughly`
        before a failure, for what has only just begun to be wrong."""

    @property
    def failures(self) -> list[ledger.Check]:
        return [c for c in self.made if c.outcome != "passed"]

    @property
    def settled(self) -> bool:
        """Whether all that was asked for has failed, so that the rest of the test need not run."""
        return bool(self._enough) and self._enough <= {c.id for c in self.made if c.outcome == "failed"}

    def expect(self, id: str, what: str, expected: object, seen: object, *, at: float | None = None) -> bool:
        """Records whether `seen` equals `expected`; the test goes on either way.

        What is ABSENT blocks the check, of many objects that of those alone: nothing is wrong with an object that does
        not exist. That it has to exist is for one check to say."""
        if seen is ABSENT:
            self._record(id, what, "unknown", plain(expected), ABSENT.value, at)
            return False
        if isinstance(expected, Mapping) and isinstance(seen, Mapping):
            absent = [key for key, value in seen.items() if value is ABSENT]
            if absent:
                self._record(id, what, "unknown", None, f"there is no {', '.join(map(str, absent))}", at)
                expected, seen = ({k: v for k, v in side.items() if k not in absent} for side in (expected, seen))
            if absent and not expected:
                return False
        want, got = plain(expected), plain(seen)
        self._record(id, what, "passed" if want == got else "failed", want, got, at)
        return want == got

    def passed(self, ids: Ids, what: str, *, at: float | None = None) -> None:
        for id in _each(ids):
            self._record(id, what, "passed", None, None, at)

    def holds(self, id: str, what: str, verdict: bool | None, seen: object = None, *, at: float | None = None) -> bool:
        """Records a three-valued verdict; None (unknown) is not a pass."""
        outcome: Literal["passed", "failed", "unknown"] = (
            "unknown" if verdict is None else "passed" if verdict else "failed"
        )
        self._record(id, what, outcome, None if verdict else "holds at every moment", plain(seen), at)
        return verdict is True

    def invariant(self, id: str, what: str, verdict: bool | None, seen: object, *, at: float | None = None) -> None:
        """As `holds`, for a rule that is judged in every test: a test that breaks it need not have declared it."""
        if id not in self.declared:
            self.declared = (*self.declared, id)
        self.holds(id, what, verdict, seen, at=at)

    def fail(self, ids: Ids, what: str, expected: object, seen: object, *, at: float | None = None) -> CheckFailed:
        """Records failures and returns the exception to end the test with."""
        for id in _each(ids):
            self._record(id, what, "failed", plain(expected), plain(seen), at)
        return CheckFailed(f"{', '.join(_each(ids))}: {what}: {brief(redaction.value(plain(seen)))}")

    def open(self) -> tuple[str, ...]:
        """The declared ids without an outcome so far."""
        judged = {c.id for c in self.made}
        return tuple(id for id in self.declared if id not in judged)

    def due(self) -> tuple[str, ...]:
        """What a failure falls on that ends the test early: the ids without an outcome, or all where each has one."""
        return self.open() or self.declared

    def finish(self) -> None:
        """At the end of a test that was not cut short. Raises CheckFailed, or HarnessError for an unjudged id."""
        if self.failures:
            raise CheckFailed("; ".join(f"{c.id}: {c.what}: {brief(c.seen)}" for c in self.failures))
        if missing := [id for id in self.open() if id in self.asked]:
            raise HarnessError(f"the test ended without an outcome for {', '.join(missing)}", where=self.test)

    def _record(
        self,
        id: str,
        what: str,
        outcome: Literal["passed", "failed", "unknown"],
        expected: object,
        seen: object,
        at: float | None,
    ) -> None:
        if id not in self.declared:
            raise HarnessError(f"the test judges {id} and doesn't declare it", where=self.test)
        self.doubt(outcome != "passed")
        expected, seen = redaction.value(expected), redaction.value(seen)
        check = ledger.Check(test=self.test, id=id, what=what, outcome=outcome, expected=expected, seen=seen, at=at)
        self.made.append(check)
        self._tell(check)
        if outcome == "failed" and self.settled:
            raise CheckFailed(f"{id}: {what}: {brief(seen)}")


def _each(ids: Ids) -> Sequence[str]:
    return (ids,) if isinstance(ids, str) else ids
