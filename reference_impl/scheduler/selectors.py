"""Label selectors and the affinity fields of pods. An unknown field or operator makes decoding fail, because a pod that
uses it must not be placed as if the field were absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from kube.objects import ObjectMeta

Labels = Mapping[str, str]


class StrictStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A part of a spec that may have only known fields."""


class Expression(StrictStruct):
    """An expression about one label or field."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] | None = None


class NodeTerm(StrictStruct):
    """A term of a node affinity, all of whose expressions must hold."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(StrictStruct):
    """The terms of a node affinity, one of which must hold."""

    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(StrictStruct):
    """The node affinity; preferences are ignored."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Any = None


class LabelSelector(StrictStruct):
    """A label selector. An empty selector matches everything, and a missing selector matches nothing."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None

    @property
    def empty(self) -> bool:
        """Whether the selector matches everything."""
        return not self.match_labels and not self.match_expressions


class PodAffinityTerm(StrictStruct):
    """A required term of a pod affinity or anti-affinity."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PodAffinity(StrictStruct):
    """The pod affinity or anti-affinity; preferences are ignored."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: Any = None


class Affinity(StrictStruct):
    """The affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    @property
    def required_nodes(self) -> NodeSelector | None:
        """The required node affinity, or None if there is none."""
        return self.node_affinity.required_during_scheduling_ignored_during_execution if self.node_affinity else None

    @property
    def required(self) -> list[PodAffinityTerm]:
        """The required terms of the pod affinity."""
        return _terms(self.pod_affinity)

    @property
    def forbidden(self) -> list[PodAffinityTerm]:
        """The required terms of the pod anti-affinity."""
        return _terms(self.pod_anti_affinity)


class SpreadConstraint(StrictStruct):
    """A topology spread constraint."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: list[str] | None = None


def _terms(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    return (affinity.required_during_scheduling_ignored_during_execution if affinity else None) or []


def selects(selector: LabelSelector | None, labels: Labels | None) -> bool:
    """Return whether a label selector matches labels."""
    if selector is None:
        return False
    labels = labels or {}
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    return all(holds(expression, labels) for expression in selector.match_expressions or ())


def holds(expression: Expression, labels: Labels) -> bool:
    """Return whether an expression holds for labels."""
    value, values = labels.get(expression.key), expression.values or []
    match expression.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number, limit = integer(value), integer(values[0]) if len(values) == 1 else None
    if number is None or limit is None:
        return False
    return number > limit if expression.operator == "Gt" else number < limit


def integer(text: str | None) -> int | None:
    """Parse a string as a 64-bit integer; return None if it is not one."""
    try:
        number = int(text or "")
    except ValueError:
        return None
    return number if -(1 << 63) <= number < 1 << 63 and "_" not in str(text) and str(text).strip() == text else None


def selects_node(selector: NodeSelector, name: str, labels: Labels | None) -> bool:
    """Return whether any of the terms matches a node. A term without expressions matches nothing."""
    return any(_matches(term, name, labels or {}) for term in selector.node_selector_terms or ())


def _matches(term: NodeTerm, name: str, labels: Labels) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return all(holds(e, labels) for e in term.match_expressions or ()) and all(
        holds(e, {"metadata.name": name}) for e in term.match_fields or ()
    )


class Term:
    """A term of a pod's affinity or anti-affinity, with the pod's own namespace and labels filled in."""

    def __init__(self, owner: ObjectMeta, term: PodAffinityTerm) -> None:
        self.key = term.topology_key
        own_namespace = not term.namespaces and term.namespace_selector is None
        self.namespaces = {owner.namespace} if own_namespace else set(term.namespaces or ())
        self.namespace_selector = term.namespace_selector
        self.selector = with_merged_labels(term, owner.labels or {})
        parts = (sorted(self.namespaces), self.namespace_selector, self.selector)
        self.identity = self.key, msgspec.json.encode(parts)
        """A key that is equal for terms with the same meaning."""

    def matches(self, pod: ObjectMeta, namespace_labels: Mapping[str, Labels]) -> bool:
        """Return whether the term matches the pod with this metadata."""
        namespace = pod.namespace
        if namespace not in self.namespaces and not selects(self.namespace_selector, namespace_labels.get(namespace)):
            return False
        return selects(self.selector, pod.labels)


def with_merged_labels(term: PodAffinityTerm | SpreadConstraint, labels: Labels) -> LabelSelector | None:
    """Return the selector with the pod's values of `matchLabelKeys` and `mismatchLabelKeys` merged into it. For pod
    affinity, the API server has already merged them into the selector of a stored pod, permanently: later label changes
    have no effect."""
    selector = term.label_selector
    mismatch_keys = term.mismatch_label_keys if isinstance(term, PodAffinityTerm) else None
    if selector is None or not (term.match_label_keys or mismatch_keys):
        return selector
    expressions = list(selector.match_expressions or ())
    present_keys = {(e.key, e.operator) for e in expressions if isinstance(term, PodAffinityTerm)}
    for operator, keys in (("In", term.match_label_keys), ("NotIn", mismatch_keys)):
        label_keys = (key for key in keys or () if key in labels and (key, operator) not in present_keys)
        expressions += [
            msgspec.convert({"key": k, "operator": operator, "values": [labels[k]]}, Expression) for k in label_keys
        ]
    return LabelSelector(selector.match_labels, expressions)
