"""Conditions as Kubernetes handles them: the transition time changes only with the status (OBJ-702)."""

from __future__ import annotations

import msgspec

from reference_impl.api.models import Condition


def find(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """The condition of a type; None if there is none."""
    return next((condition for condition in conditions or () if condition.type == kind), None)


def is_true(conditions: list[Condition] | None, kind: str) -> bool:
    """Whether the condition of a type has the status True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def put(conditions: list[Condition] | None, new: Condition) -> list[Condition]:
    """The list with `new` in it; equal to the old one if only the transition time would differ."""
    old = find(conditions, new.type)
    if old is not None and old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    if old is None:
        return [*(conditions or ()), new]
    return [new if condition.type == new.type else condition for condition in conditions or ()]


def without(conditions: list[Condition] | None, kind: str) -> list[Condition] | None:
    """The list without the condition of that type; the same list if it has none."""
    if find(conditions, kind) is None:
        return conditions
    return [condition for condition in conditions or () if condition.type != kind]
