"""A search for changes after which a set ends in a wrong state, and the reduction of such changes to few."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from conformance.nemesis.changes.desired import SetChange
from conformance.nemesis.changes.generated import fixed_sequences, random_changes
from conformance.nemesis.changes.playing import ChangeRunner

REPLAYS = 3
"""The number of times that a set must end in a wrong state before its changes count as a finding."""
MAX_EXAMPLES = 100_000
"""Practically unlimited: a search ends when its time is up."""


class TimeIsUp(BaseException):
    """Ends a search, even one with a finding. Hypothesis would treat a subclass of Exception as a failed example."""


@dataclass(frozen=True)
class Divergence:
    """Changes after which a set ended in a wrong state, in `bad` of `played` runs. `lines` are the differences."""

    changes: tuple[SetChange, ...]
    lines: tuple[str, ...]
    bad: int
    played: int

    @property
    def is_finding(self) -> bool:
        """Return whether the set ended in a wrong state every time, so that the changes are a finding."""
        return self.bad == self.played


@dataclass
class Search:
    """Searches until the `clock` is past `deadline`, or only until the first finding if `stop_at_first` is set.
    `report` is called before changes are run."""

    player: ChangeRunner
    deadline: float
    report: Callable[[Sequence[SetChange]], None]
    deviations: list[Divergence] = field(default_factory=list)
    stop_at_first: bool = False
    clock: Callable[[], float] = time.monotonic

    def run(self, seed: int) -> None:
        """Find one deviation after the other. Raises NotAtRest if a set that was brought directly to the desired state
        does not come to rest."""
        numbers = random.Random(seed)
        try:
            for changes in fixed_sequences():
                self._try(changes)
            while (smallest := self._find_smallest(numbers)) is not None:
                self._record(smallest)
        except TimeIsUp:
            pass

    def _try(self, changes: Sequence[SetChange]) -> None:
        if self.clock() > self.deadline:
            raise TimeIsUp
        if not any(contains(changes, deviation.changes) for deviation in self.deviations):
            self.report(changes)
            if self.player.find_differences(changes):
                self._record(changes)

    def _record(self, changes: Sequence[SetChange]) -> None:
        self.deviations.append(self._confirm(changes))
        if self.stop_at_first and self.deviations[-1].is_finding:
            raise TimeIsUp

    def _find_smallest(self, numbers: random.Random) -> list[SetChange] | None:
        has_failed = False

        def has_differences(changes: list[SetChange]) -> bool:
            nonlocal has_failed
            if any(contains(changes, deviation.changes) for deviation in self.deviations):
                return False
            if (differences := self.player.known_differences(changes)) is None:
                if self.clock() > self.deadline:
                    if has_failed:
                        return False  # stop shrinking what was found
                    raise TimeIsUp
                self.report(changes)
                differences = self.player.find_differences(changes)
            has_failed = has_failed or bool(differences)
            return bool(differences)

        options = settings(
            max_examples=MAX_EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        try:
            return find(random_changes(), has_differences, settings=options, random=numbers)
        except NoSuchExample:
            return None

    def _confirm(self, smallest: Sequence[SetChange]) -> Divergence:
        lines, bad_count, run_count = self.player.known_differences(smallest) or [], 1, 1
        while run_count < REPLAYS and bad_count == run_count:
            bad_count += bool(self.player.run_again(smallest))
            run_count += 1
        return Divergence(tuple(smallest), tuple(lines), bad_count, run_count)


def contains(changes: Sequence[SetChange], part: Sequence[SetChange]) -> bool:
    """Return whether `changes` contain the kinds of changes of `part`, in the same order. Such changes show nothing
    new."""
    remaining = iter((change.what, change.part) for change in changes)
    return all((change.what, change.part) in remaining for change in part)
