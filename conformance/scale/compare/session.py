"""Runs the rounds of a comparison. Each run is a separate process on a new cluster, and writes its result to a file.

The folder of a comparison contains everything that is needed to continue after a kill: `plan.json`, and two results for
each finished round. Results of the warm-up are kept, but not used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from conformance import bounded, disk, documents
from conformance.cluster.progress import ProgressReporter
from conformance.errors import Exit, HarnessError, UsageError
from conformance.implementation.process import ProcessGroup
from conformance.scale import results
from conformance.scale.compare.rounds import Round, Side, judge_round, side_order
from conformance.scale.compare.sides import MeasuredSide
from conformance.scale.compare.validity import Limits, failures, foreign_share, summary
from conformance.scale.results import Result
from grove_conformance import start

PLAN_FILE = "plan.json"
CLEANUP_SECONDS = 60.0
"""Seconds that an interrupted run may take to end."""
Runner = Callable[[MeasuredSide, Path], None]
"""Measures a side once and writes the result to a path. Raises HarnessError if there is no result."""


@dataclass(frozen=True)
class ComparisonPlan:
    """The plan of a session. Rounds with a disturbance are repeated, at most `spare` times in total."""

    base: MeasuredSide
    head: MeasuredSide
    scenario: str
    scheduler: str
    rounds: int
    warm_up: int
    spare: int
    seed: int
    digest: str
    """The digest of the scenario."""

    def side(self, side: Side) -> MeasuredSide:
        """Return the descriptor and the settings of a side."""
        return self.base if side == Side.BASE else self.head


def save_plan(plan: ComparisonPlan, folder: Path) -> None:
    """Write the plan to a new folder. If the folder already has a plan, check that it is the same. Raises UsageError if
    the plans differ, or if the folder has other files."""
    disk.require_space(folder, 0, location=f"--dir {folder}", hint="give another folder")
    path, plan_document = folder / PLAN_FILE, orjson.loads(orjson.dumps(asdict(plan)))
    if not path.exists():
        if any(folder.iterdir()):
            raise UsageError(
                "is not empty, and has no plan", where=documents.display_path(folder), hint="give a new folder"
            )
        with disk.usage_errors(location=f"--dir {folder}", hint="give another folder"):
            path.write_bytes(orjson.dumps(plan_document, option=orjson.OPT_INDENT_2))
        return
    location = documents.display_path(path)
    stored_plan = bounded.json(bounded.content(path, bounded.MAX_BYTES, location), location, "give a new folder")
    changed_fields = [
        name
        for name in plan_document
        if not isinstance(stored_plan, dict) or stored_plan.get(name) != plan_document[name]
    ]
    if changed_fields := [name for name in changed_fields if name not in ("rounds", "spare")]:
        raise UsageError(
            f"was begun with another {', '.join(changed_fields)}",
            where=documents.display_path(folder),
            hint="give a new folder",
        )


class Session:
    """Runs the rounds that are not finished yet."""

    def __init__(
        self,
        plan: ComparisonPlan,
        folder: Path,
        run: Runner,
        limits: Limits,
        report: ProgressReporter,
        *,
        counts_only: bool = False,
    ) -> None:
        """With `counts_only`, disturbed times do not matter: no round is repeated, and disturbances do not end the
        session early."""
        self._plan, self._folder, self._run, self._limits, self._report = plan, folder, run, limits, report
        self._counts_only = counts_only
        self._foreign_shares: list[float] = []
        """The share of the CPU that other processes used in each pair, including the warm-up; 0 if it was below the
        limit."""
        self._durations: list[float] = []
        self._remaining_plays = 0

    def play(self) -> list[Round]:
        """Run rounds until enough of them are usable or no spare rounds are left, and return all rounds. If a side
        fails in the first pair (including the warm-up), no other round is run, because the rest would also fail. If
        other processes use too much CPU in each of the first two pairs, the second pair is the last one."""
        plan = self._plan
        limit = plan.rounds + plan.spare
        orders = side_order(limit, plan.seed)
        self._remaining_plays = 2 * (plan.rounds + plan.warm_up)
        for number in range(1, plan.warm_up + 1):
            pair = self._run_pair(f"warm-up {number} of {plan.warm_up}", f"warm-up-{number:02}", orders[0])
            if self._report_failures(f"warm-up {number}", pair):
                return [judge_round(1, pair[Side.BASE], pair[Side.HEAD], self._limits)]
        rounds: list[Round] = []
        while len(rounds) < limit and self._count_usable(rounds) < plan.rounds:
            number = len(rounds) + 1
            self._remaining_plays = 2 * (plan.rounds - self._count_usable(rounds))
            pair = self._run_pair(f"round {number} of {plan.rounds}", f"round-{number:02}", orders[number - 1])
            round_ = judge_round(number, pair[Side.BASE], pair[Side.HEAD], self._limits)
            if round_.unused:
                self._report(f"round {number}", f"times not used: {summary(round_.unused)}")
            rounds.append(round_)
            if (number == 1 and self._report_failures("round 1", pair)) or self._report_excessive_load():
                break
        return rounds

    def _report_excessive_load(self) -> bool:
        """Return whether other processes used too much CPU in every pair so far, and in at least two pairs, and report
        this."""
        if self._counts_only or len(self._foreign_shares) < 2 or not all(self._foreign_shares):
            return False
        self._report(
            "the comparison ends here",
            f"other processes use {min(self._foreign_shares):.0%} of the CPU, so no time would be usable — wait until "
            f"the machine is idle, raise --most-foreign, or go on with --counts --rounds 3 --dir {self._folder}",
        )
        return True

    def _report_failures(self, subject: str, pair: Mapping[Side, Result]) -> bool:
        """Return whether a side did not do its work, and report this."""
        reasons = [f"{side}: {reason}" for side, result in pair.items() for reason in failures(result)]
        if reasons:
            self._report(subject, f"the comparison ends here: {'; '.join(reasons)}")
        return bool(reasons)

    def measure_heads(self, count: int) -> list[Result]:
        """Measure only the head, for a comparison with a stored base, and return the results."""
        self._remaining_plays = count
        head_results = []
        for number in range(1, count + 1):
            path = self._folder / f"round-{number:02}-{Side.HEAD}.json"
            if not path.exists():
                self._run_timed(f"round {number} of {count}", Side.HEAD, path)
            head_results.append(results.read(path))
        return head_results

    def _count_usable(self, rounds: list[Round]) -> int:
        """Return the number of rounds that need no repetition. A failure of the implementation would only happen
        again."""
        return sum(self._counts_only or not round_.unused or round_.failed for round_ in rounds)

    def _run_pair(self, subject: str, stem: str, sides: tuple[Side, Side]) -> Mapping[Side, Result]:
        """Return the results of a round: stored results if the round is finished, and otherwise new results."""
        paths = {side: self._folder / f"{stem}-{side}.json" for side in Side}
        if not all(path.exists() for path in paths.values()):
            for path in paths.values():  # do not keep half a round: its partner would be measured much later
                path.unlink(missing_ok=True)
            for side in sides:
                self._run_timed(subject, side, paths[side])
        pair = {side: results.read(path) for side, path in paths.items()}
        self._foreign_shares.append(max(foreign_share(result, self._limits) for result in pair.values()))
        return pair

    def _run_timed(self, subject: str, side: Side, path: Path) -> None:
        self._report(subject, f"{side}{self._remaining_text()}")
        start_time = time.monotonic()
        self._run(self._plan.side(side), path)
        self._durations.append(time.monotonic() - start_time)
        self._remaining_plays = max(0, self._remaining_plays - 1)

    def _remaining_text(self) -> str:
        if not self._durations:
            return ""
        minutes = self._remaining_plays * sum(self._durations) / len(self._durations) / 60
        duration = f"about {minutes:.0f} min" if minutes >= 1 else "less than a minute"
        return f", {duration} left" + (", more if further rounds are disturbed" if any(self._foreign_shares) else "")


def subprocess_runner(scenario: str, scheduler: str) -> Runner:
    """Return a runner that starts `grove-conformance scale` and writes its output next to the result."""

    def run(side: MeasuredSide, path: Path) -> None:
        log = path.with_suffix(".log")
        log.unlink(missing_ok=True)
        command = _command(side, scenario, scheduler, path)
        code = _exit_code_of(ProcessGroup(command, environment=os.environ, directory=Path.cwd(), log=log))
        if code not in (Exit.CONFORMANT, Exit.NOT_CONFORMANT) or not path.exists():
            path.unlink(missing_ok=True)
            lines = log.read_text(errors="replace").strip().splitlines()
            last_line = lines[-1] if lines else f"exit code {code}"
            raise _error(code)(last_line, where=documents.display_path(log))

    return run


def _command(side: MeasuredSide, scenario: str, scheduler: str, path: Path) -> list[str]:
    command = start.command("conformance", "scale", *side.arguments())
    return [*command, "--scenario", scenario, "--scheduler", scheduler, "--result", str(path)]


def _exit_code_of(run: ProcessGroup) -> int:
    """Return the exit code of a run. Ctrl-C stops the run and gives it time to remove its cluster. If this process is
    killed, the run and all of its processes are also killed."""
    try:
        return run.wait().code
    finally:
        run.stop(CLEANUP_SECONDS)


def _error(code: int) -> type[UsageError] | type[HarnessError]:
    return UsageError if code == Exit.USAGE else HarnessError
