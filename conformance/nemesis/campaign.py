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
    def fails_always(self) -> bool:
        """Return whether the plan ended badly every time, as often as a finding requires."""
        return self.bad == self.played == REPLAYS


@dataclass
class ScenarioResults:
    """The results of one scenario. `refusal` is the reason why the scenario could not be run, or empty."""

    scenario: FaultScenario
    faultless_runs: FaultlessRuns | None = None
    refusal: str = ""
    plans: int = 0
    tried: list[PlanTrial] = field(default_factory=list)
    confirmed_differences: set[tuple[str, ...]] = field(default_factory=set)
    """The differences for which the scenario has been replayed without a fault."""
    unprovoked_lines: set[str] = field(default_factory=set)
    """Lines that differed before a fault was injected."""

    def is_finding(self, trial: PlanTrial) -> bool:
        """Return whether a plan is a finding: it ended badly every time, and not only because of lines that may differ
        by chance (`chance_lines`)."""
        return trial.fails_always and not self.chance_lines() >= set(trial.lines)

    def is_unstable(self, trial: PlanTrial) -> bool:
        """Return whether a plan ended badly but is not a finding."""
        return trial.bad > 0 and not self.is_finding(trial)

    def findings(self) -> list[PlanTrial]:
        """Return the plans that are findings."""
        return [tried for tried in self.tried if self.is_finding(tried)]

    def chance_lines(self) -> set[str]:
        """Return the lines that differed before a fault was injected, and the lines that differed before the end in
        only some runs of a plan. An end that differs in only some runs is not included: it depends on when the fault
        was injected, and is still an effect of the fault."""
        inconsistent_lines = (tried.lines for tried in self.tried if tried.way and tried.bad and not tried.fails_always)
        return self.unprovoked_lines.union(*inconsistent_lines)


def missing_requirement(judged: Descriptor, scenario: FaultScenario) -> str:
    """Return the reason why an implementation cannot run a scenario, or an empty string if it can."""
    if missing := sorted(scenario.requires - judged.features):
        return f"{judged.name} does not claim the feature {', '.join(missing)}"
    return (
        f"{judged.name} names no earlier version of itself"
        if scenario.starts_with_earlier_version and not judged.upgrades
        else ""
    )


