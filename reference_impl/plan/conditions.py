"""Conditions as Kubernetes handles them: the transition time changes only when the status changes (OBJ-702)."""

from __future__ import annotations

import msgspec

from reference_impl.api.models import Condition


def find(conditions: list[Condition] | None, condition_type: str) -> Condition | None:
    """Return the condition of a type, or None if there is none."""
    return next((condition for condition in conditions or () if condition.type == condition_type), None)


def is_true(conditions: list[Condition] | None, condition_type: str) -> bool:
    """Return whether the condition of a type has the status True."""
    condition = find(conditions, condition_type)
    return condition is not None and condition.status == "True"


def with_condition(conditions: list[Condition] | None, new: Condition) -> list[Condition]:
    """Return the list with `new` in it. The result equals the old list if only the transition time would differ."""
    old = find(conditions, new.type)
    if old is not None and old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    if old is None:
        return [*(conditions or ()), new]
    return [new if condition.type == new.type else condition for condition in conditions or ()]


def without_condition(conditions: list[Condition] | None, condition_type: str) -> list[Condition] | None:
    """Return the list without the condition of this type. Return the same list if it has no such condition."""
    if find(conditions, condition_type) is None:
        return conditions
    return [condition for condition in conditions or () if condition.type != condition_type]
