"""Tests of which parts of a life are the same in all lives, and which may differ by chance."""

from __future__ import annotations

from typing import Any

from conformance.grove import labels
from tests.reference.chaos import normal


class Seen:
    """A view that contains only pods."""

    def __init__(self, gangs: dict[str, str]) -> None:
        self._pods = [
            {
                "metadata": {
                    "name": f"{hostname}-abcde",
                    "labels": {
                        labels.CLIQUE: "s-0-a",
                        labels.GANG: gang,
                        labels.POD_INDEX: hostname.rpartition("-")[2],
                    },
                },
                "spec": {"hostname": hostname},
            }
            for hostname, gang in gangs.items()
        ]

    def list(self, kind: str) -> list[dict[str, Any]]:
        return self._pods if kind == "pods" else []


RIGHT = {"s-0-a-0": "one", "s-0-a-1": "two", "s-0-a-2": "two"}


def normalized(gangs: dict[str, str]) -> dict[str, Any]:
    return normal(Seen(gangs), "ns")  # type: ignore[arg-type]


def test_the_gang_of_each_pod_of_a_clique_is_normalized() -> None:
    assert normalized({"s-0-a-2": "one", "s-0-a-0": "two", "s-0-a-1": "two"}) == normalized(RIGHT)


def test_pod_counts_and_hostnames_are_not_normalized() -> None:
    assert normalized({"s-0-a-0": "one", "s-0-a-1": "one", "s-0-a-2": "two"}) != normalized(RIGHT)
    assert normalized({"s-0-a-0": "one", "s-0-a-1": "two", "s-0-a-3": "two"}) != normalized(RIGHT)
