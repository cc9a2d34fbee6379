"""Tests of the defaults that an implementation of coherent updates may set, and of those that it may not set."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove.admission.defaults import without_coherent

Object = dict[str, Any]


def pcs(strategy: dict[str, Any] | None, budget: int | None = None) -> dict[str, Any]:
    clique: dict[str, Any] = {"name": "f", "spec": {}}
    if budget is not None:
        clique["rollingUpdate"] = {"maxUnavailable": budget}
    spec: dict[str, Any] = {"template": {"cliques": [clique]}}
    if strategy is not None:
        spec["updateStrategy"] = strategy
    return {"spec": spec}


@pytest.mark.parametrize(
    ("given", "stored", "judged"),
    [
        (pcs(None), pcs({"type": "Coherent"}, 2), pcs(None)),
        (pcs({}), pcs({"type": "Coherent"}, 2), pcs({"type": "RollingRecreate"})),
        (pcs({"type": "RollingRecreate"}), pcs({"type": "RollingRecreate"}, 1), pcs({"type": "RollingRecreate"})),
        (pcs(None), pcs({"type": "RollingRecreate"}), pcs({"type": "RollingRecreate"})),
        (pcs({"type": "OnDelete"}), pcs({"type": "Coherent"}), pcs({"type": "Coherent"})),
        (pcs({"type": "Coherent"}, 3), pcs({"type": "Coherent"}, 3), pcs({"type": "Coherent"}, 3)),
    ],
)
def test_only_what_was_left_open_is_undone(
    given: dict[str, Any], stored: dict[str, Any], judged: dict[str, Any]
) -> None:
    assert without_coherent(given, stored["spec"]) == judged["spec"]
