"""A campaign: the scenarios are learned, then plans are played until all are done or the time is over.

What is done is kept at once, line by line, so that a campaign that was stopped goes on where it was (`--resume`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from conformance.cluster.progress import Report
from conformance.nemesis import choice
from conformance.nemesis.bed import Bed
from conformance.nemesis.catalog import Fault
from conformance.nemesis.play import BROKEN, Course, NotAtRest, Outcome, learn, play
from conformance.nemesis.points import Plan
from conformance.nemesis.scenario import Scenario

REPLAYS = 3
"""How often a plan must end in the same way before it counts as a finding."""


class Tried(msgspec.Struct, rename="camel", frozen=True):
    """One plan that was played: how often it ended badly, of how many times."""

    plan: Plan
    verdict: str
    seconds: float
    where: str = ""
    lines: tuple[str, ...] = ()
    bad: int = 0
    played: int = 1

    @property
    def finding(self) -> bool:
        """Return whether it counts: it ended badly each time."""
        return self.bad == self.played == REPLAYS

    @property
    def unstable(self) -> bool:
        """Return whether it ended badly, but not each time."""
        return 0 < self.bad < self.played


@dataclass
class Played:
    """What a campaign has done with one scenario. `refused` says why it could not be played."""

    scenario: Scenario
    course: Course | None = None
    refused: str = ""
    plans: int = 0
    tried: list[Tried] = field(default_factory=list)


class Journal:
    """What was tried so far, a JSON line each, in a file of a campaign."""

    def __init__(self, path: Path) -> None:
        self._path = path
        whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
        self.known = {tried.plan: tried for tried in map(msgspec.json.Decoder(Tried).decode, whole.splitlines())}
        if whole:  # what follows the last line break was being written when the campaign was killed
            with path.open("r+b") as file:
                file.truncate(len(whole) + 1)

    def add(self, tried: Tried) -> None:
        """Keep what came of a plan."""
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(tried) + b"\n")
        self.known[tried.plan] = tried


def run(
    bed: Bed,
    scenarios: Sequence[Scenario],
    faults: Sequence[Fault],
    budget: float,
    journal: Journal,
    report: Report,
    keep: Callable[[Outcome], Any],
    done: list[Played],
    *,
    at: str = "",
    first: bool = False,
) -> None:
    """Play the plans of each scenario, and add what came of it to `done`.

    `budget`: seconds for all of them together, which they share evenly; `keep` is called with what ended badly; `at`:
    only points whose text has this in it; `first`: end with the first finding. Raises HarnessError, NotStarted.
    """
    end = time.monotonic() + budget
    for number, scenario in enumerate(scenarios):
        played = Played(scenario)
        done.append(played)
        report(scenario.name, "playing it without a fault")
        try:
            played.course = learn(bed, scenario)
        except NotAtRest as error:
            played.refused = str(error)
            continue
        points = [point for point in played.course.points if at in str(point)]
        plans = choice.plans(scenario.name, points, faults)
        played.plans = len(plans)
        share = (end - time.monotonic()) / (len(scenarios) - number)
        _campaign(bed, played, plans, time.monotonic() + share, journal, report, keep, first=first)
        if first and any(tried.finding for tried in played.tried):
            return


def _campaign(
    bed: Bed,
    played: Played,
    plans: Sequence[Plan],
    end: float,
    journal: Journal,
    report: Report,
    keep: Callable[[Outcome], Any],
    *,
    first: bool,
) -> None:
    assert played.course is not None
    for number, plan in enumerate(plans):
        if plan in journal.known:
            played.tried.append(journal.known[plan])
            continue
        if (left := end - time.monotonic()) <= 0:
            return
        bad = sum(tried.finding for tried in played.tried)
        report(
            played.scenario.name, f"plan {number + 1} of {len(plans)}, {bad} findings, {left / 60:.0f} min left: {plan}"
        )
        tried = _try(bed, played.scenario, played.course, plan, keep)
        journal.add(tried)
        played.tried.append(tried)
        if first and tried.finding:
            return


def _try(bed: Bed, scenario: Scenario, course: Course, plan: Plan, keep: Callable[[Outcome], Any]) -> Tried:
    """Play a plan; one that ends badly, as often as a finding asks for, on an operator that was started anew."""
    begin = time.monotonic()
    outcome = play(bed, scenario, course, plan)
    if outcome.verdict not in BROKEN:
        return Tried(plan, outcome.verdict, outcome.seconds)
    keep(outcome)
    bad, count = 1, 1
    while count < REPLAYS:
        bed.restart()
        again = play(bed, scenario, course, plan)
        count += 1
        bad += again.verdict in BROKEN
        if again.verdict not in BROKEN:
            break
    bed.restart()
    return Tried(plan, outcome.verdict, time.monotonic() - begin, outcome.where, outcome.lines, bad, count)
