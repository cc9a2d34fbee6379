"""The verdict of a comparison: one metric is tested, counts are compared with their own noise, and everything else is
only described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.scale.compare.statistics import ALPHA, Band, Estimate, band, estimate, min_pairs

MIN_COUNTED_ROUNDS = 3
"""The minimum number of rounds for a comparison of counts. With fewer rounds, the noise of the counts is unknown."""


class TimeVerdict(StrEnum):
    """The verdict of a comparison on a time."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference seen"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class CountVerdict(StrEnum):
    """The verdict of a comparison on a count."""

    FEWER = "fewer"
    MORE = "more"
    SAME = "within noise"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class TimeJudgement:
    """The tested metric: its verdict, the reason, and its estimate."""

    verdict: TimeVerdict
    reason: str
    estimate: Estimate | None


@dataclass(frozen=True)
class CountJudgement:
    """One count, compared with its own noise."""

    verdict: CountVerdict
    reason: str
    band: Band | None


def judge_time(
    base: Sequence[float], head: Sequence[float], minimum_effect: float, *, seed: int, alpha: float = ALPHA
) -> TimeJudgement:
    """Judge pairs of a time. A verdict requires a significant test result and a change of at least the minimum
    effect."""
    if not base:
        return TimeJudgement(TimeVerdict.INVALID, "no round is valid", None)
    if len(base) == 1:
        return TimeJudgement(TimeVerdict.INCONCLUSIVE, f"one round says nothing; {min_pairs(alpha)} can", None)
    result = estimate(base, head, minimum_effect, seed=seed, alpha=alpha)
    effect = max(result.ratio, 1 / result.ratio) - 1
    if result.p <= alpha and effect >= minimum_effect:
        verdict = TimeVerdict.SLOWER if result.ratio > 1 else TimeVerdict.FASTER
        return TimeJudgement(verdict, f"p = {result.p:.3f} in {result.pairs} rounds", result)
    if result.p <= alpha:
        return TimeJudgement(
            TimeVerdict.NO_DIFFERENCE,
            f"the change of {effect:.1%} is real (p = {result.p:.3f}), but below the minimum effect of "
            f"{minimum_effect:.0%}",
            result,
        )
    if result.smallest is not None and result.smallest <= minimum_effect:
        return TimeJudgement(
            TimeVerdict.NO_DIFFERENCE,
            f"a change of {result.smallest:.1%} or more would have been seen in four of five comparisons",
            result,
        )
    return TimeJudgement(TimeVerdict.INCONCLUSIVE, _more_rounds(result, minimum_effect), result)


def _more_rounds(result: Estimate, minimum_effect: float) -> str:
    visible_changes = (
        f"{result.pairs} rounds are too few for any verdict"
        if result.smallest is None
        else f"only changes of {result.smallest:.0%} or more would have been seen"
    )
    return f"{visible_changes}; a change of {minimum_effect:.0%} takes about {result.needed} rounds"


def judge_count(base: Sequence[float], head: Sequence[float], minimum: float) -> CountJudgement:
    """Judge a count. It differs if the values of the sides do not overlap, and if their medians differ by more than
    twice the noise within a side and by at least `minimum`."""
    if len(base) < MIN_COUNTED_ROUNDS:
        return CountJudgement(CountVerdict.INCONCLUSIVE, f"counts take {MIN_COUNTED_ROUNDS} rounds", None)
    result = band(base, head)
    change = abs(result.ratio - 1)
    noise = f"runs of one side differ by up to {result.noise:.1%}"
    if result.is_separate and change > 2 * result.noise and change >= minimum:
        return CountJudgement(CountVerdict.MORE if result.ratio > 1 else CountVerdict.FEWER, noise, result)
    return CountJudgement(CountVerdict.SAME, noise, result)
