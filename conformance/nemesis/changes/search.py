"""Search for changes after which a set ends elsewhere, and make them few."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from conformance.nemesis.changes.generated import generated, usual
from conformance.nemesis.changes.playing import Player
from conformance.nemesis.changes.wanted import Change

REPLAYS = 3
"""How often changes must end elsewhere before they count as a finding."""
EXAMPLES = 100_000
"""More than are ever played: the time ends a search."""


class TimeIsUp(BaseException):
    """Ends a search, also one that has found what it should. Hypothesis would take an Exception for a find."""


@dataclass(frozen=True)
class Found:
    """Changes after which a set ended elsewhere, `bad` of `played` times. `lines` are the difference."""

    changes: tuple[Change, ...]
    lines: tuple[str, ...]
    bad: int
    played: int

    @property
    def finding(self) -> bool:
        """Return whether it counts: it ended elsewhere each time."""
        return self.bad == self.played


@dataclass
class Search:
    """Searches until the `clock` is past `end`, or only until the `first` finding. `tell` is called before changes are
    played."""

    player: Player
    end: float
    tell: Callable[[Sequence[Change]], None]
    found: list[Found] = field(default_factory=list)
    first: bool = False
    clock: Callable[[], float] = time.monotonic

    def run(self, seed: int) -> None:
        """Find one thing after the other. Raises NotAtRest if a set does not come to rest on the straight way."""
        numbers = random.Random(seed)
        try:
            for each in usual():
                self._try(each)
            while (smallest := self._smallest(numbers)) is not None:
                self._keep(smallest)
        except TimeIsUp:
            pass

    def _try(self, each: Sequence[Change]) -> None:
        if self.clock() > self.end:
            raise TimeIsUp
        if not any(contains(each, one.changes) for one in self.found):
            self.tell(each)
            if self.player.differs(each):
                self._keep(each)

    def _keep(self, each: Sequence[Change]) -> None:
        self.found.append(self._confirmed(each))
        if self.first and self.found[-1].finding:
            raise TimeIsUp

    def _smallest(self, numbers: random.Random) -> list[Change] | None:
        failed = False

        def differs(each: list[Change]) -> bool:
            nonlocal failed
            if any(contains(each, one.changes) for one in self.found):
                return False
            if (known := self.player.known(each)) is None:
                if self.clock() > self.end:
                    if failed:
                        return False  # what was found is not made smaller any more
                    raise TimeIsUp
                self.tell(each)
                known = self.player.differs(each)
            failed = failed or bool(known)
            return bool(known)

        options = settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        try:
            return find(generated(), differs, settings=options, random=numbers)
        except NoSuchExample:
            return None

    def _confirmed(self, smallest: Sequence[Change]) -> Found:
        lines, bad, played = self.player.known(smallest) or [], 1, 1
        while played < REPLAYS and bad == played:
            bad += bool(self.player.play_again(smallest))
            played += 1
        return Found(tuple(smallest), tuple(lines), bad, played)


def contains(changes: Sequence[Change], found: Sequence[Change]) -> bool:
    """Return whether the kinds of changes that were found are among others, in their order: these say nothing new."""
    rest = iter((each.what, each.part) for each in changes)
    return all((each.what, each.part) in rest for each in found)
