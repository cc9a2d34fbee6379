"""Draws histories, makes those that go wrong smaller by leaving things out, and keeps them for people.

Where a history takes seconds, Hypothesis only draws: many are played side by side, and what can be left out of one that
goes wrong is tried side by side, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tests.coherent.histories import reproduction
from tests.coherent.histories.model import Change, GeneratedHistory, histories

FOLDER = Path(__file__).parent.parent.parent.parent / "reports" / "histories"
ALIKE = 2
"""How many histories of one set are played: Hypothesis likes to vary what it has drawn before."""

Problems = list[str]
PlayAll = Callable[[Sequence[GeneratedHistory]], Sequence[Problems]]


def drawn(count: int) -> list[GeneratedHistory]:
    """So many histories in which something changes."""
    found: dict[GeneratedHistory, None] = {}

    @settings(
        max_examples=4 * count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories())
    def draw(history: GeneratedHistory) -> None:
        alike = sum(each.parts == history.parts for each in found)
        if alike < ALIKE and any(isinstance(action, Change) for action in history.actions):
            found[history] = None

    draw()
    return list(found)[-count:]


def counterexamples(wanted: Sequence[GeneratedHistory], play_all: PlayAll, where: str) -> list[str]:
    """Play histories; returns those that go wrong as texts, small, and keeps them in a folder."""
    wrong = [(history, found) for history, found in zip(wanted, play_all(wanted), strict=True) if found]
    return [
        _kept(FOLDER / f"{where}-{number}", *smaller(history, found, play_all))
        for number, (history, found) in enumerate(wrong, 1)
    ]


def smaller(history: GeneratedHistory, wrong: Problems, play_all: PlayAll) -> tuple[GeneratedHistory, Problems]:
    """Leave out what is not needed: without any further action or replica, the history that remains breaks no rule."""
    while candidates := list(_with_less(history)):
        found = zip(candidates, play_all(candidates), strict=True)
        if (bad := next(((each, problems) for each, problems in found if problems), None)) is None:
            break
        history, wrong = bad
    return history, wrong


def _with_less(history: GeneratedHistory) -> Iterator[GeneratedHistory]:
    actions = history.actions
    for index in range(len(actions)):
        yield GeneratedHistory(history.parts, history.replicas, (*actions[:index], *actions[index + 1 :]))
    if history.replicas > 1:
        yield GeneratedHistory(history.parts, 1, actions)


def _kept(folder: Path, history: GeneratedHistory, problems: Problems) -> str:
    reproduction.write(folder, history, problems)
    return "\n".join([str(history), *problems, *reproduction.commands(history), f"kept in {folder}"])
