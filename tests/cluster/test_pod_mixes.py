"""Tests of the behaviors that a cluster draws for its pods from their UIDs."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import jq

from conformance.cluster.pod_behaviors import load

REALISTIC = load().mixes["realistic"]


def uids() -> list[str]:
    """Return UIDs with every value of the first byte, each with three values of the following bytes."""
    return [
        f"{first_byte:02x}{other_byte:02x}{other_byte:02x}{other_byte:02x}-0000"
        for first_byte in range(256)
        for other_byte in (0, 130, 255)
    ]


def test_each_time_takes_every_value_of_its_range_about_equally_often() -> None:
    for index, (name, (minimum, maximum)) in enumerate(REALISTIC.times.items(), 1):
        counts_by_seconds = Counter(
            REALISTIC.seconds("00" * index + f"{byte:02x}" + "0000")[name] for byte in range(256)
        )
        assert sorted(counts_by_seconds) == list(range(minimum, maximum + 1))
        assert max(counts_by_seconds.values()) - min(counts_by_seconds.values()) <= 1


def test_exactly_the_configured_share_of_pods_fails() -> None:
    failure_counts = Counter(
        failure.behavior for byte in range(256) if (failure := REALISTIC.failure(f"{byte:02x}")) is not None
    )
    assert failure_counts == {"crash-loop": 256 // 16, "exit": 256 // 32}


def test_times_do_not_depend_on_whether_a_pod_fails() -> None:
    assert {tuple(REALISTIC.seconds(uid).items()) for uid in uids() if REALISTIC.failure(uid) is None} == {
        tuple(REALISTIC.seconds(uid).items()) for uid in uids() if REALISTIC.failure(uid) is not None
    }


compile_expression = functools.cache(jq.compile)


def evaluate_by_jq(expression: str, uid: str) -> Any:
    return compile_expression(expression).input_value({"metadata": {"uid": uid}}).first()


def test_jq_draws_the_same_values() -> None:
    assert {uid: REALISTIC.seconds(uid) for uid in uids()} == {
        uid: {
            name: int(evaluate_by_jq(f'"{text}"', uid).removesuffix("s"))
            for name, text in REALISTIC.parameters().items()
        }
        for uid in uids()
    }
    for failure, condition in REALISTIC.conditions():
        for uid in uids():
            assert evaluate_by_jq(condition, uid) is (REALISTIC.failure(uid) == failure), uid
