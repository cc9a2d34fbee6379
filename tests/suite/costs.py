"""`python -m tests.suite.costs REPORTS…`: print a new fixtures/costs/scenes.yaml, from the ledgers of the runs in these
folders. Only scenes that were played to their end count."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import yaml

from conformance import data
from conformance.suite.outcomes import ledger, ledger_file
from conformance.suite.scenes.repeated import without_mark
from conformance.suite.session import shards

FILE = data.folder("fixtures") / "costs" / "scenes.yaml"


def seconds(events: Iterable[ledger.AnyEvent]) -> dict[str, list[float]]:
    """Return how many seconds each scene of a run took, and each passed test that has no scene, by name."""
    measured: dict[str, list[float]] = defaultdict(list)
    repeat = 1
    for event in events:
        match event:
            case ledger.RunStarted():
                repeat = event.repeat
            case ledger.ScenePlayed(ended_by=""):
                measured[without_mark(event.scene, repeat)].append(event.seconds)
            case ledger.TestFinished(scene="", outcome="passed"):
                measured[without_mark(event.test, repeat)].append(sum(event.seconds.values()))
            case _:
                pass
    return measured


def document(former_costs: shards.Costs, measured: Iterable[dict[str, list[float]]]) -> str:
    """Return the text of the file: the median for each measured scene, and the previous cost for all other scenes."""
    all_times: dict[str, list[float]] = defaultdict(list)
    for run in measured:
        for scene, times in run.items():
            all_times[scene] += times
    costs = dict(former_costs) | {scene: max(1, round(statistics.median(times))) for scene, times in all_times.items()}
    costs_by_file: dict[str, dict[str, float]] = {}
    for scene in sorted(costs):
        file, _, name = scene.partition("::")
        costs_by_file.setdefault(file, {})[name] = costs[scene]
    head = FILE.read_text("utf-8").partition("\nseconds:\n")[0] + "\n"
    return head + yaml.safe_dump({"seconds": costs_by_file}, sort_keys=False, width=1000)


def main(folders: list[str]) -> None:
    """Print the file."""
    ledgers = sorted(path.parent for folder in folders for path in Path(folder).rglob("run.jsonl"))
    sys.stdout.write(document(shards.costs(), (seconds(ledger_file.read(path)) for path in ledgers)))


if __name__ == "__main__":
    main(sys.argv[1:])
