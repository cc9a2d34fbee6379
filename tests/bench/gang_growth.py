"""CPU time of one scheduling cycle by the number of waiting gangs, which all differ, on nodes that are partly occupied,
with one priority (no preemption) and with three.

.venv/bin/python -m tests.bench.gang_growth
"""

from __future__ import annotations

import dataclasses
import math
import time

from tests.scheduling import fragmented
from tests.scheduling.fragmented import Scene

NODES = (100, 400)
GANGS = (100, 400, 1600)
SEED = 1
ROUNDS = 3
"""The number of cycles for each size. The fastest cycle counts, because other work on the machine slows cycles down."""


def scene(nodes: int, gangs: int, *, preemption: bool) -> Scene:
    """Return a scene with this number of waiting gangs. Without preemption, all gangs have the same priority."""
    generated = fragmented.scene(SEED, nodes, 12 * gangs)  # a gang has ten pods on average
    waiting = [gang for gang in generated.gangs if gang.name.startswith("waiting")]
    assert len(waiting) >= gangs
    chosen_gangs = [gang for gang in generated.gangs if gang not in waiting] + waiting[:gangs]
    if not preemption:
        chosen_gangs = [dataclasses.replace(gang, priority=0) for gang in chosen_gangs]
    return dataclasses.replace(generated, gangs=chosen_gangs)


def measure(example: Scene) -> float:
    """Return the CPU seconds of the fastest cycle."""
    seconds = []
    for _ in range(ROUNDS):
        gangs, capacity = fragmented.models(example)
        start = time.process_time()
        fragmented.cycle.plan(gangs, capacity)
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    for preemption in (False, True):
        for nodes in NODES:
            seconds = [measure(scene(nodes, gangs, preemption=preemption)) for gangs in GANGS]
            growth = math.log(seconds[-1] / seconds[0]) / math.log(GANGS[-1] / GANGS[0])
            figures = ", ".join(f"{gangs} gangs {figure:.2f} s" for gangs, figure in zip(GANGS, seconds, strict=True))
            priorities = "three priorities" if preemption else "one priority"
            print(f"{nodes} nodes, {priorities}: {figures}; exponent {growth:.2f}")


if __name__ == "__main__":
    main()
