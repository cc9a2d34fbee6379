"""The fate of each gang in a recording of any cluster, and the placement rules that its scheduler broke.

A recording starts while the cluster is in use: gangs that already had bound pods, and gangs that depend on such gangs,
are not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.grove import labels, pods
from conformance.grove.fields import label
from conformance.history.gangs import Gangs
from conformance.history.order import server_order
from conformance.history.record import DELETED, Record
from conformance.invariants.anti_affinity import PodsKeptApart
from conformance.invariants.base_bound_first import BaseBoundFirst
from conformance.invariants.host_ports import HostPortsOnce
from conformance.invariants.invariant import Invariant
from conformance.invariants.node_capacity import WithinNodeCapacity
from conformance.invariants.required_domains import StaysInRequiredDomain, WithinRequiredDomain
from conformance.invariants.result import RuleResult
from conformance.invariants.settled_gangs import NoGangHeldBelowMinimum


class GangState(StrEnum):
    """The final state of a gang."""

    ADMITTED = "admitted"
    """Every PodGroup has had minReplicas bound pods."""
    WAITING = "waiting"
    """Never admitted; none of its pods is bound."""
    TORN = "torn"
    """Never admitted, and some of its pods are bound."""
    DELETED = "deleted"
    """Deleted before it was admitted."""
    OLDER = "older"
    """Not judged: when its pods first appear in the recording, some are already bound, or it depends on such a gang."""


@dataclass(frozen=True)
class Fate:
    """The fate of one gang. Times are seconds since the start of the recording; None if the event never happened."""

    namespace: str
    gang: str
    state: GangState
    bound: float | None = None
    """The time at which its first pod was bound."""
    admitted: float | None = None
    missing: str = ""
    """For a gang that was never admitted, a description of the PodGroups that are below their minimum."""

    @property
    def binding_seconds(self) -> float | None:
        """Return the seconds between the binding of its first pod and its admission."""
        return None if self.bound is None or self.admitted is None else self.admitted - self.bound


@dataclass(frozen=True)
class Placements:
    """The fates of all gangs, and the results of the rules, each with its namespace (empty for the whole cluster)."""

    fates: tuple[Fate, ...]
    results: tuple[tuple[str, RuleResult], ...]

    @property
    def broken_rules(self) -> list[tuple[str, RuleResult]]:
        """Return the results of the rules that do not hold, each with its namespace."""
        return [(space, result) for space, result in self.results if result.holds is False]


def judge(records: Sequence[Record], now: float, settle: float = 0) -> Placements:
    """Return the fates of all gangs until `now`. `settle`: the maximum seconds that the scheduler may take between two
    steps of a gang (INV-003)."""
    spaces = sorted({record.namespace for record in records if record.resource == "podgangs"})
    cluster_records = [record for record in records if not record.namespace]
    fates: list[Fate] = []
    results: list[tuple[str, RuleResult]] = []
    for space in spaces:
        namespace_records = [record for record in records if record.namespace == space]
        older_gangs = _older_gangs(namespace_records)
        judged_records = [record for record in namespace_records if _gang(record) not in older_gangs]
        rules = [NoGangHeldBelowMinimum(settle), BaseBoundFirst(), WithinRequiredDomain(), StaysInRequiredDomain()]
        ordered = server_order([*cluster_records, *judged_records])
        results += [(space, result) for result in _results(rules, ordered, now)]
        fates += _fates(space, judged_records if ordered is None else ordered)
        fates += [Fate(space, gang, GangState.OLDER) for gang in sorted(older_gangs)]
    placement_records = [record for record in records if record.resource in ("pods", "nodes")]
    results += [("", result) for result in _results(_node_rules(), server_order(placement_records), now)]
    return Placements(tuple(fates), tuple(results))


def _node_rules() -> list[Invariant]:
    """Return the rules about the pods of all namespaces together."""
    return [WithinNodeCapacity(), HostPortsOnce(), PodsKeptApart()]


def _results(rules: Sequence[Invariant], ordered: Sequence[Record] | None, now: float) -> list[RuleResult]:
    if ordered is None:
        reason = "the resource versions of this cluster's resources don't compare"
        return [RuleResult(rule.id, rule.statement, None, reason) for rule in rules]
    gangs = Gangs()
    for record in ordered:
        for rule in rules:
            rule.observe(record, gangs)
        gangs.apply(record)
    return [rule.result(gangs, now) for rule in rules]


def _gang(record: Record) -> str:
    """Return the gang that a record is about; empty if there is none."""
    if record.resource == "podgangs":
        return record.name
    return label(record.object, labels.GANG) if record.resource == "pods" else ""


def _older_gangs(records: Sequence[Record]) -> set[str]:
    """Return the gangs that already had bound pods when the recording first showed their pods, and the gangs that
    depend on them."""
    seen_uids: set[str] = set()
    older_gangs: set[str] = set()
    for record in records:
        if record.resource == "pods" and record.uid not in seen_uids:
            seen_uids.add(record.uid)
            if pods.is_bound(record.object):  # already bound when listed, or created with a nodeName
                older_gangs.add(_gang(record))
    dependent_gangs = {_gang(record) for record in records if label(record.object, labels.BASE_GANG) in older_gangs}
    return (older_gangs | dependent_gangs) - {""}


def _fates(space: str, ordered: Sequence[Record]) -> list[Fate]:
    gangs = Gangs()
    bound: dict[str, float] = {}
    admitted: dict[str, float] = {}
    deleted: set[str] = set()
    for record in ordered:
        name = gangs.apply(record)
        if not name:
            continue
        deleted.discard(name)
        if record.resource == "podgangs" and record.kind == DELETED:
            deleted.add(name)
        if gangs[name].active_pods:
            bound.setdefault(name, record.at)
        if gangs[name].is_admitted:
            admitted.setdefault(name, record.at)
    gang_names = sorted({record.name for record in ordered if record.resource == "podgangs"})
    return [_fate(space, name, gangs, bound.get(name), admitted.get(name), name in deleted) for name in gang_names]


def _fate(space: str, name: str, gangs: Gangs, bound: float | None, admitted: float | None, deleted: bool) -> Fate:
    gang = gangs[name]
    if admitted is not None:
        return Fate(space, name, GangState.ADMITTED, bound, admitted)
    if deleted:
        return Fate(space, name, GangState.DELETED, bound)
    return Fate(space, name, GangState.TORN if gang.active_pods else GangState.WAITING, bound, None, gang.shortfall())
