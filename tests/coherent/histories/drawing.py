"""Draw histories, make those that go wrong smaller by leaving things out, and keep them for people.

Where a history takes seconds, Hypothesis only draws: many are played side by side, and what can be left out of one that
goes wrong is tried side by side, too.
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
"""The same histories are drawn for the same seed."""
ALIKE = 2
"""How many histories of one set are played: Hypothesis likes to vary what it has drawn before."""

Problems = list[str]
PlayAll = Callable[[Sequence[GeneratedHistory]], Sequence[Problems]]


def drawn(count: int) -> list[GeneratedHistory]:
    """So many histories in which something changes while the garbage collector stands still."""
    return [_paused(history) for history in _drawn(histories(), count)]


def switched(count: int) -> list[GeneratedHistory]:
    """So many histories for each direction in which the strategy can change during an update."""
    return [history for direction in DIRECTIONS for history in _drawn(switches(*direction), count)]


def _paused(history: GeneratedHistory) -> GeneratedHistory:
    """The history with a pause of the garbage collector, before the first change if it has none."""
    if PauseCollector() in history.actions:
        return history
    first = next(index for index, action in enumerate(history.actions) if isinstance(action, Change))
    return replace(history, actions=(*history.actions[:first], PauseCollector(), *history.actions[first:]))


def _drawn(kind: SearchStrategy[GeneratedHistory], count: int) -> list[GeneratedHistory]:
    examples: dict[GeneratedHistory, None] = {}

    @seed(SEED)
    @settings(
        max_examples=max(1, 4 * count),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(kind)
    def draw(history: GeneratedHistory) -> None:
        alike = sum(earlier.parts == history.parts for earlier in examples)
        if alike < ALIKE and any(isinstance(action, Change) for action in history.actions):
            examples[history] = None

    draw()
    return list(examples)[-count:] if count else []


def counterexamples(candidates: Sequence[GeneratedHistory], play_all: PlayAll, prefix: str) -> list[str]:
    """Play histories; return those that go wrong as texts, made small, and keep them in a folder."""
    wrong = [
        (history, problems) for history, problems in zip(candidates, play_all(candidates), strict=True) if problems
    ]
    return [
        _write_reproduction(FOLDER / f"{prefix}-{number}", *smaller(history, problems, play_all))
        for number, (history, problems) in enumerate(wrong, 1)
    ]


def smaller(history: GeneratedHistory, wrong: Problems, play_all: PlayAll) -> tuple[GeneratedHistory, Problems]:
    """Leave out what is not needed: without any further action or replica, the history that remains breaks no rule."""
    while candidates := list(_with_less(history)):
        played = zip(candidates, play_all(candidates), strict=True)
        if (bad := next(((candidate, problems) for candidate, problems in played if problems), None)) is None:
            break
        history, wrong = bad
    return history, wrong


def _with_less(history: GeneratedHistory) -> Iterator[GeneratedHistory]:
    actions = history.actions
    for index in range(len(actions)):
        yield replace(history, actions=(*actions[:index], *actions[index + 1 :]))
    if history.replicas > 1:
        yield replace(history, replicas=1)


def _write_reproduction(folder: Path, history: GeneratedHistory, problems: Problems) -> str:
    reproduction.write(folder, history, problems)
    return "\n".join([str(history), *problems, *reproduction.commands(history), f"kept in {folder}"])
