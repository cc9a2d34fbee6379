"""Tests that an environment variable has the same value whether the operator writes the value or a reference to a field
of the pod."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove.variables import environment

POD: dict[str, Any] = {"metadata": {"name": "p-0-a-x", "labels": {"grove.io/podclique-pod-index": "2"}}}


def from_field(path: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ({"value": "2"}, "2"),
        (from_field("metadata.labels['grove.io/podclique-pod-index']"), "2"),
        (from_field("metadata.labels['grove.io/other']"), ""),
        (from_field("metadata.name"), "p-0-a-x"),
        (from_field("status.podIP"), "field status.podIP"),
        ({"value": "$(BEFORE)-$$(BEFORE)-$(AFTER)"}, "b-$(BEFORE)-$(AFTER)"),
        ({}, ""),
    ],
)
def test_values(variable: dict[str, Any], value: str) -> None:
    env = [{"name": "BEFORE", "value": "b"}, {"name": "V", **variable}, {"name": "AFTER", "value": "a"}]
    assert environment({"env": env}, POD)["V"] == value


def test_a_duplicate_variable_has_the_first_position_and_the_last_value() -> None:
    env = [{"name": name, "value": value} for name, value in (("A", "1"), ("B", "2"), ("A", "3"))]
    assert list(environment({"env": env}, POD).items()) == [("A", "3"), ("B", "2")]
