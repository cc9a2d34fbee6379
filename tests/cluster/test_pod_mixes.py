"""Tests of the behaviors that are drawn for the pods of a cluster from their UIDs."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import jq

from conformance.cluster.pod_behaviors import load

REALISTIC = load().mixes["realistic"]


def uids() -> list[str]:
    """Return UIDs with every value of the first byte, each with three values of the bytes behind it."""
    return [f"{first:02x}{second:02x}{second:02x}{second:02x}-0000" for first in range(256) for second in (0, 130, 255)]


def test_each_time_has_every_value_between_its_least_and_its_most_about_equally_often() -> None:
    for index, (name, (low, high)) in enumerate(REALISTIC.times.items(), 1):
        drawn = Counter(REALISTIC.seconds("00" * index + f"{byte:02x}" + "0000")[name] for byte in range(256))
        assert sorted(drawn) == list(range(low, high + 1))
        assert max(drawn.values()) - min(drawn.values()) <= 1


def test_exactly_the_share_of_pods_fails_and_none_in_two_ways() -> None:
    failed = Counter(
        failure.behavior for byte in range(256) if (failure := REALISTIC.failure(f"{byte:02x}")) is not None
    )
    assert failed == {"crash-loop": 256 // 16, "exit": 256 // 32}


def test_times_do_not_depend_on_whether_a_pod_fails() -> None:
    assert {tuple(REALISTIC.seconds(uid).items()) for uid in uids() if REALISTIC.failure(uid) is None} == {
        tuple(REALISTIC.seconds(uid).items()) for uid in uids() if REALISTIC.failure(uid) is not None
    }


compiled = functools.cache(jq.compile)


def by_jq(expression: str, uid: str) -> Any:
    return compiled(expression).input_value({"metadata": {"uid": uid}}).first()


def test_jq_draws_the_same() -> None:
    assert {uid: REALISTIC.seconds(uid) for uid in uids()} == {
        uid: {name: int(by_jq(f'"{text}"', uid).removesuffix("s")) for name, text in REALISTIC.parameters().items()}
        for uid in uids()
    }
    for failure in REALISTIC.failures:
        for uid in uids():
            assert by_jq(failure.drawn, uid) is (REALISTIC.failure(uid) == failure), uid
