"""Statistics of paired measurements. Pure: numbers in, numbers out.

A pair consists of one measurement of each side, taken one after the other, so that slow changes cancel out. The
calculations use the natural logarithm of head / base, so that a factor and its inverse are equally far from no change.
scipy is imported only where it is needed: the rest of the suite works without it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conformance.errors import UsageError

ALPHA = 0.05
"""The accepted share of comparisons of two equal sides in which a difference is found."""
POWER = 0.8
"""The probability with which the smallest visible effect is detected."""
CONFIDENCE = 0.95
RESAMPLE_COUNT = 9999
MAX_ROUNDS = 1000
"""The maximum number of rounds that is computed; a larger number is reported as this one."""
SIGNED_RANK_FACTOR = math.pi / 3
"""The factor by which the signed-rank test needs a larger sample than the t-test, for normal data."""


@dataclass(frozen=True)
class Estimate:
    """The estimate of one metric from pairs. Ratios are head / base."""

    pairs: int
    ratio: float
    """The median of the ratios."""
    low: float
    high: float
    """The bounds of the median's bootstrap interval."""
    p: float
    """The two-sided p value of the exact signed-rank test."""
    smallest: float | None
    """The smallest change (0.1 is ten percent) that this number of pairs with this spread reveals in four of five
    comparisons; None if there are too few pairs to reveal any change."""
    needed: int
    """The number of pairs that would reveal a change of the minimum effect."""


@dataclass(frozen=True)
class Band:
    """The comparison of the counts of two sides. Ratios are head / base, of medians."""

    ratio: float
    noise: float
    """The largest relative difference between two runs of the same side."""
    is_separate: bool
    """Whether all runs of one side have higher counts than all runs of the other side."""


def min_pairs(alpha: float = ALPHA) -> int:
    """Return the number of pairs that the exact test needs before it can find any difference: six for 0.05."""
    return math.ceil(math.log2(2 / alpha))


def estimate(
    base: Sequence[float], head: Sequence[float], minimum_effect: float, *, seed: int, alpha: float = ALPHA
) -> Estimate:
    """Compare pairs of positive measurements. Raises UsageError if scipy is not installed."""
    logs = [math.log(head_value / base_value) for base_value, head_value in zip(base, head, strict=True)]
    low, high = _bootstrap_interval(logs, seed)
    return Estimate(
        pairs=len(logs),
        ratio=math.exp(statistics.median(logs)),
        low=math.exp(low),
        high=math.exp(high),
        p=_signed_rank(logs),
        smallest=_smallest_effect(logs, alpha),
        needed=_needed_pairs(logs, minimum_effect, alpha),
    )


def band(base: Sequence[float], head: Sequence[float]) -> Band:
    """Compare the counts of two sides, relative to the scatter within each side."""
    base_median = statistics.median(base)
    ratio = statistics.median(head) / base_median if base_median else (1.0 if not any(head) else math.inf)
    return Band(
        ratio=ratio,
        noise=max(_scatter(base), _scatter(head)),
        is_separate=min(head) > max(base) or max(head) < min(base),
    )


def _scatter(values: Sequence[float]) -> float:
    median = statistics.median(values)
    return (max(values) - min(values)) / median if median else 0.0


def scipy_stats() -> Any:
    """Import scipy.stats. Raises UsageError if it is not installed."""
    try:
        from scipy import stats
    except ImportError as error:
        raise UsageError(
            "comparisons need scipy, which is not installed", hint="pip install 'grove-conformance[scale]'"
        ) from error
    return stats


def _bootstrap_interval(logs: Sequence[float], seed: int) -> tuple[float, float]:
    """Return the bootstrap interval of the median."""
    import numpy

    if max(logs) == min(logs):  # a single pair, or no scatter
        return min(logs), max(logs)
    bootstrap = scipy_stats().bootstrap(
        (numpy.array(logs),),
        numpy.median,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLE_COUNT,
        method="percentile",
        rng=numpy.random.default_rng(seed),
    )
    return float(bootstrap.confidence_interval.low), float(bootstrap.confidence_interval.high)


def _signed_rank(logs: Sequence[float]) -> float:
    """Return the two-sided p value of the signed-rank test. It is exact for up to 50 pairs. With ties it is exact for
    up to 13 pairs, and computed by resampling for more pairs."""
    if len(logs) < 2 or not any(logs):
        return 1.0
    stats = scipy_stats()
    sizes = {round(abs(value), 12) for value in logs}
    if len(sizes) == len(logs) and 0.0 not in sizes:
        return float(stats.wilcoxon(logs, method="auto").pvalue)
    method = stats.PermutationMethod(n_resamples=RESAMPLE_COUNT, rng=0)
    return min(1.0, float(stats.wilcoxon(logs, zero_method="zsplit", method=method).pvalue))


def _detection_factor(pairs: int, alpha: float) -> float:
    """Return the number of standard errors that an effect must have to be detected."""
    t = scipy_stats().t
    return float(t.ppf(1 - alpha / 2, pairs - 1) + t.ppf(POWER, pairs - 1)) * math.sqrt(SIGNED_RANK_FACTOR)


def _smallest_effect(logs: Sequence[float], alpha: float) -> float | None:
    if len(logs) < min_pairs(alpha):
        return None
    return math.expm1(_detection_factor(len(logs), alpha) * statistics.stdev(logs) / math.sqrt(len(logs)))


def _needed_pairs(logs: Sequence[float], minimum_effect: float, alpha: float) -> int:
    minimum = min_pairs(alpha)
    if len(logs) < 2:
        return minimum
    spread, effect = statistics.stdev(logs), math.log1p(minimum_effect)
    sufficient_counts = (
        n for n in range(minimum, MAX_ROUNDS) if _detection_factor(n, alpha) * spread / math.sqrt(n) <= effect
    )
    return next(sufficient_counts, MAX_ROUNDS)
