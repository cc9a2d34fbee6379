"""Decide whether a node admits a pod of a group by its cordon, taints, node selector and required node affinity,
regardless of its capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from conformance.grove.scheduling.instance import Group, Node


class Refusal(NamedTuple):
    """The reason why a node does not admit a pod, and the rule of spec E.1."""

    rule: str
    text: str


def admits(node: Node, group: Group) -> bool:
    """Return whether the node is schedulable and admits pods of the group."""
    return node.schedulable and refusal(node, group) is None


def refusal(node: Node, group: Group) -> Refusal | None:
    """Return the reason why a schedulable node does not admit a pod of a group; None if it does."""
    if claim := group.demands.get("claim"):
        return Refusal("OR-14", f"the PersistentVolumeClaim {claim} does not exist")
    for taint in node.taints:
        if taint["effect"] != "PreferNoSchedule" and not any(
            tolerates(t, taint) for t in group.demands.get("tolerations", ())
        ):
            return Refusal("OR-15", f"the taint {taint['key']} is not tolerated")
    reason = selection_problem(node, group)
    return Refusal("OR-16", reason) if reason else None


def selection_problem(node: Node, group: Group) -> str:
    """Return the reason why the node selector or required node affinity of a group does not select the node; empty if
    both select it."""
    if mismatches := {k: v for k, v in group.demands.get("nodeSelector", {}).items() if node.labels.get(k) != v}:
        return f"the node selector asks for {mismatches}"
    terms = group.demands.get("nodeAffinity")
    matches = terms is None or is_selected(node.labels, terms)
    return "" if matches else "the required node affinity does not match"


def is_selected(labels: Mapping[str, str], terms: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether one of the terms matches a node with these labels."""
    return any(_matches_term(term, labels) for term in terms)


def tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    """Return whether a toleration covers a taint of a node or a device."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    exists = toleration.get("operator", "Equal") == "Exists"
    if not toleration.get("key"):
        return exists
    same_value = toleration.get("value", "") == taint.get("value", "")
    return toleration["key"] == taint["key"] and (exists or same_value)


def _matches_term(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether all expressions of a term hold. A term without expressions matches nothing."""
    expressions = term.get("matchExpressions", [])
    return bool(expressions) and all(_matches_expression(e, labels.get(e["key"])) for e in expressions)


def _matches_expression(expression: Mapping[str, Any], value: str | None) -> bool:
    operator, values = expression["operator"], expression.get("values", [])
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "NotIn":
        return value is None or value not in values
    if value is None:
        return False
    if operator == "In":
        return value in values
    try:
        label_number, limit = int(value), int(values[0])
    except (ValueError, IndexError):
        return False
    return label_number > limit if operator == "Gt" else operator == "Lt" and label_number < limit
