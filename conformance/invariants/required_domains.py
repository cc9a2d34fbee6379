"""TOPO-034 and TOPO-035: the pods under a required topology constraint are in one domain (GS-34, GS-35)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from conformance.grove import labels, pods
from conformance.grove.fields import Document, at, items, label, terminating, text, texts
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant

REQUIRED_PACK = ("topologyConstraint", "packConstraint", "required")


class RequiredDomain(NamedTuple):
    """PodGroups whose pods must run on nodes with the same value of a node label; no groups mean the whole gang."""

    key: str
    groups: frozenset[str]


class PodPlacement(NamedTuple):
    """The node of a bound pod, with its gang and PodGroup."""

    gang: str
    group: str
    node: str


class WithinRequiredDomain(Invariant):
    """Judged at each binding until the gang is admitted, by the labels that the nodes have at that moment. Pods that
    are being deleted do not count, and nothing is judged while the bound pods are already in different domains."""

    id = "TOPO-034"
    statement = "the pods of a required topology constraint are bound in one domain"
    judges_extra_pods = False
    """Whether the rule judges bindings after the admission of the gang, which are bindings of extra pods and
    replacements."""

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[str, Document] = {}
        self._scopes: dict[str, list[RequiredDomain]] = {}
        self._placements: dict[str, PodPlacement] = {}
        self._admitted_gangs: set[str] = set()
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge bindings, and track the constraints of gangs and the labels of nodes."""
        if record.resource == "nodes":
            self._nodes[record.name] = record.object
        elif record.resource == "podgangs":
            self._scopes[record.name] = [] if record.kind == DELETED else list(scopes(record.object))
        elif record.resource == "pods":
            self._observe_pod(record, gangs)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod with a required topology constraint was bound"

    def _observe_pod(self, record: Record, gangs: Gangs) -> None:
        pod, previous_placement = record.object, self._placements.get(record.uid)
        if record.kind == DELETED or not pods.is_bound(pod) or terminating(pod) or pods.has_ended(pod):
            self._placements.pop(record.uid, None)
            return
        if previous_placement is not None:
            return
        placement = PodPlacement(label(pod, labels.GANG), label(pod, labels.CLIQUE), pods.node(pod))
        if gangs[placement.gang].is_admitted:
            self._admitted_gangs.add(placement.gang)
        if not record.listed and (placement.gang in self._admitted_gangs) == self.judges_extra_pods:
            for scope in self._scopes.get(placement.gang, ()):
                self._judge(record, placement, scope)
        self._placements[record.uid] = placement

    def _judge(self, record: Record, placement: PodPlacement, scope: RequiredDomain) -> None:
        if scope.groups and placement.group not in scope.groups:
            return
        domains = {
            self._domain(other.node, scope.key)
            for other in self._placements.values()
            if other.gang == placement.gang and (not scope.groups or other.group in scope.groups)
        }
        domain = self._domain(placement.node, scope.key)
        if placement.node not in self._nodes or len(domains) > 1 or (self.judges_extra_pods and not domains):
            return
        self._judged += 1
        if not domain:
            self._report_violation(
                f"{record.name} was bound to {placement.node}, which has no label {scope.key}", record
            )
        elif domains - {domain}:
            other = ", ".join(sorted(domains)) or "no domain"
            reason = (
                f"{record.name} was bound in {domain} of {scope.key}, and pods of gang {placement.gang} are in {other}"
            )
            self._report_violation(reason, record)

    def _domain(self, node: str, key: str) -> str:
        return label(self._nodes.get(node, {}), key)


class StaysInRequiredDomain(WithinRequiredDomain):
    """The same rule for extra pods and replacements, while other pods under the constraint are bound."""

    id = "TOPO-035"
    statement = (
        "extra pods and replacements are bound in the domain of the other pods of a required topology constraint"
    )
    judges_extra_pods = True


def scopes(gang: Document) -> Iterator[RequiredDomain]:
    """Yield the required constraints of a PodGang: for the whole gang, for groups of PodGroups, and for single
    PodGroups."""
    spec = at(gang, "spec")
    constraints = [
        (spec, frozenset[str]()),
        *(
            (config, frozenset(texts(config, "podGroupNames")))
            for config in items(spec, "topologyConstraintGroupConfigs")
        ),
        *((group, frozenset({text(group, "name")})) for group in items(spec, "podgroups")),
    ]
    for constrained, names in constraints:
        if key := text(constrained, *REQUIRED_PACK):
            yield RequiredDomain(key, names)
