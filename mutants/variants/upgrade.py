"""Variants of operator upgrades."""

from __future__ import annotations

import dataclasses

from mutants.registry import variant
from mutants.replacement import on_result_of, replace
from reference_impl.api.models import Condition
from reference_impl.plan import conditions, gang_migration
from reference_impl.plan.hashing.window import Policy
from reference_impl.runtime import configuration
from reference_impl.runtime.clock import now

LATEST_SCHEMES = ("legacy-0.36", "canonical-0.36")
"""Hash schemes of operators that are built with the latest libraries."""


@variant("operator", "leaves the condition of a migration with the status False", *("UPG-012", "UPG-015", "UPG-022"))
@on_result_of(conditions, "without_condition")
def _migration_ends_with_false(
    current: list[Condition] | None, old: list[Condition] | None, kind: str
) -> list[Condition] | None:
    if kind != gang_migration.CONDITION:
        return current
    done = Condition(type=kind, status="False", reason="Migrated", message="", last_transition_time=now())
    return [*(current or ()), done]


@variant(
    "operator",
    "recognizes no hashes of operators that are built with the newest libraries",
    *("UPG-001", "UPG-002", "UPG-006", "UPG-007"),
    exempt=("UPG-005", "UPG-016"),
)
def _hashes_of_the_newest_libraries_unknown() -> None:
    original = vars(configuration.Hashes)["policy"].fget

    def policy(self: configuration.Hashes) -> Policy:
        configured: Policy = original(self)
        older_schemes = tuple(scheme for scheme in configured.recognised if scheme.name not in LATEST_SCHEMES)
        return dataclasses.replace(configured, recognised=older_schemes)

    replace(configuration.Hashes, "policy", property(policy))
