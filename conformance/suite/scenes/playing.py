"""Play the scenes of one worker: each scene is played once for all tests that judge it, with one failure bundle for all
of them. The tests of a scene run one after the other; the scene is cleaned up after its last test."""

from __future__ import annotations

import functools
import inspect
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import HarnessError
from conformance.suite.environment import Environment, RunningTest
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes import foresight, repeated
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import RUN, Scene, SceneBroken, SceneChecks, SceneEnded, SceneRun, scenes_of

REPETITION = "repetition"


def scene_of(item: pytest.Item) -> type[Scene] | None:
    """Return the scene that a collected test judges."""
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    scenes = scenes_of(getattr(item, "function", None) or (lambda: None))
    return params.get(RUN, scenes[0]) if scenes else None


def key_of(item: pytest.Item, repeat: int, tests: Path) -> str:
    """Return the name of the scene that a test judges, or the test's node id if it has its own environment. Tests with
    the same key must run on one worker."""
    scene = scene_of(item)
    if scene is None:
        return item.nodeid
    number = getattr(item, "callspec", None) and item.callspec.params.get(REPETITION)  # type: ignore[attr-defined]
    repetition_mark = f"[{repeated.marks(repeat)[number]}]" if repeat > 1 and number is not None else ""
    return f"{_file(scene, tests)}::{scene.__qualname__}{repetition_mark}"


