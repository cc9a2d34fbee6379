"""A campaign: each scenario is first run without faults, and then plans are run until all are done or the time is up.

Each result is immediately written to the journal, as one line, so that a stopped campaign can be resumed (`--resume`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from conformance import bounded
from conformance.cluster.progress import ProgressReporter
from conformance.implementation.descriptor import Descriptor
from conformance.nemesis import choice
from conformance.nemesis.bed import FaultTestbed
from conformance.nemesis.catalog import Fault
from conformance.nemesis.play import BROKEN, FaultlessRuns, FaultOutcome, learn, learn_more, play
from conformance.nemesis.points import FaultPlan
from conformance.nemesis.rest import Abandoned, NotAtRest
from conformance.nemesis.scenario import FaultScenario

REPLAYS = 3
"""The number of times that a plan must end badly before it counts as a finding."""


class PlanTrial(msgspec.Struct, rename="camel", frozen=True):
    """A plan and its results: it was run `played` times and ended badly `bad` times. `way`: the end was the same, and
    only what happened before it differed."""

    plan: FaultPlan
    verdict: str
    seconds: float
    where: str = ""
    lines: tuple[str, ...] = ()
    bad: int = 0
    played: int = 1
    way: bool = False

    @property
    def always(self) -> bool:
        """Return whether the plan ended badly every time, as often as a finding requires."""
        return self.bad == self.played == REPLAYS


@dataclass
class ScenarioResults:
    """The results of one scenario. `refused` is the reason why the scenario could not be run, or empty."""

    scenario: FaultScenario
    course: FaultlessRuns | None = None
    refused: str = ""
    plans: int = 0
    tried: list[PlanTrial] = field(default_factory=list)
    confirmed: set[tuple[str, ...]] = field(default_factory=set)
    """The differences for which the scenario has been replayed without a fault."""
    unprovoked: set[str] = field(default_factory=set)
    """Lines that differed before a fault was injected."""

    def finding(self, tried: PlanTrial) -> bool:
        """Return whether a plan is a finding: it ended badly every time, and not only because of lines that may differ
        by chance (`by_chance`)."""
        return tried.always and not self.by_chance() >= set(tried.lines)

    def unstable(self, tried: PlanTrial) -> bool:
        """Return whether a plan ended badly but is not a finding."""
        return tried.bad > 0 and not self.finding(tried)

    def findings(self) -> list[PlanTrial]:
        """Return the plans that are findings."""
        return [tried for tried in self.tried if self.finding(tried)]

    def by_chance(self) -> set[str]:
        """Return the lines that differed before a fault was injected, and the lines that differed before the end in
        only some runs of a plan. An end that differs in only some runs is not included: it depends on when the fault
        was injected, and is still an effect of the fault."""
        shaky = (tried.lines for tried in self.tried if tried.way and tried.bad and not tried.always)
        return self.unprovoked.union(*shaky)


def unmet(judged: Descriptor, scenario: FaultScenario) -> str:
    """Return the reason why an implementation cannot run a scenario, or an empty string if it can."""
    if missing := sorted(scenario.requires - judged.features):
        return f"{judged.name} does not claim the feature {', '.join(missing)}"
    return f"{judged.name} names no earlier version of itself" if scenario.earlier and not judged.upgrades else ""


class Journal:
    """The file of a campaign with the plans that have been tried so far, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        complete_lines = bounded.content(path, bounded.LOG, str(path)).rpartition(b"\n")[0] if path.exists() else b""
        decode, hint = msgspec.json.Decoder(PlanTrial).decode, "give a new folder"
        trials = [
            bounded.decoded(decode, line, f"{path}:{number}", hint=hint)
            for number, line in enumerate(complete_lines.splitlines(), 1)
        ]
        self.trials = {tried.plan: tried for tried in trials}
        if complete_lines:  # the text after the last line break was still being written when the campaign was killed
            with path.open("r+b") as file:
                file.truncate(len(complete_lines) + 1)

    def add(self, tried: PlanTrial) -> None:
        """Append the result of a plan."""
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(tried) + b"\n")
        self.trials[tried.plan] = tried


