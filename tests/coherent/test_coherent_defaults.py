"""Tests of which defaults an implementation of coherent updates may set."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove.admission.defaults import without_coherent_defaults

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
    ("requested_set", "stored_set", "judged_set"),
    [
        (pcs(None), pcs({"type": "Coherent"}, 2), pcs(None)),
        (pcs({}), pcs({"type": "Coherent"}, 2), pcs({"type": "RollingRecreate"})),
        (pcs({"type": "RollingRecreate"}), pcs({"type": "RollingRecreate"}, 1), pcs({"type": "RollingRecreate"})),
        (pcs(None), pcs({"type": "RollingRecreate"}), pcs({"type": "RollingRecreate"})),
        (pcs({"type": "OnDelete"}), pcs({"type": "Coherent"}), pcs({"type": "Coherent"})),
        (pcs({"type": "Coherent"}, 3), pcs({"type": "Coherent"}, 3), pcs({"type": "Coherent"}, 3)),
    ],
)
def test_only_defaults_of_fields_that_were_not_set_are_removed(
    requested_set: dict[str, Any], stored_set: dict[str, Any], judged_set: dict[str, Any]
) -> None:
    assert without_coherent_defaults(requested_set, stored_set["spec"]) == judged_set["spec"]
