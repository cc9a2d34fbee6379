"""Variants of per-component updates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutants.registry import variant
from mutants.replacement import on_result_of, replace
from reference_impl.admission.errors import FieldError, forbidden
from reference_impl.admission.rules import coherent as rules
from reference_impl.api.models import Condition, PodCliqueSet
from reference_impl.plan import update_clique_pods, update_condition, update_group_replicas, update_progress


@variant("operator", "replaces one pod and one replica at a time", *("UPD-047", "UPD-048"), exempt=("UPD-049",))
def _budget_unused() -> None:
    replace(update_clique_pods, "additional_pods", lambda step, clique, members, current, budget: [])
    replace(update_group_replicas, "additional_replicas", lambda step, replicas, budget: [])


@variant("operator", "says of no set that it is being updated", *("UPD-050", "UPD-051"), exempt=("UPD-061",))
@on_result_of(update_condition, "set_condition")
def _sets_say_nothing_of_updates(condition: Condition, parts: Any, now: str, *, in_progress: bool) -> Condition:
    return update_condition._condition("False", "See the components", now) if in_progress else condition


@variant(
    "operator",
    "refuses the strategy OnDelete with a rollingUpdate",
    *("UPD-035", "UPD-037", "UPD-038", "COHR-090", "COHR-093"),
)
@on_result_of(rules, "violations")
def _no_budget_with_on_delete(violations: Iterator[FieldError], pcs: PodCliqueSet) -> list[FieldError]:
    template = pcs.spec.template
    parts = [*template.cliques, *(template.pod_clique_scaling_groups or ())]
    if not update_progress.is_on_delete(pcs) or not any(part.rolling_update for part in parts):
        return list(violations)
    return [*violations, forbidden("spec.updateStrategy.type", "has no use for rollingUpdate")]


@variant(
    "operator",
    "refuses a maxUnavailable between one and minAvailable, whatever the strategy",
    *("UPD-047", "UPD-048"),
    exempt=("COHR-008", "UPD-060"),
)
@on_result_of(rules, "violations")
def _low_budget_refused_with_rolling_recreate(violations: Iterator[FieldError], pcs: PodCliqueSet) -> list[FieldError]:
    errors = list(violations)
    if update_progress.is_on_delete(pcs):
        return errors
    for i, clique in enumerate(pcs.spec.template.cliques):
        given = clique.rolling_update.max_unavailable if clique.rolling_update else None
        if given is not None and 1 < given < clique.spec.minimum:
            errors.append(forbidden(f"spec.template.cliques[{i}].rollingUpdate", "is less than minAvailable"))
    return errors
