"""Recorded answers of kube-scheduler: a line for each scene with its seed, its digest, and the nodes of each pod.

Node `n3` is written as 3; `-` stands for no node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kube_scheduler.scenes import Scene

FOLDER = Path(__file__).parent.parent.parent / "fixtures" / "kube-scheduler"


class Recorded(NamedTuple):
    """The answers to one scene: the names of the feasible nodes of each candidate."""

    seed: int
    digest: str
    feasible: Sequence[frozenset[str]]


def line(scene: Scene, feasible: Sequence[Sequence[str]]) -> str:
    """Return the line for the answers to a scene."""
    return " ".join(
        [str(scene.seed), scene.digest, *("".join(n[1:] for n in sorted(nodes)) or "-" for nodes in feasible)]
    )


def read(path: Path) -> Iterator[Recorded]:
    """Read a file of answers."""
    for text in path.read_text(encoding="utf-8").splitlines():
        if text and not text.startswith("#"):
            seed, digest, *columns = text.split()
            feasible = [frozenset(f"n{digit}" for digit in column if digit != "-") for column in columns]
            yield Recorded(int(seed), digest, feasible)
