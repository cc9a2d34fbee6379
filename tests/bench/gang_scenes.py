"""Checks that the gang scheduler keeps its hard rules in large generated clusters, which have partly occupied nodes of
different kinds, and gangs that all differ in sizes, requests, domains and priorities. The check needs no real cluster.

    .venv/bin/python -m tests.bench.gang_scenes 0 2000

This command runs seeds 0 to 1999, one cycle each. The exit code is 1 if the scheduler breaks a rule or a search gives
up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.scheduling import inversions


def main(arguments: Sequence[str]) -> int:
    """Print the breaches of a range of seeds, and return the exit code."""
    seeds, count = range(*map(int, arguments)), 0
    for seed in seeds:
        for breach in inversions.judge_seed(seed):
            count += 1
            print(f"seed {seed}: {breach}", flush=True)
    print(f"{len(seeds)} scenes, {count} breaches")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
