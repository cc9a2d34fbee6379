"""A variant of a set's Role: the same permissions, written as other rules."""

from __future__ import annotations

from mutants.registry import variant
from mutants.replacement import replace_data
from reference_impl.plan import secondary_resources


@variant("operator", "writes a rule of the Role for each resource", "RES-004", "RES-009")
def _a_rule_per_resource() -> None:
    rules = [
        {"apiGroups": [""], "resources": [resource], "verbs": ["watch", "list", "get"]}
        for resource in ("pods/status", "pods")
    ]
    replace_data(secondary_resources, "RULES", rules, read_by=(secondary_resources, "role"))
