"""The parts of a cluster that a capture could not keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator


class Losses:
    """Counts the objects that have lost something, so that each loss is one line."""

    def __init__(self) -> None:
        self._objects: dict[str, set[str]] = defaultdict(set)

    def add(self, loss: str, name: str) -> None:
        """Record what the object with this name has lost."""
        self._objects[loss].add(name)

    def lines(self, noun: str) -> Iterator[str]:
        """Generate a line for each loss, with the number of the objects, which are `noun`s. The lines have no names, so
        that they can be published with the capture."""
        for loss, names in sorted(self._objects.items()):
            yield f"{loss} ({len(names)} {noun}{'s' * (len(names) > 1)})"
