"""Random choices that are the same for the same seed in every version of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import yaml

T = TypeVar("T")
Manifest = dict[str, Any]
WEIGHTS = yaml.safe_load(Path(__file__).with_name("weights.yaml").read_text(encoding="utf-8"))


class Draw:
    """Choices made with `Random.random` alone, because Python guarantees its sequence, but not the sequences of
    `choice` and `sample`."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def number(self, low: int, high: int) -> int:
        """Choose a number from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def one(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def some(self, options: Sequence[T], minimum: int, maximum: int) -> list[T]:
        """Choose between `minimum` and `maximum` distinct options."""
        remaining_options = list(options)
        return [
            remaining_options.pop(self.number(0, len(remaining_options) - 1))
            for _ in range(min(len(remaining_options), self.number(minimum, maximum)))
        ]

    def weighted(self, options: Mapping[T, float]) -> T:
        """Choose a key. The values are the weights."""
        remaining_weight = self._random.random() * sum(options.values())
        for option, weight in options.items():
            remaining_weight -= weight
            if remaining_weight < 0:
                return option
        return option