def grouped_by_scene(items: Iterable[pytest.Item], keys: Mapping[str, str]) -> list[pytest.Item]:
    """Return the tests in their order, but with all tests of a scene directly after its first test."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(keys[item.nodeid], []).append(item)
    return [item for group in groups.values() for item in group]


def lone_scenes_last(items: Iterable[pytest.Item], shared: bool = False) -> list[pytest.Item]:
    """Return the tests in their order, but with the tests of scenes that are played alone at the end. `shared`: whether
    several workers share a cluster."""
    return sorted(items, key=lambda item: _is_lone(item, shared))


def lone_scenes(items: Iterable[pytest.Item], keys: Mapping[str, str], shared: bool = False) -> frozenset[str]:
    """Return the names of the scenes that are played alone."""
    return frozenset(keys[item.nodeid] for item in items if _is_lone(item, shared))


def _is_lone(item: pytest.Item, shared: bool) -> bool:
    scene = scene_of(item)
    return scene is not None and _plays_alone(scene, shared)


def _plays_alone(scene: type[Scene], shared: bool) -> bool:
    return scene.plays_alone or (shared and scene.exclusive is not None)


def decisive_first(
    items: Sequence[pytest.Item], declared: Mapping[str, Sequence[str]], judged: frozenset[str]
) -> list[pytest.Item]:
    """Return the tests, sorted so that tests whose requirements few other tests judge come first. A --fail-fast run,
    which ends once everything has failed, then need not play scenes that only judge invariants."""
    judged_ids = {item.nodeid: judged.intersection(declared[item.nodeid]) for item in items}
    tests = Counter(identity for ids in judged_ids.values() for identity in ids)
    return sorted(items, key=lambda item: min((tests[identity] for identity in judged_ids[item.nodeid]), default=0))


@dataclass
class _OpenScene:
    """The scene whose tests are running. `problem` is the exception if the scene could not be played."""

    key: str
    running: RunningTest
    cleanup: ExitStack = field(default_factory=ExitStack)
    played: SceneRun | None = None
    problem: BaseException | None = None
    kept_checks: list[ledger.Check] = field(default_factory=list)
    """The checks of the tests for which evidence was kept."""
    tests: list[str] = field(default_factory=list)


class Scenes:
    """The scenes that one worker plays, one at a time. `other_workers_ended` blocks until no other worker is
    running."""

    def __init__(
        self,
        environment: Callable[[], Environment],
        event_ledger: ledger.Ledger,
        worker: str,
        invariants: Collection[str],
        other_workers_ended: Callable[[], None],
        shared: bool = False,
    ) -> None:
        self._environment, self._ledger, self._worker = environment, event_ledger, worker
        self._other_workers_ended, self._shared = other_workers_ended, shared
        self._invariants = tuple(sorted(invariants))
        self._open_scene: _OpenScene | None = None

    def recorded(
        self,
        key: str,
        scene: type[Scene],
        running: RunningTest,
        judged: Collection[str],
        tests: Sequence[pytest.Item],
        decisive_ids: Set[str],
        reaches: Sequence[str],
    ) -> Recorded[Scene]:
        """Return the recording of a scene for one test; the scene is played for its first test. `reaches` are the steps
        that the test's requirement is about. `judged` are the ids that tests of this scene judge: a violated and
        claimed invariant that none of them declares fails the test for which the scene was played. The scene ends as
        soon as its `tests` have failed all requirements in `decisive_ids`, if there are any."""
        is_new = self._open_scene is None or self._open_scene.key != key
        if is_new:
            self.close()
            decided = partial(foresight.is_decided, tests, decisive_ids) if decisive_ids else None
            self._open_scene = self._play_for_tests(key, scene, judged, decided)
        open_scene = self._open_scene
        assert open_scene is not None
        running.namespace, running.foreign = open_scene.running.namespace, open_scene.running.foreign
        running.violation = open_scene.running.violation
        if open_scene.problem is not None:
            raise open_scene.problem
        assert open_scene.played is not None
        running.scene, running.scene_ended_by = key, open_scene.played.ended_by
        for id, verdict in open_scene.played.verdicts.items() if is_new else ():
            if verdict.holds is False and id in self._invariants and id not in judged:
                running.checks.invariant(id, verdict.statement, False, verdict.actual, at=verdict.at)
        return Recorded(open_scene.played, open_scene.played.scene, running.checks, reaches)

    def keep(self, running: RunningTest, passed: bool) -> None:
        """Write the scene's bundle, with the failures of all its tests so far, if a test failed or was blocked, or if
        evidence of passed tests is also requested (`passed`)."""
        open_scene = self._open_scene
        if open_scene is None or not (
            passed or running.checks.failures or running.checks.blocked or open_scene.problem
        ):
            return
        open_scene.kept_checks += running.checks.recorded
        open_scene.tests.append(running.test)
        open_scene.running.keep(open_scene.kept_checks, open_scene.tests)
        running.bundle, running.removed = open_scene.running.bundle, open_scene.running.removed

    def keep_objects(self) -> None:
        """Keep the objects of the scene."""
        if self._open_scene is not None:
            self._open_scene.running.keep_objects = True

    def close(self, next_key: str = "") -> None:
        """Clean up the scene, unless the following test belongs to it."""
        open_scene = self._open_scene
        if open_scene is None or open_scene.key == next_key:
            return
        self._open_scene = None
        try:
            open_scene.cleanup.close()
        except HarnessError as error:
            self._ledger.write(ledger.HarnessFault(worker=self._worker, what=str(error), clearing=True))

    def abandon(self) -> None:
        """End a scene whose tests were interrupted."""
        if self._open_scene is not None:
            self._open_scene.running.problem = KeyboardInterrupt()
            self.close()

    def _play_for_tests(
        self, key: str, scene: type[Scene], judged: Collection[str], decided: Callable[[SceneRun], bool] | None
    ) -> _OpenScene:
        checks = SceneChecks(key, self._invariants, judged)
        open_scene = _OpenScene(key, RunningTest(key, checks))
        start = time.monotonic()
        try:
            if self._shared:
                self._environment()  # opened first, because other workers may wait for the implementation
            if _plays_alone(scene, self._shared):
                self._other_workers_ended()
            environment = self._environment()
            start = time.monotonic()  # the time of the scene does not include the start of a cluster
            env = open_scene.cleanup.enter_context(environment.play(open_scene.running))
            cpu_seconds = open_scene.running.measure_cpu()
            open_scene.played = _play_scene(key, scene(), open_scene.running, checks, env, decided)
        except Exception as error:
            open_scene.running.problem = open_scene.problem = error
        except BaseException as error:  # interrupted: the whole cluster is removed, so nothing else is cleaned up
            open_scene.running.problem = error
            open_scene.cleanup.close()
            raise
        if open_scene.played is not None:
            seconds = time.monotonic() - start
            self._ledger.write(open_scene.played.event(self._worker, seconds, cpu_seconds()))
        return open_scene


def _play_scene(
    key: str,
    scene: Scene,
    running: RunningTest,
    checks: SceneChecks,
    env: Any,
    decided: Callable[[SceneRun], bool] | None,
) -> SceneRun:
    """Play a scene, and judge the invariants over its history. Exceptions that are not the implementation's fault
    propagate."""
    end_error: Exception | None = None

    def recording() -> SceneRun:
        history, steps, verdicts = env.history.frozen(), dict(env.steps), dict(checks.verdicts)
        neighbor = env.neighbor and env.neighbor.history.frozen()
        return SceneRun(
            key, scene, history, steps, verdicts, dict(env.markers), end_error, neighbor, dict(checks.doubts)
        )

    def stop_if_decided() -> None:
        if decided is not None and decided(recording()):
            raise foresight.stop_error()

    env.after_step = stop_if_decided
    try:
        scene.play(env)
    except (SceneEnded, SceneBroken, Blocked) as error:
        end_error = error
    try:
        running.at_end(end_error is None)
    except SceneBroken as error:
        end_error = error
    return recording()


def _file(scene: type[Scene], tests: Path) -> str:
    """Return the file of a scene in the form that node ids of tests have."""
    path = _resolved(inspect.getfile(scene))
    return path.relative_to(tests).as_posix() if path.is_relative_to(tests) else path.name


@functools.cache
def _resolved(file: str) -> Path:
    return Path(file).resolve()
