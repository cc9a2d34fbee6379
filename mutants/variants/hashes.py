"""Variants of template hashes where the documents leave a choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.registry import variant
from mutants.replacement import on_result_of
from reference_impl.plan.hashing import canonical


@variant("operator", "ignores the order of resizePolicy in hashes", "TMPL-005", "TMPL-006", exempt=("TMPL-010",))
@on_result_of(canonical, "_canonical_container")
def _resize_policy_without_order(result: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    policies = result.get("resizePolicy")
    if not isinstance(policies, list) or not all(isinstance(resize_policy, Mapping) for resize_policy in policies):
        return result
    return {
        **result,
        "resizePolicy": sorted(policies, key=lambda resize_policy: str(resize_policy.get("resourceName"))),
    }
