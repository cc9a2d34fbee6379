"""Tests of the statistics of comparisons, with fixed and random numbers."""

from __future__ import annotations

import builtins
import math
import random
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.scale.compare import statistics
from conformance.scale.compare.statistics import band, estimate, min_pairs
from conformance.scale.compare.verdicts import CountVerdict, TimeJudgement, TimeVerdict, judge_count, judge_time

NOISE_DEVIATION = 0.06
"""Standard deviation of the logarithm of a run's time, as on a laptop."""


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the resamples of the bootstrap for tests with many comparisons. Verdicts do not depend on them."""
    monkeypatch.setattr(statistics, "RESAMPLE_COUNT", 99)


def random_times(random_source: random.Random, rounds: int, effect: float) -> tuple[list[float], list[float]]:
    """Return random times of about 20 s for both sides of some rounds, with a drift that both sides of a round share,
    noise in each run, and an effect on the head."""
    base, head = [], []
    for number in range(rounds):
        shared_time = math.log(20) + 0.05 * number
        base.append(math.exp(shared_time + random_source.gauss(0, NOISE_DEVIATION)))
        head.append(math.exp(shared_time + random_source.gauss(0, NOISE_DEVIATION)) * (1 + effect))
    return base, head


def time_verdicts(rounds: int, effect: float, comparisons: int) -> list[TimeJudgement]:
    random_source = random.Random(7)
    return [judge_time(*random_times(random_source, rounds, effect), 0.05, seed=1) for _ in range(comparisons)]


@pytest.mark.usefixtures("few_resamples")
def test_few_comparisons_of_equal_sides_find_a_difference() -> None:
    outcomes = [comparison.verdict for comparison in time_verdicts(8, 0.0, 100)]
    assert (
        outcomes.count(TimeVerdict.SLOWER) + outcomes.count(TimeVerdict.FASTER) <= 8
    )  # 5 are expected; the probability of 9 or more is 3%


@pytest.mark.usefixtures("few_resamples")
def test_an_increase_by_a_quarter_is_detected_within_eight_rounds() -> None:
    outcomes = [comparison.verdict for comparison in time_verdicts(8, 0.25, 40)]
    assert outcomes.count(TimeVerdict.SLOWER) >= 38


@pytest.mark.usefixtures("few_resamples")
def test_the_smallest_visible_effect_is_detected_in_four_of_five_comparisons() -> None:
    null_estimate = estimate(*random_times(random.Random(3), 200, 0.0), 0.05, seed=1)
    ratio_deviation = math.sqrt(2) * NOISE_DEVIATION
    assert null_estimate.smallest is not None
    assert null_estimate.smallest == pytest.approx(2.85 * ratio_deviation / math.sqrt(200), rel=0.25)
    visible_effect = math.expm1(statistics._detection_factor(8, 0.05) * ratio_deviation / math.sqrt(8))
    outcomes = [comparison.verdict for comparison in time_verdicts(8, visible_effect, 60)]
    assert 0.65 <= outcomes.count(TimeVerdict.SLOWER) / 60 <= 0.95


@pytest.mark.usefixtures("few_resamples")
def test_the_estimated_number_of_rounds_suffices() -> None:
    result = estimate(*random_times(random.Random(5), 12, 0.0), 0.2, seed=1)
    verdicts = [comparison.verdict for comparison in time_verdicts(result.needed, 0.2, 40)]
    assert verdicts.count(TimeVerdict.SLOWER) >= 24


def test_faster_and_slower_are_symmetric() -> None:
    base, head = random_times(random.Random(1), 8, 0.3)
    slower_comparison, faster_comparison = judge_time(base, head, 0.05, seed=1), judge_time(head, base, 0.05, seed=1)
    assert (slower_comparison.verdict, faster_comparison.verdict) == (TimeVerdict.SLOWER, TimeVerdict.FASTER)
    assert slower_comparison.estimate and faster_comparison.estimate
    assert (
        slower_comparison.estimate.ratio == pytest.approx(1 / faster_comparison.estimate.ratio)
        and slower_comparison.estimate.p == faster_comparison.estimate.p
    )
    assert slower_comparison.estimate.low < slower_comparison.estimate.ratio < slower_comparison.estimate.high


def test_the_exact_test_needs_six_pairs() -> None:
    assert (min_pairs(), min_pairs(0.1)) == (6, 5)
    base, head = [20.0, 20.1, 19.9, 20.2, 20.0], [30.0, 30.2, 29.8, 30.1, 30.3]
    comparison = judge_time(base, head, 0.05, seed=1)
    assert (
        comparison.verdict == TimeVerdict.INCONCLUSIVE
        and "5 rounds are too few" in comparison.reason
        and "about 6 rounds" in comparison.reason
    )
    comparison_of_six = judge_time([*base, 20.0], [*head, 30.0], 0.05, seed=1)
    assert (
        comparison_of_six.verdict == TimeVerdict.SLOWER
        and comparison_of_six.estimate
        and comparison_of_six.estimate.p == pytest.approx(0.03125)
    )


def test_the_verdict_no_difference_says_which_effect_would_have_been_detected() -> None:
    base = [20.0, 20.1, 19.9, 20.2, 20.0, 19.8, 20.1, 20.0]
    comparison = judge_time(base, [20.1, 20.0, 20.0, 20.1, 19.9, 20.0, 20.0, 20.1], 0.05, seed=1)
    assert comparison.verdict == TimeVerdict.NO_DIFFERENCE and "would have been seen" in comparison.reason
    small_difference = judge_time(base, [value * 1.02 for value in base], 0.05, seed=1)
    assert (
        small_difference.verdict == TimeVerdict.NO_DIFFERENCE
        and "below the minimum effect of 5%" in small_difference.reason
    )


def test_noisy_times_are_inconclusive_and_the_needed_rounds_are_reported() -> None:
    comparison = judge_time([20, 30, 20, 30, 20, 30], [30, 20, 31, 19, 29, 21], 0.05, seed=1)
    assert comparison.verdict == TimeVerdict.INCONCLUSIVE and "takes about" in comparison.reason
    assert comparison.estimate and comparison.estimate.needed > 100


def test_equal_pairs_are_no_difference_and_a_comparison_without_pairs_is_invalid() -> None:
    assert judge_time([20.0] * 6, [20.0] * 6, 0.05, seed=1).verdict == TimeVerdict.NO_DIFFERENCE
    assert judge_time([], [], 0.05, seed=1).verdict == TimeVerdict.INVALID
    assert judge_time([20.0], [21.0], 0.05, seed=1).verdict == TimeVerdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([5.03, 5.06, 5.05], [5.55, 5.53, 5.58], CountVerdict.MORE),  # a tenth more, in three rounds
        ([5.55, 5.53, 5.58], [5.03, 5.06, 5.05], CountVerdict.FEWER),
        ([5.03, 5.06, 5.05], [5.09, 5.03, 5.04], CountVerdict.SAME),
        ([5.0, 5.0, 5.0], [5.01, 5.01, 5.01], CountVerdict.SAME),  # below the smallest relevant change
        ([5.0, 6.0, 5.5], [6.1, 6.5, 6.2], CountVerdict.SAME),  # the difference is within the noise
        ([5.0, 5.0], [9.0, 9.0], CountVerdict.INCONCLUSIVE),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], CountVerdict.SAME),
        ([0.0, 0.0, 0.0], [0.2, 0.2, 0.2], CountVerdict.MORE),
    ],
)
def test_counts_are_compared_with_their_own_noise(base: list[float], head: list[float], verdict: CountVerdict) -> None:
    assert judge_count(base, head, 0.02).verdict == verdict


def test_counts_of_equal_sides_never_differ() -> None:
    random_source = random.Random(11)
    for _ in range(300):
        base, head = ([5.05 + random_source.gauss(0, 0.02) for _ in range(3)] for _ in range(2))
        assert judge_count(base, head, 0.02).verdict == CountVerdict.SAME


def test_a_band_compares_medians() -> None:
    result = band([4.0, 5.0, 6.0], [10.0, 11.0, 12.0])
    assert (result.ratio, result.noise, result.is_separate) == (2.2, 0.4, True)


def test_a_missing_scipy_is_reported_with_the_extra_that_contains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    original_import = builtins.__import__

    def import_without_scipy(name: str, *arguments: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return original_import(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", import_without_scipy)
    with pytest.raises(UsageError, match=r"grove-conformance\[scale\]"):
        statistics.scipy_stats()
