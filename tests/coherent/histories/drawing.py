"""Histories that are drawn at random. Failing histories are reduced by removing actions, and kept for inspection.

If a history takes seconds, Hypothesis only draws the histories. This module runs many histories in parallel, and also
tries in parallel which actions can be removed from a failing history.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.coherent.histories import reproduction
from tests.coherent.histories.model import DIRECTIONS, Change, GeneratedHistory, PauseCollector, histories, switches

FOLDER = Path(__file__).parent.parent.parent.parent / "reports" / "histories"
SEED = int(os.environ.get("SEED", "1"))
"""The same seed draws the same histories."""
MAX_SAME_PARTS = 2
"""The maximum number of drawn histories with the same initial set. It is needed because Hypothesis often varies an
earlier example."""

Problems = list[str]
RunAll = Callable[[Sequence[GeneratedHistory]], Sequence[Problems]]


def draw_histories(count: int) -> list[GeneratedHistory]:
    """Draw `count` histories in which something changes while the garbage collector is suspended."""
    return [_with_pause(history) for history in _draw(histories(), count)]


def draw_switches(count: int) -> list[GeneratedHistory]:
    """Draw `count` histories for each direction in which the strategy can change during an update."""
    return [history for direction in DIRECTIONS for history in _draw(switches(*direction), count)]


def _with_pause(history: GeneratedHistory) -> GeneratedHistory:
    """Return the history with a pause of the garbage collector. If the history has no pause, add one before the first
    change."""
    if PauseCollector() in history.actions:
        return history
    first_change = next(index for index, action in enumerate(history.actions) if isinstance(action, Change))
    return replace(
        history, actions=(*history.actions[:first_change], PauseCollector(), *history.actions[first_change:])
    )


def _draw(strategy: SearchStrategy[GeneratedHistory], count: int) -> list[GeneratedHistory]:
    examples: dict[GeneratedHistory, None] = {}

    @seed(SEED)
    @settings(
        max_examples=max(1, 4 * count),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(history: GeneratedHistory) -> None:
        same_parts = sum(earlier.parts == history.parts for earlier in examples)
        if same_parts < MAX_SAME_PARTS and any(isinstance(action, Change) for action in history.actions):
            examples[history] = None

    draw()
    return list(examples)[-count:] if count else []


def find_counterexamples(candidates: Sequence[GeneratedHistory], run_all: RunAll, prefix: str) -> list[str]:
    """Run histories, reduce those that fail, write them into folders, and return their descriptions."""
    failing_histories = [
        (history, problems) for history, problems in zip(candidates, run_all(candidates), strict=True) if problems
    ]
    return [
        _write_reproduction(FOLDER / f"{prefix}-{number}", *reduce_history(history, problems, run_all))
        for number, (history, problems) in enumerate(failing_histories, 1)
    ]


def reduce_history(
    history: GeneratedHistory, problems_of_history: Problems, run_all: RunAll
) -> tuple[GeneratedHistory, Problems]:
    """Remove actions and replicas from a failing history as long as it still fails. Return the reduced history and its
    problems."""
    while candidates := list(_reductions(history)):
        results = zip(candidates, run_all(candidates), strict=True)
        if (
            failing_candidate := next(((candidate, problems) for candidate, problems in results if problems), None)
        ) is None:
            break
        history, problems_of_history = failing_candidate
    return history, problems_of_history


def _reductions(history: GeneratedHistory) -> Iterator[GeneratedHistory]:
    actions = history.actions
    for index in range(len(actions)):
        yield replace(history, actions=(*actions[:index], *actions[index + 1 :]))
    if history.replicas > 1:
        yield replace(history, replicas=1)


def _write_reproduction(folder: Path, history: GeneratedHistory, problems: Problems) -> str:
    reproduction.write(folder, history, problems)
    return "\n".join([str(history), *problems, *reproduction.commands(history), f"kept in {folder}"])
