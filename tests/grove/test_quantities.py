"""Tests of the values of quantities and the requests of pods."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from conformance.grove import quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", "1"), ("500m", "0.5"), ("1.5", "1.5"), (".5", "0.5"), ("2e3", "2000"), ("1E2", "100"),
        ("1E", str(10**18)), ("1Ki", "1024"),
        ("2Gi", str(2 << 30)), ("3k", "3000"), ("250u", "0.00025"), ("-1", "-1"), (4, "4"),
    ],
)  # fmt: skip
def test_a_quantity(text: object, value: str) -> None:
    assert quantities.amount(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1ki", "Gi", None, True, [], "1e"])
def test_some_values_are_not_quantities(text: object) -> None:
    assert quantities.amount(text) is None


def container(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **fields}


def cpu(spec: dict[str, Any]) -> Decimal:
    return quantities.requested({"spec": spec})["cpu"]


def test_requests_of_containers_add_up() -> None:
    assert cpu({"containers": [container("1"), container("500m")]}) == Decimal("1.5")


def test_a_large_init_container_counts_instead() -> None:
    assert cpu({"containers": [container("1")], "initContainers": [container("3")]}) == 3


def test_sidecars_count_in_addition_to_the_other_containers() -> None:
    sidecar = container("2", restartPolicy="Always")
    assert cpu({"containers": [container("1")], "initContainers": [sidecar, container("500m")]}) == 3
    assert cpu({"containers": [container("1")], "initContainers": [sidecar, container("4")]}) == 6


def test_requests_of_the_whole_pod_take_precedence() -> None:
    assert cpu({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}) == 4


def test_overhead_and_the_pod_itself_count() -> None:
    requests = quantities.requested({"spec": {"containers": [container("1")], "overhead": {"cpu": "100m"}}})
    assert requests == {"cpu": Decimal("1.1"), "pods": 1}


def test_a_limit_without_a_request_is_the_request() -> None:
    gpus = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    assert quantities.requested({"spec": {"containers": [gpus]}})["nvidia.com/gpu"] == 2
