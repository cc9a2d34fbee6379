"""Variants of template hashes: what documents leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.registry import variant
from mutants.replacement import alter
from reference_impl.plan.hashing import canonical


@variant(
    "resize-policy-without-order",
    "operator",
    "ignores the order of resizePolicy in hashes",
    "TMPL-005",
    "TMPL-006",
    exempt=("TMPL-010",),
)
def _resize_policy_without_order() -> None:
    def container(made: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        policies = made.get("resizePolicy")
        if not isinstance(policies, list) or not all(isinstance(each, Mapping) for each in policies):
            return made
        return {**made, "resizePolicy": sorted(policies, key=lambda each: str(each.get("resourceName")))}

    alter(canonical, "_container", container)
