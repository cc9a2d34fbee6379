"""The `case` fixture: the environment of a conformance test that does not judge a scene.

Every failure of the implementation results in a failed check with a reason, never in a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from conformance.history.query import Unmet
from conformance.history.record import Record
from conformance.history.view import View
from conformance.invariants.result import RuleResult
from conformance.suite.outcomes.checks import Ids
from conformance.suite.outcomes.failure_time import failure_time
from conformance.suite.scenes.scene import NotReached
from conformance.suite.scenes.scene_environment import SceneEnvironment

R = TypeVar("R")


class Case(SceneEnvironment):
    """An environment with the checks of one test. Timeouts are in seconds at time scale 1."""

    def until(
        self,
        ids: Ids,
        description: str,
        predicate: Callable[[View], R | Unmet | None],
        timeout: float = 60,
        *,
        resources: Sequence[str] | None = None,
        real: bool = False,
    ) -> R:
        """Wait until the predicate holds, and record the ids as passed. A timeout fails the ids and ends the test.
        `real`: the time scale does not shorten the wait, for things that the implementation cannot speed up.

        The wait ends immediately if a process of the implementation exits unexpectedly, because nothing can follow. A
        predicate that raises an exception on malformed objects (KeyError, TypeError, …) does not hold.
        """
        try:
            result = self._wait(description, predicate, timeout, resources=resources, real=real)
        except NotReached as error:
            raise self.checks.fail(ids, description, description, str(error), at=round(self.history.now(), 3)) from None
        self.checks.passed(ids, description, at=round(self.history.now(), 3))
        return result

    def expect(self, id: str, description: str, expected: object, actual: object, at: Record | None = None) -> bool:
        """Check equality. The test continues. A failure has a time: `at`, or the last change of the objects in which
        the values differ."""
        return self.checks.expect(
            id, description, expected, actual, at=failure_time(self.history, description, expected, actual, at)
        )

    def holds(self, id: str, description: str, result: RuleResult | bool | None) -> bool:
        """Check an invariant or another three-valued result. The test continues. Unknown (None) does not count as a
        pass."""
        now = None if result is True else round(self.history.now(), 3)
        if isinstance(result, RuleResult):
            at = result.records[-1] if result.records else None if result.holds else now
            return self.checks.holds(id, description or result.statement, result.holds, str(result), at=at)
        return self.checks.holds(id, description, result, at=now)
