"""Rounds: one run of each side, in an order that is balanced over the rounds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from conformance.scale.compare.validity import Limits, disturbances, failures
from conformance.scale.results import Result


class Side(StrEnum):
    """One of the two sides of a comparison."""

    BASE = "base"
    HEAD = "head"


@dataclass(frozen=True)
class Round:
    """The results of one round. `unused` has the reasons for which the round is not used, if any."""

    number: int
    base: Result
    head: Result
    unused: list[str] = field(default_factory=list)
    failed: bool = False
    """Whether the round is unusable because of the head, and not because of a disturbance."""


def side_order(count: int, seed: int) -> list[tuple[Side, Side]]:
    """Return the order of the sides in each round. In every two rounds, each side is first once; which one starts is
    drawn with the seed."""
    random_numbers = random.Random(seed)
    orders: list[tuple[Side, Side]] = []
    while len(orders) < count:
        block = [(Side.BASE, Side.HEAD), (Side.HEAD, Side.BASE)]
        random_numbers.shuffle(block)
        orders += block
    return orders[:count]


def pair_results(base: Sequence[Result], head: Sequence[Result], limits: Limits) -> list[Round]:
    """Return the rounds of results that are in the order of measurement. Results without a partner are left out."""
    return [
        judge_round(number, base_result, head_result, limits)
        for number, (base_result, head_result) in enumerate(zip(base, head, strict=False), start=1)
    ]


def judge_round(number: int, base: Result, head: Result, limits: Limits) -> Round:
    """Return a round, with the reasons for which it cannot be used."""
    sides = ((Side.BASE, base), (Side.HEAD, head))
    reasons = [
        f"{side}: {reason}" for side, result in sides for reason in [*failures(result), *disturbances(result, limits)]
    ]
    return Round(number, base, head, reasons, bool(failures(head)))


def are_interleaved(base: Sequence[Result], head: Sequence[Result]) -> bool:
    """Return whether the runs of both sides alternate in time, as pairing requires."""
    runs = sorted([(r["startedAt"], Side.BASE) for r in base] + [(r["startedAt"], Side.HEAD) for r in head])
    return all({runs[i][1], runs[i + 1][1]} == {Side.BASE, Side.HEAD} for i in range(0, len(runs) - 1, 2))
