"""What each scene of the suite costs.

`python -m tests.suite.costs REPORTS…` prints a new fixtures/costs/scenes.yaml, from the ledgers of the runs in these
folders. Only scenes that were played to their end count.

`python -m tests.suite.costs --check REPORTS…` names each scene that took twice the CPU time that the file records.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from conformance import data, formats
from conformance.suite.outcomes import ledger, ledger_file
from conformance.suite.scenes.repeated import without_mark
from conformance.suite.session import shards

FILE = data.folder("fixtures") / "costs" / "scenes.yaml"
MAX_RATIO = 2.0
"""The ratio to the recorded CPU time above which a scene is named."""
SMALL_SECONDS = 2.0
"""A scene that took less CPU time, or for which less is recorded, counts as if it were this much: a second more or less
is chance."""
MIN_SCENES = 20
"""With so many scenes, their median ratio is the speed of the machine, and does not count."""

Times = dict[str, list[float]]
"""Scene → seconds in each run."""


@dataclass
class Measured:
    """How many seconds each scene of some runs took, and each passed test that has no scene, by name."""

    seconds: Times = field(default_factory=lambda: defaultdict(list))
    cpu: Times = field(default_factory=lambda: defaultdict(list))
    """CPU seconds. Tests without a scene, and runs on existing clusters, have none."""

    def add(self, events: Iterable[ledger.AnyEvent]) -> None:
        """Add a run."""
        repeat = 1
        for event in events:
            match event:
                case ledger.RunStarted():
                    repeat = event.repeat
                case ledger.ScenePlayed(ended_by=""):
                    scene = without_mark(event.scene, repeat)
                    self.seconds[scene].append(event.seconds)
                    if event.cpu:
                        self.cpu[scene].append(event.cpu)
                case ledger.TestFinished(scene="", outcome="passed"):
                    self.seconds[without_mark(event.test, repeat)].append(sum(event.seconds.values()))
                case _:
                    pass


def recorded_cpu() -> shards.Costs:
    """Return the CPU seconds of each scene in the file."""
    return shards.by_scene(formats.read(FILE, shards.SceneCosts)[1].cpu)


def document(former_costs: shards.Costs, former_cpu: Mapping[str, float], measured: Measured) -> str:
    """Return the text of the file: the median for each measured scene, and the previous cost for all other scenes."""
    seconds = {scene: max(1, round(statistics.median(times))) for scene, times in measured.seconds.items()}
    cpu = {scene: max(0.1, round(statistics.median(times), 1)) for scene, times in measured.cpu.items()}
    costs = {"seconds": _by_file({**former_costs, **seconds}), "cpu": _by_file({**former_cpu, **cpu})}
    head = FILE.read_text("utf-8").partition("\nseconds:\n")[0] + "\n"
    return head + yaml.safe_dump(costs, sort_keys=False, width=1000)


def _by_file(costs: Mapping[str, float]) -> dict[str, dict[str, float]]:
    costs_by_file: dict[str, dict[str, float]] = {}
    for scene in sorted(costs):
        file, _, name = scene.partition("::")
        costs_by_file.setdefault(file, {})[name] = costs[scene]
    return costs_by_file


def excesses(recorded: Mapping[str, float], measured: Mapping[str, list[float]]) -> list[str]:
    """Return a line for each scene that cost too much, compared with the file and with the other scenes."""
    spent = {scene: statistics.median(times) for scene, times in measured.items() if scene in recorded}
    ratios = {
        scene: max(seconds, SMALL_SECONDS) / max(recorded[scene], SMALL_SECONDS) for scene, seconds in spent.items()
    }
    large = [ratio for scene, ratio in ratios.items() if recorded[scene] >= SMALL_SECONDS]
    pace = statistics.median(large) if len(large) >= MIN_SCENES else 1.0
    return [
        f"{scene}: {spent[scene]:.1f} CPU seconds, {ratio / pace:.1f} times the recorded {recorded[scene]:.1f}"
        for scene, ratio in sorted(ratios.items(), key=lambda entry: -entry[1])
        if ratio > MAX_RATIO * pace
    ]


def main(arguments: list[str]) -> int:
    """Print the file, or check runs against it."""
    check = "--check" in arguments
    folders = [Path(argument) for argument in arguments if argument != "--check"]
    measured = Measured()
    for path in sorted(path.parent for folder in folders for path in folder.rglob("run.jsonl")):
        measured.add(ledger_file.read(path))
    if not check:
        sys.stdout.write(document(shards.costs(), recorded_cpu(), measured))
        return 0
    recorded = recorded_cpu()
    excess_lines = excesses(recorded, measured.cpu)
    sum_recorded = sum(recorded[scene] for scene in measured.cpu if scene in recorded)
    sum_spent = sum(statistics.median(times) for scene, times in measured.cpu.items() if scene in recorded)
    lines = [*excess_lines, f"{len(excess_lines)} of {len(measured.cpu)} scenes cost too much"]
    lines.append(f"together {sum_spent:.0f} CPU seconds, recorded {sum_recorded:.0f}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if excess_lines or not measured.cpu else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
