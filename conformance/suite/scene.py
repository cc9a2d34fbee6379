"""Scenes: what happens in one namespace is played once and recorded, and many tests judge the recording.

A scene is a class whose docstring describes it. A test that takes `run: Recorded[ThatScene]` judges its recording.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.history.query import UNASKED, History
from conformance.history.record import Record
from conformance.suite import ledger
from conformance.suite.checks import Checks

if TYPE_CHECKING:
    from conformance.suite.scene_environment import SceneEnvironment

RUN = "run"
"""The parameter by which a test takes the recording of a scene."""


class NotKept(AttributeError):
    """A test asks for an attribute that the scene has not set."""


class Scene:
    """What is played once and judged by many tests. What a test needs besides the history, such as the expected
    objects, the scene keeps in attributes, as early as it can: a scene may end at any step."""

    def play(self, env: SceneEnvironment) -> None:
        """Plays the scene. It judges nothing and knows no requirement; `env.wait_for` and `env.mark` name its steps."""
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise NotKept(f"the scene has not set {name!r}")


@dataclass(frozen=True)
class Step:
    """A moment of a scene that has a name. `revision`: how far all watches were by then. `unmet`: what was seen where
    the condition of the step did not hold in time and the scene went on."""

    name: str
    seq: int
    revision: int | None
    at: float
    unmet: str = ""

    @classmethod
    def now(cls, name: str, history: History, unmet: str = "") -> Step:
        """The present as a step, once everything has arrived that happened before it."""
        seq = history.mark()
        return cls(name, seq, history.present().revision, history.now(), unmet)

    def includes(self, record: Record) -> bool:
        """Whether a record was there by this moment."""
        if record.seq > self.seq:
            return False
        return self.revision is None or record.revision <= self.revision or record.resource in UNASKED


class InVain(Exception):
    """A wait was in vain; the text says what was seen instead."""


class SceneEnded(Exception):
    """A step of the scene did not come: the scene ends there."""

    def __init__(self, step: str, seen: str, at: float) -> None:
        self.step, self.seen, self.at = step, seen, at
        super().__init__(f"{step}: {seen}")


class SceneBroken(Exception):
    """The implementation has refused a write of the scene, or has destroyed what the scene stands on. This fails every
    requirement that needs a later step."""

    def __init__(self, what: str, expected: object, seen: object, at: float | None) -> None:
        self.what, self.expected, self.seen, self.at = what, expected, seen, at
        super().__init__(f"{what}: {seen}")


@dataclass(frozen=True)
class Invariant:
    """The verdict on one rule over the history of a scene."""

    what: str
    holds: bool | None
    seen: object
    at: float | None


class SceneChecks(Checks):
    """Stands where a test has its checks: a scene has none, and keeps the verdicts on the invariants for its tests."""

    def __init__(self, scene: str, invariants: typing.Sequence[str]) -> None:
        super().__init__(scene, invariants, lambda check: None)
        self.verdicts: dict[str, Invariant] = {}

    def fail(self, ids: object, what: str, expected: object, seen: object, *, at: float | None = None) -> Exception:  # type: ignore[override]
        """What the scene ends with where the implementation is to blame."""
        self.doubt(True)
        return SceneBroken(what, expected, seen, at)

    def invariant(self, id: str, what: str, verdict: bool | None, seen: object, *, at: float | None = None) -> None:
        """Keeps a verdict."""
        self.verdicts[id] = Invariant(what, verdict, seen, at)


def scenes_of(test: Callable[..., object]) -> tuple[type[Scene], ...]:
    """The scenes whose recordings a test judges: `run: Recorded[A]`, or `run: Recorded[A | B]` for each of them."""
    function = getattr(test, "__func__", test)
    if RUN not in getattr(function, "__annotations__", {}):
        return ()
    annotation = typing.get_type_hints(function)[RUN]
    found: list[type[Scene]] = []
    for argument in typing.get_args(annotation):
        inner = typing.get_args(argument) if isinstance(argument, types.UnionType) else (argument,)
        found += [each for each in inner if isinstance(each, type) and issubclass(each, Scene)]
    if not found:
        raise TypeError(f"{function.__qualname__}: annotate {RUN} as Recorded[…] with the scene that it judges")
    return tuple(found)


@dataclass(frozen=True)
class Played:
    """A scene that was played. `ended` says why it did not come to its end."""

    key: str
    scene: Scene
    history: History
    steps: Mapping[str, Step]
    verdicts: Mapping[str, Invariant]
    ended: SceneEnded | SceneBroken | Exception | None = None

    @property
    def ended_by(self) -> str:
        """The step that did not come, in words; empty where the scene came to its end."""
        match self.ended:
            case None:
                return ""
            case SceneEnded():
                return self.ended.step
            case SceneBroken():
                return self.ended.what
            case _:
                return str(self.ended)

    def event(self, worker: str, seconds: float) -> ledger.ScenePlayed:
        """What the ledger says of it."""
        steps = {name: round(step.at, 3) for name, step in self.steps.items()}
        return ledger.ScenePlayed(
            scene=self.key, worker=worker, seconds=round(seconds, 3), steps=steps, ended_by=self.ended_by
        )
