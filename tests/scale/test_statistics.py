"""Tests of the statistics of comparisons, with chosen and random numbers."""

from __future__ import annotations

import builtins
import math
import random
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.scale.compare import statistics
from conformance.scale.compare.statistics import band, estimate, fewest_pairs
from conformance.scale.compare.verdicts import CountVerdict, Timed, TimeVerdict, counted, timed

NOISE = 0.06
"""Standard deviation of the logarithm of a run's time, as on a laptop."""


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the bootstrap cheap for tests with many comparisons; no verdict depends on it."""
    monkeypatch.setattr(statistics, "RESAMPLES", 99)


def random_times(chance: random.Random, rounds: int, effect: float) -> tuple[list[float], list[float]]:
    """Return the times of both sides in random rounds of about 20 s: a drift that the sides of a round share, noise for
    each run, and an effect on the head."""
    base, head = [], []
    for number in range(rounds):
        shared = math.log(20) + 0.05 * number
        base.append(math.exp(shared + chance.gauss(0, NOISE)))
        head.append(math.exp(shared + chance.gauss(0, NOISE)) * (1 + effect))
    return base, head


def verdicts(rounds: int, effect: float, comparisons: int) -> list[Timed]:
    chance = random.Random(7)
    return [timed(*random_times(chance, rounds, effect), 0.05, seed=1) for _ in range(comparisons)]


@pytest.mark.usefixtures("few_resamples")
def test_of_equal_sides_few_are_called_different() -> None:
    outcomes = [comparison.verdict for comparison in verdicts(8, 0.0, 100)]
    assert (
        outcomes.count(TimeVerdict.SLOWER) + outcomes.count(TimeVerdict.FASTER) <= 8
    )  # 5 are expected; the probability of 9 or more is 3%


@pytest.mark.usefixtures("few_resamples")
def test_a_quarter_more_is_seen_within_eight_rounds() -> None:
    outcomes = [comparison.verdict for comparison in verdicts(8, 0.25, 40)]
    assert outcomes.count(TimeVerdict.SLOWER) >= 38


@pytest.mark.usefixtures("few_resamples")
def test_the_smallest_visible_effect_is_seen_in_four_of_five_comparisons() -> None:
    smallest = estimate(*random_times(random.Random(3), 200, 0.0), 0.05, seed=1)
    spread = math.sqrt(2) * NOISE
    assert smallest.smallest is not None
    assert smallest.smallest == pytest.approx(2.85 * spread / math.sqrt(200), rel=0.25)
    visible = math.expm1(statistics._factor(8, 0.05) * spread / math.sqrt(8))
    outcomes = [comparison.verdict for comparison in verdicts(8, visible, 60)]
    assert 0.65 <= outcomes.count(TimeVerdict.SLOWER) / 60 <= 0.95


@pytest.mark.usefixtures("few_resamples")
def test_the_rounds_that_are_needed_suffice() -> None:
    result = estimate(*random_times(random.Random(5), 12, 0.0), 0.2, seed=1)
    enough = [comparison.verdict for comparison in verdicts(result.needed, 0.2, 40)]
    assert enough.count(TimeVerdict.SLOWER) >= 24


def test_faster_and_slower_are_symmetric() -> None:
    base, head = random_times(random.Random(1), 8, 0.3)
    slower, faster = timed(base, head, 0.05, seed=1), timed(head, base, 0.05, seed=1)
    assert (slower.verdict, faster.verdict) == (TimeVerdict.SLOWER, TimeVerdict.FASTER)
    assert slower.estimate and faster.estimate
    assert slower.estimate.ratio == pytest.approx(1 / faster.estimate.ratio) and slower.estimate.p == faster.estimate.p
    assert slower.estimate.low < slower.estimate.ratio < slower.estimate.high


def test_the_exact_test_needs_six_pairs() -> None:
    assert (fewest_pairs(), fewest_pairs(0.1)) == (6, 5)
    base, head = [20.0, 20.1, 19.9, 20.2, 20.0], [30.0, 30.2, 29.8, 30.1, 30.3]
    comparison = timed(base, head, 0.05, seed=1)
    assert (
        comparison.verdict == TimeVerdict.INCONCLUSIVE
        and "5 rounds are too few" in comparison.reason
        and "about 6 rounds" in comparison.reason
    )
    six = timed([*base, 20.0], [*head, 30.0], 0.05, seed=1)
    assert six.verdict == TimeVerdict.SLOWER and six.estimate and six.estimate.p == pytest.approx(0.03125)


def test_no_difference_says_which_one_would_have_been_seen() -> None:
    base = [20.0, 20.1, 19.9, 20.2, 20.0, 19.8, 20.1, 20.0]
    comparison = timed(base, [20.1, 20.0, 20.0, 20.1, 19.9, 20.0, 20.0, 20.1], 0.05, seed=1)
    assert comparison.verdict == TimeVerdict.NO_DIFFERENCE and "would have been seen" in comparison.reason
    real = timed(base, [value * 1.02 for value in base], 0.05, seed=1)
    assert real.verdict == TimeVerdict.NO_DIFFERENCE and "below the minimum effect of 5%" in real.reason


def test_much_scatter_is_inconclusive_and_says_how_many_rounds_it_takes() -> None:
    comparison = timed([20, 30, 20, 30, 20, 30], [30, 20, 31, 19, 29, 21], 0.05, seed=1)
    assert comparison.verdict == TimeVerdict.INCONCLUSIVE and "takes about" in comparison.reason
    assert comparison.estimate and comparison.estimate.needed > 100


def test_equal_pairs_are_not_a_difference_and_no_pair_is_invalid() -> None:
    assert timed([20.0] * 6, [20.0] * 6, 0.05, seed=1).verdict == TimeVerdict.NO_DIFFERENCE
    assert timed([], [], 0.05, seed=1).verdict == TimeVerdict.INVALID
    assert timed([20.0], [21.0], 0.05, seed=1).verdict == TimeVerdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([5.03, 5.06, 5.05], [5.55, 5.53, 5.58], CountVerdict.MORE),  # a tenth more, in three rounds
        ([5.55, 5.53, 5.58], [5.03, 5.06, 5.05], CountVerdict.FEWER),
        ([5.03, 5.06, 5.05], [5.09, 5.03, 5.04], CountVerdict.SAME),
        ([5.0, 5.0, 5.0], [5.01, 5.01, 5.01], CountVerdict.SAME),  # below the least change that matters
        ([5.0, 6.0, 5.5], [6.1, 6.5, 6.2], CountVerdict.SAME),  # the difference is within the noise
        ([5.0, 5.0], [9.0, 9.0], CountVerdict.INCONCLUSIVE),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], CountVerdict.SAME),
        ([0.0, 0.0, 0.0], [0.2, 0.2, 0.2], CountVerdict.MORE),
    ],
)
def test_counts_are_held_against_their_own_noise(base: list[float], head: list[float], verdict: CountVerdict) -> None:
    assert counted(base, head, 0.02).verdict == verdict


def test_counts_of_equal_sides_are_never_called_different() -> None:
    chance = random.Random(11)
    for _ in range(300):
        base, head = ([5.05 + chance.gauss(0, 0.02) for _ in range(3)] for _ in range(2))
        assert counted(base, head, 0.02).verdict == CountVerdict.SAME


def test_a_band_compares_medians() -> None:
    result = band([4.0, 5.0, 6.0], [10.0, 11.0, 12.0])
    assert (result.ratio, result.noise, result.separate) == (2.2, 0.4, True)


def test_a_missing_scipy_is_reported_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"grove-conformance\[scale\]"):
        statistics.scipy_stats()
