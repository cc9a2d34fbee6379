"""Variants of the constraints that gangs get from topology constraints, and of a set's condition about them."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from mutants.registry import variant
from mutants.replacement import on_result_of
from reference_impl.api.models import Condition, PodCliqueSet
from reference_impl.plan import gangs, topology
from reference_impl.plan.children import group_configs
from reference_impl.plan.gangs import PlannedGang
from reference_impl.plan.layout import EntryGang


@variant(
    "operator",
    "gives a scaled gang no constraint if its scaling group has none",
    "RES-060",
    "RES-061",
    "RES-063",
    "RES-064",
    "COHR-019",
    exempt=("RES-062",),
)
@on_result_of(gangs, "_planned_gang")
def _nothing_inherited(
    original: PlannedGang, pcs: PodCliqueSet, index: int, name: str, gang: EntryGang, *_: Any, **__: Any
) -> Any:
    group_constraints = [config.topology_constraint for config in group_configs(pcs) if gang.groups.get(config.name)]
    inherits = not gang.entry.anchor and not any(group_constraints)
    return dataclasses.replace(original, topology=None) if inherits else original


@variant("operator", "reports a missing binding with the status True", "RES-065")
@on_result_of(topology, "condition")
def _missing_binding_is_true(current: Condition | None, *_: Any) -> Condition | None:
    missing = current is not None and current.reason == "ClusterTopologyNotFound"
    return msgspec.structs.replace(current, status="True") if current is not None and missing else current