class Campaign:
    """Runs plans on one or several testbeds, whose clusters are independent of each other.

    `keep` is called with bad outcomes, by one testbed at a time. Only points whose text contains `at` are used. If
    `first` is set, the campaign ends with the first finding.
    """

    def __init__(
        self,
        beds: Sequence[FaultTestbed],
        journal: Journal,
        report: ProgressReporter,
        keep: Callable[[FaultOutcome], Any],
        *,
        at: str = "",
        first: bool = False,
    ) -> None:
        self._beds, self._journal, self._report, self._keep = beds, journal, report, keep
        self._point_text, self._stop_at_first = at, first
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.done: list[ScenarioResults] = []
        """The results so far, one entry for each scenario."""

    def run(self, scenarios: Sequence[FaultScenario], faults: Sequence[Fault], budget: float) -> None:
        """Run the plans of each scenario. `budget` is the time in seconds for all scenarios, which share it evenly.
        Raises HarnessError if the suite is at fault, or NotStarted if the role does not start again."""
        end = time.monotonic() + budget
        for number, scenario in enumerate(scenarios):
            played = ScenarioResults(scenario)
            self.done.append(played)
            if missing := unmet(self._beds[0].descriptor, scenario):
                played.refused = missing
                continue
            self._report(scenario.name, "playing it without a fault")
            try:
                played.course = learn(self._beds[0], scenario)
            except NotAtRest as error:
                played.refused = str(error)
                continue
            points = [point for point in played.course.points if self._point_text in str(point)]
            plans = choice.plans(scenario.name, points, faults)
            played.plans = len(plans)
            share = (end - time.monotonic()) / (len(scenarios) - number)
            self._run_plans(played, plans, time.monotonic() + share)
            if self._stopped.is_set():
                return

    def _run_plans(self, played: ScenarioResults, plans: Sequence[FaultPlan], end: float) -> None:
        played.tried += [self._journal.trials[plan] for plan in plans if plan in self._journal.trials]
        remaining_plans = iter([plan for plan in plans if plan not in self._journal.trials])
        with ThreadPoolExecutor(len(self._beds), "bed") as pool:
            lanes = [pool.submit(self._run_lane, bed, played, remaining_plans, end) for bed in self._beds]
            try:
                for lane in lanes:
                    lane.result()
            except BaseException:
                for bed in self._beds:
                    bed.abandoned.set()  # so that the other testbeds stop at once after an error or Ctrl-C
                raise
            finally:
                self._stopped.set()
        if not (self._stop_at_first and played.findings()):
            self._stopped.clear()

    def _run_lane(
        self, bed: FaultTestbed, played: ScenarioResults, remaining_plans: Iterator[FaultPlan], end: float
    ) -> None:
        """Run plans one after the other on one testbed."""
        while not self._stopped.is_set():
            with self._lock:
                remaining, plan = end - time.monotonic(), next(remaining_plans, None)
                if plan is None or remaining <= 0:
                    return
                finding_count = len(played.findings())
                progress = f"{len(played.tried)} of {played.plans} plans, {finding_count} findings"
                self._report(played.scenario.name, f"{progress}, {remaining / 60:.0f} min left: {plan}")
            try:
                tried = self._try_plan(bed, played, plan)
            except Abandoned:
                return
            with self._lock:
                self._journal.add(tried)
                played.tried.append(tried)
            if self._stop_at_first and played.finding(tried):
                self._stopped.set()

    def _try_plan(self, bed: FaultTestbed, played: ScenarioResults, plan: FaultPlan) -> PlanTrial:
        """Run a plan. If it ends badly, repeat it as often as a finding requires, each time on a restarted role. The
        repetitions count as bad only if all ends have some lines in common."""
        start = time.monotonic()
        outcome = self._run_once(bed, played, plan)
        if outcome.verdict not in BROKEN:
            return PlanTrial(plan, outcome.verdict, outcome.seconds)
        with self._lock:
            self._keep(outcome)
            if played.by_chance() >= set(outcome.lines):  # not a finding, however often the plan ends like this
                return PlanTrial(
                    plan, outcome.verdict, outcome.seconds, outcome.place, outcome.lines, 1, 1, outcome.way
                )
        bad_count, count, still_bad, common_lines = 1, 1, True, set(outcome.lines)
        while count < REPLAYS and still_bad:
            bed.restart()
            repetition = self._run_once(bed, played, plan)
            common_lines &= set(repetition.lines)
            still_bad = repetition.verdict in BROKEN and bool(common_lines)
            count += 1
            bad_count += still_bad
        bed.restart()
        lines = outcome.lines
        if bad_count == REPLAYS:
            try:
                if self._learn_more(bed, played, outcome):
                    return self._try_plan(bed, played, plan)
            except NotAtRest as error:
                played.confirmed.discard(outcome.lines)  # nothing was confirmed
                count, lines = count + 1, (f"without the fault, too, it may not come to rest: {error}", *lines)
        return PlanTrial(
            plan, outcome.verdict, time.monotonic() - start, outcome.place, lines, bad_count, count, outcome.way
        )

    def _run_once(self, bed: FaultTestbed, played: ScenarioResults, plan: FaultPlan) -> FaultOutcome:
        assert played.course is not None, "no plan is played before its scenario is learned"
        outcome = play(bed, played.scenario, played.course, plan)
        if outcome.verdict not in BROKEN and outcome.lines:
            with self._lock:
                played.unprovoked.update(outcome.lines)
        return outcome

    def _learn_more(self, bed: FaultTestbed, played: ScenarioResults, outcome: FaultOutcome) -> bool:
        """Run the scenario REPLAYS times without the fault, once for each distinct difference. Return whether the runs
        have shown any new variation: differences that occur without the fault are not effects of the fault. Raises
        NotAtRest."""
        with self._lock:
            if outcome.lines in played.confirmed:
                return False
            played.confirmed.add(outcome.lines)
        assert played.course is not None
        longer_course = learn_more(bed, played.scenario, played.course, REPLAYS)
        with self._lock:
            longer_course = replace(
                longer_course, runs=[*played.course.runs, *longer_course.runs[-REPLAYS:]]
            )  # another lane may have learned meanwhile
            has_changed = not longer_course.says_the_same(played.course)
            played.course = longer_course
        return has_changed
