"""The recorded responses of kube-scheduler: one line for each scene with its seed, its digest, and each pod's feasible
nodes.

Node `n3` is written as `3`, and `-` means that no node is feasible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kube_scheduler.scenes import Scene

FOLDER = Path(__file__).parent.parent.parent / "fixtures" / "kube-scheduler"


class Recorded(NamedTuple):
    """The recorded response to one scene: the names of each candidate's feasible nodes."""

    seed: int
    digest: str
    feasible: Sequence[frozenset[str]]


def record_line(scene: Scene, feasible: Sequence[Sequence[str]]) -> str:
    """Return the line that records the feasible nodes of a scene's candidates."""
    return " ".join(
        [str(scene.seed), scene.digest, *("".join(n[1:] for n in sorted(nodes)) or "-" for nodes in feasible)]
    )


def read(path: Path) -> Iterator[Recorded]:
    """Yield the records of a file."""
    for text in path.read_text(encoding="utf-8").splitlines():
        if text and not text.startswith("#"):
            seed, digest, *columns = text.split()
            feasible = [frozenset(f"n{digit}" for digit in column if digit != "-") for column in columns]
            yield Recorded(int(seed), digest, feasible)
