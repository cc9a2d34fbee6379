"""Which nodes are eligible for a pod, capacity apart: taints, node selector, required node affinity."""

from __future__ import annotations

from reference_impl.scheduler.model import Expression, Node, NodeTerm, Pod, Taint, Toleration

_REPELLING = ("NoSchedule", "NoExecute")


def eligible(pod: Pod, node: Node) -> bool:
    """Whether the node is usable and admits the pod, capacity apart."""
    return node.usable and tolerated(pod, node) and selected(pod, node)


def tolerated(pod: Pod, node: Node) -> bool:
    """Whether the pod tolerates all NoSchedule and NoExecute taints of the node."""
    tolerations = pod.spec.tolerations or []
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in node.spec.taints or ()
        if taint.effect in _REPELLING
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and toleration.value == taint.value)


def selected(pod: Pod, node: Node) -> bool:
    """Whether the node has the labels that the pod requires."""
    node_labels = node.metadata.labels or {}
    if any(node_labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return True
    return any(_term(term, node) for term in required.node_selector_terms or ())


def _term(term: NodeTerm, node: Node) -> bool:
    """A term without expressions matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    by_label = all(_matches(e, node.metadata.labels or {}) for e in term.match_expressions or ())
    return by_label and all(_matches(e, {"metadata.name": node.metadata.name}) for e in term.match_fields or ())


def _matches(expression: Expression, values: dict[str, str]) -> bool:
    present, value = expression.key in values, values.get(expression.key, "")
    wanted = expression.values or []
    match expression.operator:
        case "In":
            return present and value in wanted
        case "NotIn":
            return value not in wanted if present else True
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case "Gt" | "Lt" if len(wanted) == 1 and _number(value) and _number(wanted[0]):
            return int(value) > int(wanted[0]) if expression.operator == "Gt" else int(value) < int(wanted[0])
        case _:
            return False


def _number(text: str) -> bool:
    return text.lstrip("-").isdigit()
