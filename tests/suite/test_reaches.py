"""Tests that a conformance test fails only for steps that its requirement is about. Other missing steps block it.

Each test runs against synthetic recordings of its scene, without objects. One recording has every step. For each step
that the test asks for, one recording ends while waiting for the step, and one goes on without it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from conformance.history.log import Log
from conformance.history.query import History
from conformance.suite.outcomes.checks import Blocked, CheckFailed, Checks
from conformance.suite.registry.declarations import TESTS
from conformance.suite.registry.requirement import MARK
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import RUN, InvariantResult, Scene, SceneEnded, SceneRun, Step, scenes_of
from conformance.tests.gang.test_base_gang_first import BaseGangShortOfNodes

PACKAGE = "conformance.tests"
HISTORY = History(Log(), "none").frozen()


@dataclass(frozen=True, eq=False)
class Test:
    """A conformance test with one of its scenes, and with values for its other parameters."""

    name: str
    function: Callable[..., None]
    scene: type[Scene]
    id: str
    reaches: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    __test__ = False

    def __str__(self) -> str:
        return self.name


class Steps(dict[str, Step]):
    """All steps that a test asks for, except `missing`. The condition of the step `unmet` did not hold."""

    def __init__(self, missing: str = "", unmet: str = "") -> None:
        super().__init__()
        self._missing, self._unmet = missing, unmet

    def __contains__(self, name: object) -> bool:
        return name != self._missing and bool(self.setdefault(str(name), self._step(str(name))))

    def __getitem__(self, name: str) -> Step:
        if name not in self:
            raise KeyError(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def _step(self, name: str) -> Step:
        return Step(name, 0, None, 0.0, "it is not" if name == self._unmet else "")


class OnlySteps(Checks):
    """Checks in which every comparison of a test holds."""

    def expect(self, id: str, description: str, expected: object, actual: object, **at: Any) -> bool:
        return True

    def holds(self, id: str, description: str, verdict: bool | None, actual: object = None, **at: Any) -> bool:
        return True


def all_tests() -> Iterator[Test]:
    """Yield every conformance test that judges a scene."""
    for path in sorted(TESTS.rglob("test_*.py")):
        module = importlib.import_module(f"{PACKAGE}." + ".".join(path.relative_to(TESTS).with_suffix("").parts))
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__name__.startswith("test_") and scenes_of(function):
                yield from function_tests(function, path)


def function_tests(function: Callable[..., None], path: Path) -> Iterator[Test]:
    marks: list[pytest.Mark] = getattr(function, "pytestmark", [])
    sets = [list(parametrized_values(mark)) for mark in marks if mark.name == "parametrize"]
    for scene, values in itertools.product(scenes_of(function), itertools.product(*sets)):
        arguments = {name: value for parameters, _ in values for name, value in parameters.items()}
        [mark] = [
            mark for mark in (*marks, *(m for _, mark_values in values for m in mark_values)) if mark.name == MARK
        ]
        reaches = tuple(step.format_map(arguments) for step in mark.kwargs.get("reaches", ()))
        test_id = f"{path.relative_to(TESTS).as_posix()}::{function.__name__}"
        name = f"{test_id}[{'-'.join([scene.__name__, *map(str, arguments.values())])}]"
        yield Test(name, function, scene, mark.args[0], reaches, arguments)


def parametrized_values(mark: pytest.Mark) -> Iterator[tuple[dict[str, Any], list[pytest.Mark]]]:
    """Yield the values of a parametrization, each with the marks that it adds."""
    names, values = mark.args[:2]
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    for value in values:
        marks = [getattr(one, "mark", one) for one in getattr(value, "marks", ())]
        raw = value.values if hasattr(value, "marks") else value if len(names) > 1 else (value,)
        yield dict(zip(names, raw, strict=True)), marks


def judge(test: Test, steps: dict[str, Step], ended: SceneEnded | None = None) -> tuple[set[str], Exception | None]:
    """Run a test; return the names of its failed checks, and the exception that ended it. A few tests need objects;
    they run until an object is missing."""
    checks = OnlySteps(test.name, [test.id], lambda check: None)
    scene: Any = MagicMock(
        **{name: value for name, value in vars(test.scene).items() if isinstance(value, str | tuple)}
    )
    rules = {test.id: InvariantResult("its rule", True, None, None)}
    played = SceneRun(test.name, scene, HISTORY, steps, rules, ended=ended, neighbor=HISTORY)
    run = Recorded(played, scene, checks, test.reaches)
    try:
        with contextlib.suppress(TypeError, ValueError, KeyError, IndexError):
            test.function(**{RUN: run, **test.arguments})
        run.judge_reaches()
    except (Blocked, CheckFailed) as error:
        return {check.what for check in checks.recorded if check.outcome == "failed"}, error
    return set(), None


ALL_TESTS = [test for test in all_tests() if "invariant" not in test.arguments]


@cache
def steps_of(test: Test) -> list[str]:
    """Return the steps that a test asks for, and those that its requirement is about."""
    steps = Steps()
    assert judge(test, steps) == (set(), None), test
    return list(dict.fromkeys([*steps, *test.reaches]))


@pytest.mark.parametrize("goes_on", [False, True], ids=["the scene ends", "the scene goes on"])
def test_only_a_step_that_the_requirement_is_about_fails_it(goes_on: bool) -> None:
    wrong = []
    for case, step in [(test, step) for test in ALL_TESTS for step in steps_of(test)]:
        ended = None if goes_on else SceneEnded(step, "not seen within 1 s", 1.0)
        failed, problem = judge(case, Steps(unmet=step) if goes_on else Steps(missing=step), ended)
        blocked = isinstance(problem, Blocked) and problem.cause == "implementation"
        right = failed == {step} if step in case.reaches else not failed and (blocked or goes_on)
        wrong += [] if right else [f"{case}: {step}: failed {failed}, {problem!r}"]
    assert wrong == [] and len(ALL_TESTS) > 400


def test_a_scene_that_ended_before_blocks_every_test_that_asks_for_a_step() -> None:
    ended = SceneEnded("an earlier step", "not seen within 1 s", 1.0)
    results = {str(test): judge(test, {}, ended) for test in ALL_TESTS if steps_of(test)}
    wrong = {test: result for test, result in results.items() if result[0] or not isinstance(result[1], Blocked)}
    assert wrong == {} and len(results) > 400


# -- names -------------------------------------------------------------------------------------------------------------


def test_every_step_is_one_of_the_scene() -> None:
    """Otherwise, only a run would reveal a step name that no scene of the test's modules uses."""
    unknown = {(str(test), step) for test in ALL_TESTS for step in steps_of(test) if not is_nameable(step, test.scene)}
    assert unknown == set()


def is_nameable(step: str, scene: type[Scene]) -> bool:
    """Return whether the modules of a scene, or modules that they import, have a string that can be this step name."""
    modules = {kind.__module__ for kind in scene.__mro__ if issubclass(kind, Scene) and kind is not Scene}
    return any(re.fullmatch(pattern, step) for module in modules for pattern in patterns(module, imports=True))


@cache
def patterns(module: str, imports: bool = False) -> frozenset[str]:
    """Return regular expressions for the strings of a module, except those in tests and their decorators."""
    tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text("utf-8"))
    result: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            continue
        if imports and isinstance(node, ast.ImportFrom) and node.module and "conformance.test" in node.module:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                result |= patterns(name) if name in sys.modules else set()
        for part in ast.walk(node):
            if isinstance(part, ast.JoinedStr):
                result.add(
                    "".join(re.escape(str(v.value)) if isinstance(v, ast.Constant) else ".+" for v in part.values)
                )
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                result.add(re.escape(part.value))
    return frozenset(result - {".+"})


def test_a_misspelt_step_is_found() -> None:
    assert is_nameable("scaled gangs ungated", BaseGangShortOfNodes)
    assert not is_nameable("scaled gangs ungatet", BaseGangShortOfNodes)
