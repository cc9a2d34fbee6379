"""The verdict of a comparison: one metric is tested, counts are held against their own noise, the rest is described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.scale.compare.statistics import ALPHA, Band, Estimate, band, estimate, fewest_pairs

FEWEST_COUNTED = 3
"""Rounds after which counts are compared: with fewer, their own noise is unknown."""


class Verdict(StrEnum):
    """What a comparison says about a time."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference seen"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class CountVerdict(StrEnum):
    """What a comparison says about a count."""

    FEWER = "fewer"
    MORE = "more"
    SAME = "within noise"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Timed:
    """The tested metric: its estimate, its verdict, and why."""

    verdict: Verdict
    why: str
    estimate: Estimate | None


@dataclass(frozen=True)
class Counted:
    """One count: how it compares with its own noise."""

    verdict: CountVerdict
    why: str
    band: Band | None


def timed(
    base: Sequence[float], head: Sequence[float], minimum_effect: float, *, seed: int, alpha: float = ALPHA
) -> Timed:
    """Judge pairs of a time. A verdict needs a significant test and a change of at least the minimum effect."""
    if not base:
        return Timed(Verdict.INVALID, "no round is valid", None)
    if len(base) == 1:
        return Timed(Verdict.INCONCLUSIVE, f"one round says nothing; {fewest_pairs(alpha)} can", None)
    found = estimate(base, head, minimum_effect, seed=seed, alpha=alpha)
    effect = max(found.ratio, 1 / found.ratio) - 1
    if found.p <= alpha and effect >= minimum_effect:
        verdict = Verdict.SLOWER if found.ratio > 1 else Verdict.FASTER
        return Timed(verdict, f"p = {found.p:.3f} in {found.pairs} rounds", found)
    if found.p <= alpha:
        return Timed(
            Verdict.NO_DIFFERENCE,
            f"the change of {effect:.1%} is real (p = {found.p:.3f}), but below the minimum effect of "
            f"{minimum_effect:.0%}",
            found,
        )
    if found.smallest is not None and found.smallest <= minimum_effect:
        return Timed(
            Verdict.NO_DIFFERENCE,
            f"a change of {found.smallest:.1%} or more would have been seen in four of five comparisons",
            found,
        )
    return Timed(Verdict.INCONCLUSIVE, _more_rounds(found, minimum_effect), found)


def _more_rounds(found: Estimate, minimum_effect: float) -> str:
    seen = (
        f"{found.pairs} rounds are too few for any verdict"
        if found.smallest is None
        else f"only changes of {found.smallest:.0%} or more would have been seen"
    )
    return f"{seen}; a change of {minimum_effect:.0%} takes about {found.needed} rounds"


def counted(base: Sequence[float], head: Sequence[float], least: float) -> Counted:
    """Judge a count: it differs if the sides do not overlap, and their medians differ by more than twice the noise
    within a side and by at least `least`."""
    if len(base) < FEWEST_COUNTED:
        return Counted(CountVerdict.INCONCLUSIVE, f"counts take {FEWEST_COUNTED} rounds", None)
    found = band(base, head)
    change = abs(found.ratio - 1)
    noise = f"runs of one side differ by up to {found.noise:.1%}"
    if found.separate and change > 2 * found.noise and change >= least:
        return Counted(CountVerdict.MORE if found.ratio > 1 else CountVerdict.FEWER, noise, found)
    return Counted(CountVerdict.SAME, noise, found)
