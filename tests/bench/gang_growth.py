"""CPU time of one scheduling cycle for gangs that all differ, on nodes that are partly occupied, without preemption.

.venv/bin/python -m tests.bench.gang_growth
"""

from __future__ import annotations

import dataclasses
import math
import time
from operator import itemgetter

from tests.scheduling import fragmented

SIZES = (100, 400, 800)
"""Numbers of nodes; four pods wait for each node."""
SEED = 1
ROUNDS = 3
"""Cycles for each size. The fastest counts, because other work on the machine slows a cycle down."""


def measure(nodes: int) -> tuple[int, float]:
    """Return the number of gangs that still wait after a cycle, and the cycle's CPU seconds."""
    scene = fragmented.scene(SEED, nodes, 4 * nodes)
    level = dataclasses.replace(scene, gangs=[dataclasses.replace(gang, priority=0) for gang in scene.gangs])
    start = time.process_time()
    plan = fragmented.plan(level)
    return len(plan.waiting), time.process_time() - start


def main() -> None:
    seconds = {}
    for nodes in SIZES:
        waiting, seconds[nodes] = min((measure(nodes) for _ in range(ROUNDS)), key=itemgetter(1))
        print(f"{nodes:5} nodes, {waiting:4} gangs wait afterwards: {seconds[nodes]:.2f} s")
    growth = math.log(seconds[SIZES[-1]] / seconds[SIZES[0]]) / math.log(SIZES[-1] / SIZES[0])
    print(f"exponent {growth:.2f}")


if __name__ == "__main__":
    main()
