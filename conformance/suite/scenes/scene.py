"""Scenes: a sequence of actions in one namespace is played and recorded once, and many tests judge the recording.

A scene is a class whose docstring describes it. A test that takes `run: Recorded[ThatScene]` judges its recording.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from conformance.errors import HarnessError
from conformance.history.query import PASSIVE_RESOURCES, History
from conformance.history.record import Record
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.checks import Checks, Moment

if TYPE_CHECKING:
    from conformance.suite.scenes.scene_environment import SceneEnvironment

RUN = "run"
"""The parameter with which a test takes the recording of a scene."""


class AttributeNotSet(AttributeError):
    """A test has read an attribute that the scene has not set."""


class Exclusive(StrEnum):
    """Shared parts of a cluster that only one scene at a time may change."""

    ROLES = "the operator or the gang scheduler stops, or is replaced"
    NODES = "nodes fail: Kubernetes evicts the pods of all failed nodes of a zone at one limited rate"
    CLASSES = "a PriorityClass becomes the default of all pods"


class Scene:
    """A scene, which is played once and judged by many tests. Data that tests need in addition to the history, such as
    the expected objects, is stored in attributes, which must be set as early as possible because a scene may end at any
    step."""

    plays_alone: ClassVar[bool] = False
    """Whether the scene is played after all other scenes and not in parallel with any, because it loads the machine or
    is timed."""
    exclusive: ClassVar[Exclusive | None] = None
    """The shared part of its cluster that the scene changes. If several workers share a cluster, such a scene is also
    played alone."""

    def play(self, env: SceneEnvironment) -> None:
        """Play the scene. A scene judges nothing and is independent of requirements; `env.wait_for` and `env.mark` name
        its steps."""
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeNotSet(f"the scene has not set {name!r}")


@dataclass(frozen=True)
class Step:
    """A named moment of a scene. `revision`: the revision that all watches had reached by then. `unmet`: what was seen
    instead, if the condition of the step did not hold in time and the scene continued."""

    name: str
    seq: int
    revision: int | None
    at: float
    unmet: str = ""

    @classmethod
    def now(cls, name: str, history: History, unmet: str = "") -> Step:
        """Return the current moment as a step, after the records of everything that happened before have arrived."""
        seq = history.mark()
        return cls(name, seq, history.wait_until_complete().revision, history.now(), unmet)

    def includes(self, record: Record) -> bool:
        """Return whether a record belongs to the time up to this step."""
        if record.seq > self.seq:
            return False
        return self.revision is None or record.revision <= self.revision or record.resource in PASSIVE_RESOURCES


class NotReached(Exception):
    """A wait timed out. The text says what was seen instead."""


class SceneEnded(Exception):
    """A step of the scene was not reached, so the scene ends."""

    def __init__(self, step: str, actual: str, at: float) -> None:
        self.step, self.actual, self.at = step, actual, at
        super().__init__(f"{step}: {actual}")


class SceneBroken(Exception):
    """The implementation has rejected a write of the scene, or has deleted its namespace or nodes. This blocks every
    test that needs a later step."""

    def __init__(self, description: str, expected: object, actual: object, at: Moment) -> None:
        self.description, self.expected, self.actual, self.at = description, expected, actual, at
        super().__init__(f"{description}: {actual}")


@dataclass(frozen=True)
class InvariantResult:
    """The result of one rule over the history of a scene."""

    statement: str
    holds: bool | None
    actual: object
    at: Moment


class SceneChecks(Checks):
    """The checks of a scene, which records no checks itself, but keeps the results of the invariants for its tests.
    `selected` are the ids that its tests judge in the run: a scene with independent parts may leave out parts that none
    of them needs."""

    def __init__(self, scene: str, invariants: typing.Sequence[str], selected: typing.Collection[str] = ()) -> None:
        super().__init__(scene, invariants, lambda check: None)
        self.selected = tuple(sorted(selected))
        self.verdicts: dict[str, InvariantResult] = {}
        self.doubts: dict[str, HarnessError] = {}

    def broken(self, description: str, expected: object, actual: object, *, at: Moment = None) -> Exception:
        """Return the exception with which the scene ends if the implementation is at fault."""
        self.require_reliable(True)
        return SceneBroken(description, expected, actual, at)

    def invariant(self, id: str, statement: str, verdict: bool | None, actual: object, *, at: Moment = None) -> None:
        """Keep the result of an invariant."""
        self.verdicts[id] = InvariantResult(statement, verdict, actual, at)

    def record_doubt(self, id: str, error: HarnessError) -> None:
        """Keep the error for the tests that declare the invariant."""
        self.doubts[id] = error


def scenes_of(test: Callable[..., object]) -> tuple[type[Scene], ...]:
    """Return the scenes whose recordings a test judges: A for `run: Recorded[A]`, or A and B for `run: Recorded[A |
    B]`."""
    return _scenes_of(getattr(test, "__func__", test))


@functools.cache
def _scenes_of(function: Callable[..., object]) -> tuple[type[Scene], ...]:
    if RUN not in getattr(function, "__annotations__", {}):
        return ()
    annotation = typing.get_type_hints(function)[RUN]
    scenes: list[type[Scene]] = []
    for argument in typing.get_args(annotation):
        inner = typing.get_args(argument) if isinstance(argument, types.UnionType) else (argument,)
        scenes += [candidate for candidate in inner if isinstance(candidate, type) and issubclass(candidate, Scene)]
    if not scenes:
        raise TypeError(f"{function.__qualname__}: annotate {RUN} as Recorded[…] with the scene that it judges")
    return tuple(scenes)


@dataclass(frozen=True)
class SceneRun:
    """A scene that was played. `ended` is the exception if it did not run to its end."""

    key: str
    scene: Scene
    history: History
    steps: Mapping[str, Step]
    verdicts: Mapping[str, InvariantResult]
    markers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Timing markers by phase."""
    ended: SceneEnded | SceneBroken | Exception | None = None
    neighbor: History | None = None
    """The history of the second namespace, if the scene has one."""
    doubts: Mapping[str, HarnessError] = field(default_factory=dict)
    """Invariant that seems to be broken → the error that explains why there is no verdict on it."""

    @property
    def ended_by(self) -> str:
        """Return a description of the step that was not reached; empty if the scene ran to its end."""
        match self.ended:
            case None:
                return ""
            case SceneEnded():
                return self.ended.step
            case SceneBroken():
                return self.ended.description
            case _:
                return str(self.ended)

    def event(self, worker: str, seconds: float, cpu: float) -> ledger.ScenePlayed:
        """Return the event for the ledger, with the duration and the CPU seconds of the scene."""
        steps = {name: round(step.at, 3) for name, step in self.steps.items()}
        return ledger.ScenePlayed(
            scene=self.key,
            worker=worker,
            seconds=round(seconds, 3),
            steps=steps,
            ended_by=self.ended_by,
            markers={phase: dict(times) for phase, times in self.markers.items()},
            cpu=round(cpu, 2),
        )
