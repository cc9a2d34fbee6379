"""The recording of a scene, which tests judge, and the spans between its steps. Nothing here waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, NoReturn, TypeVar, cast

import pytest

from conformance.errors import HarnessError
from conformance.history.differences import differing
from conformance.history.order import server_order, uncertain_indices
from conformance.history.query import History, Unmet
from conformance.history.record import Record
from conformance.history.view import View
from conformance.invariants.result import RuleResult
from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.outcomes.failure_time import failure_time
from conformance.suite.registry.requirement import requirements
from conformance.suite.scenes.scene import RUN, InvariantResult, Scene, SceneBroken, SceneEnded, SceneRun, Step
from conformance.suite.scenes.waits import SILENCE_MESSAGE

S = TypeVar("S", bound=Scene, covariant=True)


class Span:
    """A part of a history: everything that happened after one step (None: from the start) and until another step."""

    def __init__(self, history: History, start: Step | None, end: Step) -> None:
        self._history, self._start, self._end_step = history, start, end

    def records(self, resource: str | None = None, name: str | None = None) -> list[Record]:
        """Return the records of the span in order of arrival, optionally only those of a resource and name."""
        return [
            record
            for record in self._history.records(resource, name)
            if self._end_step.includes(record) and not (self._start is not None and self._start.includes(record))
        ]

    def start_view(self) -> View:
        """Return the state at the start of the span."""
        return View() if self._start is None else _state(self._history, self._start)

    def view(self) -> View:
        """Return the state at the end of the span."""
        return _state(self._history, self._end_step)

    def states(self, *, certain: bool = False) -> Iterator[View]:
        """Yield the state at the start of the span, and then after each of its records, in the order of the server's
        writes. With `certain`, skip states that may be incomplete because a watch was broken. The same view is yielded
        each time: call `copy()` to keep it."""
        view = self.start_view()
        yield view
        records = self.records()
        ordered = server_order(records) or records
        uncertain_indexes = uncertain_indices(ordered) if certain else set[int]()
        for index, record in enumerate(ordered):
            view.apply(record)
            if index not in uncertain_indexes:
                yield view


class Recorded(Generic[S]):
    """The recording of a scene, for one test that judges one requirement.

    `reaches` are the steps that the requirement is about: a scene that ended while it waited for such a step, or
    continued without it, fails the requirement. If the test uses any other step that was not reached, the test is
    blocked.
    """

    def __init__(
        self, played: SceneRun, scene: S, checks: Checks, reaches: Sequence[str] = (), reached: set[str] | None = None
    ) -> None:
        self.scene = scene
        """The scene, with its attributes."""
        self.history = played.history
        """The whole history of the scene."""
        self._played, self._checks, self._reaches = played, checks, tuple(reaches)
        self._reached = set[str]() if reached is None else reached
        """The steps of `reaches` that were judged as passed."""

    @property
    def neighbor(self) -> Recorded[S]:
        """Return the recording of the scene's second namespace: it has the same steps, but the history of that
        namespace."""
        if self._played.neighbor is None:
            self._end_step()
            raise HarnessError("the scene has no second namespace", where=self._checks.test)
        played = replace(self._played, history=self._played.neighbor)
        return Recorded(played, self.scene, self._checks, self._reaches, self._reached)

    def given(self, *steps: str) -> None:
        """Require steps without judging them: a step that the scene has not reached, or without which it has continued,
        blocks the test. Steps that the requirement is about and that the scene reached earlier are judged first."""
        for step in steps:
            reached = self._step(step)
            if reached.unmet:
                self._judge(*(step_name for step_name in self._reaches if step_name in self._steps_until(reached)))
                raise self._blocked(step, f'the scene went on without "{step}": {_nearest(reached.unmet)}')

    # -- looking -------------------------------------------------------------------------------------------------

    def at(self, step: str) -> View:
        """Return the state at a step."""
        return _state(self.history, self._step(step))

    def between(self, start: str, end: str) -> Span:
        """Return the span between two steps."""
        return Span(self.history, self._step(start), self._step(end))

    def until(self, step: str) -> Span:
        """Return the span from the start of the scene until a step."""
        return Span(self.history, None, self._step(step))

    def after(self, step: str) -> Span:
        """Return the span from a step until the end of the scene."""
        start = self._step(step)
        return Span(self.history, start, self._end_step())

    def whole(self) -> Span:
        """Return the span of the whole scene."""
        return Span(self.history, None, self._end_step())

    # -- judging -------------------------------------------------------------------------------------------------

    def expect(self, description: str, expected: object, actual: object, at: Record | None = None) -> bool:
        """Check equality. The test continues. A failure has a time: `at`, or the last change of the objects in which
        the values differ."""
        return self._checks.expect(
            self._id, description, expected, actual, at=failure_time(self.history, description, expected, actual, at)
        )

    def same(self, description: str, expected: Mapping[str, object], actual: Mapping[str, object]) -> None:
        """Check equality like `expect`, for many objects by name. A report shows only the objects that differ."""
        self.expect(description, *differing(expected, actual))

    def always(
        self,
        description: str,
        condition: Callable[[View], object],
        *,
        after: str | None = None,
        until: str | None = None,
    ) -> bool:
        """Check a condition in every state of the scene, or only in the states after or until a step. A failure names
        the first record that breaks it, even if the scene ended before the step `until`."""
        start = None if after is None else self._step(after)
        end = self._played.steps.get(until) if until is not None else None
        for view in Span(self.history, start, end or self._last_step()).states():
            result = condition(view)
            if result is None or result is False or isinstance(result, Unmet):
                reason = result.reason if isinstance(result, Unmet) else "it does not hold"
                return self._checks.holds(self._id, description, False, f"{reason} (since {view.last})", at=view.last)
        if until is not None:
            self._step(until)
        else:
            self._end_step()
        return self._checks.holds(self._id, description, True)

    def holds(self, description: str, result: RuleResult | bool | None) -> bool:
        """Check a three-valued result. Unknown (None) does not count as a pass."""
        if isinstance(result, RuleResult):
            at = result.records[-1] if result.records else None
            return self._checks.holds(self._id, description or result.statement, result.holds, str(result), at=at)
        return self._checks.holds(self._id, description, result)

    def invariant(self) -> bool:
        """Check the invariant that the test declares over the history of the scene. If the scene ended early, only a
        violation counts."""
        if self._id in self._played.doubts:
            raise self._played.doubts[self._id]
        verdict = self._played.verdicts.get(self._id)
        if verdict is None or (self._played.ended is not None and verdict.holds is not False):
            self._end_step()
            raise HarnessError(f"the scene has no verdict on {self._id}", where=self._checks.test)
        return self._invariant(verdict)

    def judge_violation(self) -> None:
        """Check, in addition to other checks, that the history does not break the invariant of the requirement. The
        result counts even if the scene ended early; if the invariant had nothing to judge, nothing is checked."""
        if self._id in self._played.doubts:
            raise self._played.doubts[self._id]
        verdict = self._played.verdicts.get(self._id)
        if verdict is not None and verdict.holds is not None:
            self._invariant(verdict)

    def judge_reaches(self) -> None:
        """Judge the steps that the requirement is about. The plugin calls this at the end of each test."""
        for step in self._reaches:
            self._step(step)

    # -- within --------------------------------------------------------------------------------------------------

    @property
    def _id(self) -> str:
        return self._checks.declared[0]

    def _invariant(self, verdict: InvariantResult) -> bool:
        return self._checks.holds(self._id, verdict.statement, verdict.holds, verdict.actual, at=verdict.at)

    def _step(self, name: str) -> Step:
        self._judge(name)
        if name in self._played.steps:
            return self._played.steps[name]
        if self._played.ended is None:
            steps = ", ".join(self._played.steps)
            raise HarnessError(f"the scene has no step {name!r} (it has {steps})", where=self._checks.test)
        self.unreached()

    def _judge(self, *names: str) -> None:
        """Judge those of these steps that the requirement is about and that the scene has reached or continued
        without."""
        ended = self._played.ended
        for name in names:
            if name not in self._reaches or name in self._reached:
                continue
            if isinstance(ended, SceneEnded) and ended.step == name:
                raise self._checks.fail(self._id, name, name, ended.actual, at=round(ended.at, 3))
            if (step := self._played.steps.get(name)) is None:
                continue
            if step.unmet:
                raise self._checks.fail(self._id, name, name, step.unmet, at=round(step.at, 3))
            self._reached.add(name)
            self._checks.passed(self._id, name, at=round(step.at, 3))

    def _blocked(self, step: str, reason: str) -> Blocked:
        self._checks.blocked = True
        return Blocked(reason, "implementation", step)

    def _steps_until(self, last: Step) -> list[str]:
        """Return the names of all steps up to the step `last`."""
        return [name for name, step in self._played.steps.items() if step.seq <= last.seq]

    def _end_step(self) -> Step:
        """Return the last step of a scene that ran to its end."""
        if self._played.ended is not None:
            self.unreached()
        return self._last_step()

    def _last_step(self) -> Step:
        """Return the end of the recording."""
        return Step("the end", self.history.mark(), None, self.history.now())

    def unreached(self) -> NoReturn:
        """End the test because the scene ended before a step that the test needs."""
        self._judge(*self._reaches)
        match self._played.ended:
            case SceneBroken() as scene_broken:
                raise self._checks.broken(
                    scene_broken.description, scene_broken.expected, scene_broken.actual, at=scene_broken.at
                )
            case SceneEnded() as ended:
                raise self._blocked(
                    ended.step, f'the scene ended in waiting for "{ended.step}": {_nearest(ended.actual)}'
                )
            case Blocked() as blocked:
                self._checks.blocked = blocked.cause == "implementation"
                raise blocked
            case other:
                raise HarnessError(f"the scene ended: {other}", where=self._played.key)


def _state(history: History, step: Step) -> View:
    view = View()
    for record in history.records():
        if step.includes(record):
            view.apply(record)
    return view


def _nearest(report: str) -> str:
    """Return a summary of a wait that was not successful: the event that ended it, such as a process that has exited;
    otherwise its nearest miss and, if it was cut short, the reason."""
    lines = report.splitlines()
    wait_line = next((number for number, line in enumerate(lines) if line.startswith("not seen within ")), 0)
    if wait_line:
        return lines[0]
    nearest_lines = [line for line in lines if line.startswith("nearest: ")][:1] or lines[:1]
    return "; ".join([*nearest_lines, *(line for line in lines if line.startswith(SILENCE_MESSAGE))])


def invariants(scenes: Any, *ids: str) -> Callable[..., None]:
    """Return a test that judges each of these invariants over the recording of a scene, or of each of several scenes
    (`A | B`)."""

    def test_invariants(run: Recorded[Scene], invariant: str) -> None:
        run.invariant()

    test_invariants.__annotations__[RUN] = cast(Any, Recorded)[scenes]
    parameters = [pytest.param(id, marks=requirements(id), id=id) for id in ids]
    return cast(Callable[..., None], pytest.mark.parametrize("invariant", parameters)(test_invariants))
