"""Play scenes on the real kube-scheduler, and compare the reference's filters with it: `make filters`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.kube_scheduler import answers
from tests.kube_scheduler.comparison import Difference, report, verdicts
from tests.kube_scheduler.live import GATES, Answer, Scheduler, scheduler
from tests.kube_scheduler.scenes import CANDIDATES, PLURALS, Scene, scene

SCENES = 100_000
"""Scenes of one SEED of the command."""


def seeds(seed: int, pods: int) -> range:
    """Return the seeds of the scenes to play. The recorded scenes are those of seed 0."""
    first = seed * SCENES + 1
    return range(first, first + max(1, -(-pods // CANDIDATES)))


async def compare(playing: Scheduler, drawn: Scene) -> tuple[list[Answer], list[Difference]]:
    """Play a scene; return the answers of kube-scheduler, and what the reference judges otherwise."""
    given = await playing.play(drawn)
    differences = verdicts(drawn).differences([a.nodes for a in given], [a.message for a in given])
    return given, differences


async def shrink(playing: Scheduler, difference: Difference) -> Difference:
    """Leave out objects, as long as the same pod is still judged differently."""
    name = difference.pod["metadata"]["name"]
    wanted = [pod for pod in difference.scene.candidates if pod["metadata"]["name"] == name]
    difference = replace(difference, scene=replace(difference.scene, candidates=wanted))
    for plural in reversed(PLURALS[1:]):
        items = difference.scene.objects[plural]
        for removed in (items, *([item] for item in items)):
            rest = [item for item in difference.scene.objects[plural] if item not in removed]
            if len(rest) == len(difference.scene.objects[plural]) or (plural == "nodes" and not rest):
                continue
            smaller = replace(difference.scene, objects={**difference.scene.objects, plural: rest})
            if smaller_differences := (await compare(playing, smaller))[1]:
                difference = smaller_differences[0]
    return difference


async def play(seed: int, pods: int, kubernetes: str, *, write: bool) -> int:
    """Play scenes; return 1 if there was a difference."""
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    async with scheduler(kubernetes) as playing:
        file = answers.FOLDER / f"{playing.version}.txt"
        lines = [f"# kube-scheduler {playing.version} with {GATES}: see tests/kube_scheduler/answers.py"]
        for number in seeds(seed, pods):
            drawn = scene(number)
            given, new = await compare(playing, drawn)
            lines.append(answers.line(drawn, [answer.nodes for answer in given]))
            differences += new
            for answer in given:
                counts[_extent(len(answer.nodes), len(drawn.nodes))] += 1
            print(f"scene {number}: {len(given)} pods, {len(new)} differences", flush=True)
        if differences and not write:
            smallest = min(differences, key=lambda each: each.size)
            print("the smallest scene:", await shrink(playing, smallest), sep="\n")
    print(f"{counts.total()} pods on kube-scheduler {playing.version}: feasible are {_shares(counts)}")
    if write:
        answers.FOLDER.mkdir(exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"written: {file.relative_to(Path.cwd())}")
    if differences:
        print(report(differences))
    return int(bool(differences))


def _extent(feasible: int, nodes: int) -> str:
    return "all nodes" if feasible == nodes else "some nodes" if feasible else "no node"


def _shares(counts: Counter[str]) -> str:
    return ", ".join(f"{extent} of {count}" for extent, count in counts.most_common())


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