class Journal:
    """The file of a campaign with the plans that have been tried so far, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        complete_lines = (
            bounded.content(path, bounded.MAX_LOG_BYTES, str(path)).rpartition(b"\n")[0] if path.exists() else b""
        )
        decode, hint = msgspec.json.Decoder(PlanTrial).decode, "give a new folder"
        trials = [
            bounded.decode_line(decode, line, f"{path}:{number}", hint=hint)
            for number, line in enumerate(complete_lines.splitlines(), 1)
        ]
        self.trials = {tried.plan: tried for tried in trials}
        if complete_lines:  # the text after the last line break was still being written when the campaign was killed
            with path.open("r+b") as file:
                file.truncate(len(complete_lines) + 1)

    def add(self, trial: PlanTrial) -> None:
        """Append the result of a plan."""
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(trial) + b"\n")
        self.trials[trial.plan] = trial


class Campaign:
    """Runs plans on one or several testbeds, whose clusters are independent of each other.

    `record_outcome` is called with bad outcomes, by one testbed at a time. Only points whose text contains `point_text`
    are used. If `stop_at_first` is set, the campaign ends with the first finding.
    """

    def __init__(
        self,
        beds: Sequence[FaultTestbed],
        journal: Journal,
        report: ProgressReporter,
        record_outcome: Callable[[FaultOutcome], Any],
        *,
        point_text: str = "",
        stop_at_first: bool = False,
    ) -> None:
        self._beds, self._journal, self._report, self._record_outcome = beds, journal, report, record_outcome
        self._point_text, self._stop_at_first = point_text, stop_at_first
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.results: list[ScenarioResults] = []
        """The results so far, one entry for each scenario."""

    def run(self, scenarios: Sequence[FaultScenario], faults: Sequence[Fault], budget: float) -> None:
        """Run the plans of each scenario. `budget` is the time in seconds for all scenarios, which share it evenly.
        Raises HarnessError if the suite is at fault, or NotStarted if the role does not start again."""
        deadline = time.monotonic() + budget
        for number, scenario in enumerate(scenarios):
            scenario_results = ScenarioResults(scenario)
            self.results.append(scenario_results)
            if missing := missing_requirement(self._beds[0].descriptor, scenario):
                scenario_results.refusal = missing
                continue
            self._report(scenario.name, "playing it without a fault")
            try:
                scenario_results.faultless_runs = learn(self._beds[0], scenario)
            except NotAtRest as error:
                scenario_results.refusal = str(error)
                continue
            points = [point for point in scenario_results.faultless_runs.points if self._point_text in str(point)]
            plans = choice.plans(scenario.name, points, faults)
            scenario_results.plans = len(plans)
            share = (deadline - time.monotonic()) / (len(scenarios) - number)
            self._run_plans(scenario_results, plans, time.monotonic() + share)
            if self._stopped.is_set():
                return

    def _run_plans(self, scenario_results: ScenarioResults, plans: Sequence[FaultPlan], deadline: float) -> None:
        scenario_results.tried += [self._journal.trials[plan] for plan in plans if plan in self._journal.trials]
        remaining_plans = iter([plan for plan in plans if plan not in self._journal.trials])
        with ThreadPoolExecutor(len(self._beds), "bed") as pool:
            lanes = [
                pool.submit(self._run_lane, bed, scenario_results, remaining_plans, deadline) for bed in self._beds
            ]
            try:
                for lane in lanes:
                    lane.result()
            except BaseException:
                for bed in self._beds:
                    bed.abandoned.set()  # so that the other testbeds stop at once after an error or Ctrl-C
                raise
            finally:
                self._stopped.set()
        if not (self._stop_at_first and scenario_results.findings()):
            self._stopped.clear()

    def _run_lane(
        self,
        bed: FaultTestbed,
        scenario_results: ScenarioResults,
        remaining_plans: Iterator[FaultPlan],
        deadline: float,
    ) -> None:
        """Run plans one after the other on one testbed."""
        while not self._stopped.is_set():
            with self._lock:
                remaining, plan = deadline - time.monotonic(), next(remaining_plans, None)
                if plan is None or remaining <= 0:
                    return
                finding_count = len(scenario_results.findings())
                progress = f"{len(scenario_results.tried)} of {scenario_results.plans} plans, {finding_count} findings"
                self._report(scenario_results.scenario.name, f"{progress}, {remaining / 60:.0f} min left: {plan}")
            try:
                trial = self._try_plan(bed, scenario_results, plan)
            except Abandoned:
                return
            with self._lock:
                self._journal.add(trial)
                scenario_results.tried.append(trial)
            if self._stop_at_first and scenario_results.is_finding(trial):
                self._stopped.set()

    def _try_plan(self, bed: FaultTestbed, scenario_results: ScenarioResults, plan: FaultPlan) -> PlanTrial:
        """Run a plan. If it ends badly, repeat it as often as a finding requires, each time on a restarted role. The
        repetitions count as bad only if all ends have some lines in common."""
        start = time.monotonic()
        outcome = self._run_once(bed, scenario_results, plan)
        if outcome.verdict not in BROKEN:
            return PlanTrial(plan, outcome.verdict, outcome.seconds)
        with self._lock:
            self._record_outcome(outcome)
            if scenario_results.chance_lines() >= set(
                outcome.lines
            ):  # not a finding, however often the plan ends like this
                return PlanTrial(
                    plan, outcome.verdict, outcome.seconds, outcome.place, outcome.lines, 1, 1, outcome.way
                )
        bad_count, count, is_still_bad, common_lines = 1, 1, True, set(outcome.lines)
        while count < REPLAYS and is_still_bad:
            bed.restart()
            repetition = self._run_once(bed, scenario_results, plan)
            common_lines &= set(repetition.lines)
            is_still_bad = repetition.verdict in BROKEN and bool(common_lines)
            count += 1
            bad_count += is_still_bad
        bed.restart()
        lines = outcome.lines
        if bad_count == REPLAYS:
            try:
                if self._learn_more(bed, scenario_results, outcome):
                    return self._try_plan(bed, scenario_results, plan)
            except NotAtRest as error:
                scenario_results.confirmed_differences.discard(outcome.lines)  # nothing was confirmed
                count, lines = count + 1, (f"without the fault, too, it may not come to rest: {error}", *lines)
        return PlanTrial(
            plan, outcome.verdict, time.monotonic() - start, outcome.place, lines, bad_count, count, outcome.way
        )

    def _run_once(self, bed: FaultTestbed, scenario_results: ScenarioResults, plan: FaultPlan) -> FaultOutcome:
        assert scenario_results.faultless_runs is not None, "no plan is played before its scenario is learned"
        outcome = play(bed, scenario_results.scenario, scenario_results.faultless_runs, plan)
        if outcome.verdict not in BROKEN and outcome.lines:
            with self._lock:
                scenario_results.unprovoked_lines.update(outcome.lines)
        return outcome

    def _learn_more(self, bed: FaultTestbed, scenario_results: ScenarioResults, outcome: FaultOutcome) -> bool:
        """Run the scenario REPLAYS times without the fault, once for each distinct difference. Return whether the runs
        have shown any new variation: differences that occur without the fault are not effects of the fault. Raises
        NotAtRest."""
        with self._lock:
            if outcome.lines in scenario_results.confirmed_differences:
                return False
            scenario_results.confirmed_differences.add(outcome.lines)
        assert scenario_results.faultless_runs is not None
        longer_runs = learn_more(bed, scenario_results.scenario, scenario_results.faultless_runs, REPLAYS)
        with self._lock:
            longer_runs = replace(
                longer_runs, runs=[*scenario_results.faultless_runs.runs, *longer_runs.runs[-REPLAYS:]]
            )  # another lane may have learned meanwhile
            has_changed = not longer_runs.has_same_results(scenario_results.faultless_runs)
            scenario_results.faultless_runs = longer_runs
        return has_changed
