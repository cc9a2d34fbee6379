"""Run scenes on the real kube-scheduler, and compare the reference's filters with it: `make filters`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter

from tests.kube_scheduler import answers
from tests.kube_scheduler.comparison import Difference, compare, report
from tests.kube_scheduler.live import GATES, scheduler
from tests.kube_scheduler.scenes import CANDIDATES, scene

SCENES_PER_SEED = 100_000
"""The number of scenes per SEED of the command. The recorded scenes have seed 0."""


async def play(seed: int, pods: int, kubernetes: str, *, write: bool) -> int:
    """Run scenes that have at least `pods` candidates in total. Return 1 if there was a difference."""
    extents: Counter[str] = Counter()
    differences: list[Difference] = []
    async with scheduler(kubernetes) as running_scheduler:
        lines = [f"# kube-scheduler {running_scheduler.version} with {GATES}: see tests/kube_scheduler/answers.py"]
        for number in range(first := seed * SCENES_PER_SEED + 1, first + -(-pods // CANDIDATES)):
            drawn_scene = scene(number)
            responses = await running_scheduler.play(drawn_scene)
            feasible = [nodes for nodes, _ in responses]
            new = compare(drawn_scene, feasible, running_scheduler.version, [message for _, message in responses])
            print(f"scene {number}: {len(responses)} pods, {len(new)} differences", flush=True)
            differences += new
            lines.append(answers.record_line(drawn_scene, feasible))
            for nodes in feasible:
                extents["all nodes" if nodes == drawn_scene.nodes else "some nodes" if nodes else "no node"] += 1
    shares = ", ".join(f"{count} with {extent}" for extent, count in extents.most_common())
    print(f"{extents.total()} pods on kube-scheduler {running_scheduler.version}: {shares}")
    if write:
        answers.FOLDER.mkdir(exist_ok=True)
        (answers.FOLDER / f"{running_scheduler.version}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if differences:
        print(report(differences))
    return int(bool(differences))


def main() -> None:
    parser = argparse.ArgumentParser(prog="make filters", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the same scenes are drawn for the same seed")
    parser.add_argument("--pods", type=int, default=400, help="number of pods to place")
    parser.add_argument("--kubernetes", default="", help="a pinned version, such as 1.37")
    parser.add_argument("--write", action="store_true", help="record the answers in fixtures/kube-scheduler")
    chosen = parser.parse_args()
    sys.exit(asyncio.run(play(chosen.seed, chosen.pods, chosen.kubernetes, write=chosen.write)))


if __name__ == "__main__":
    main()
