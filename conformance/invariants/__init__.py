"""Rules that must hold at every moment of every history, regardless of the test. A result is true, false or unknown.

The rules replay the records in the order of the server's writes (order.py), after each watch has reached the current
revision: a lag between watches neither excuses nor causes a violation.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.history.gangs import Gangs
from conformance.history.order import server_order
from conformance.history.origins import Origins
from conformance.history.query import History
from conformance.invariants import coherent, membership
from conformance.invariants.anti_affinity import PodsKeptApart
from conformance.invariants.base_bound_first import BaseBoundFirst
from conformance.invariants.base_gang_first import BaseGangFirst
from conformance.invariants.clique_generations import OneGenerationBound
from conformance.invariants.clique_sizes import RecreatedSizes
from conformance.invariants.cordoned_nodes import NothingOnCordonedNodes
from conformance.invariants.counted_pods import CountedPods
from conformance.invariants.deletion_cause import DeletionHasCause
from conformance.invariants.finalizers_at_creation import FinalizersAtCreation
from conformance.invariants.gang_before_pods import GangBeforePods
from conformance.invariants.gang_references import ReferencesToPods
from conformance.invariants.gate_at_creation import GateAtCreation
from conformance.invariants.gate_until_initialized import GateUntilInitialized
from conformance.invariants.gate_until_referenced import GateUntilReferenced
from conformance.invariants.host_ports import HostPortsOnce
from conformance.invariants.invariant import Invariant
from conformance.invariants.node_capacity import WithinNodeCapacity
from conformance.invariants.ownership import Ownership
from conformance.invariants.pod_indices import OnePodPerIndex
from conformance.invariants.pod_names import PodNames
from conformance.invariants.result import RuleResult
from conformance.invariants.settled_gangs import NoGangHeldBelowMinimum
from conformance.invariants.startup_order import MinimumsReadyFirst, ParentsReadyFirst
from conformance.invariants.status_at_rest import NoStatusWritesAtRest
from conformance.invariants.transition_times import TransitionTimes
from conformance.invariants.update_counters import UpdateCounters

RELEVANT_RESOURCES = frozenset(
    {"pods", "podgangs", "podgangmaps", "podcliques", "podcliquescalinggroups", "podcliquesets", "nodes"}
)


def rules(
    unrest: Sequence[tuple[float, float]] = (), settle: float = 0, origins: Origins | None = None
) -> list[Invariant]:
    """Return a new instance of every rule. `unrest`: time spans in which something happened that has no record;
    `settle`: the maximum seconds between two steps of the gang scheduler; `origins`: who wrote which objects."""
    origins = origins or Origins()
    return [
        GateUntilReferenced(),
        BaseGangFirst(),
        NoGangHeldBelowMinimum(settle),
        Ownership(origins),
        GateUntilInitialized(),
        ParentsReadyFirst(),
        MinimumsReadyFirst(),
        NoStatusWritesAtRest(unrest),
        BaseBoundFirst(),
        DeletionHasCause(origins),
        WithinNodeCapacity(),
        GangBeforePods(),
        GateAtCreation(),
        ReferencesToPods(),
        OnePodPerIndex(),
        PodNames(),
        FinalizersAtCreation(),
        CountedPods(),
        TransitionTimes(),
        RecreatedSizes(),
        UpdateCounters(),
        NothingOnCordonedNodes(),
        HostPortsOnce(),
        PodsKeptApart(),
        OneGenerationBound(),
        *coherent.rules(origins),
    ]


def timed() -> frozenset[str]:
    """Return the ids of the rules that a slow machine can break."""
    return frozenset(rule.id for rule in rules() if rule.timed)


def judge(
    history: History,
    rule_ids: Sequence[str] = (),
    settle: float = 0,
    foreign_spans: Sequence[tuple[int, int | None]] = (),
) -> list[RuleResult]:
    """Return the results of all rules, or of the rules in `rule_ids`, sorted by id. For `settle`, see `rules`;
    `foreign_spans` are the spans, by record numbers, in which an operator other than the judged one ran. Raises
    HarnessError if a stream lags."""
    chosen_rules = [
        rule for rule in rules(history.unrest, settle, history.origins) if not rule_ids or rule.id in rule_ids
    ]
    by_hand = history.origins.by_hand
    records = [
        record for record in history.records() if record.resource in RELEVANT_RESOURCES and record.uid not in by_hand
    ]
    ordered = server_order(membership.with_complete_labels(records, foreign_spans))
    if ordered is None:
        reason = "the resource versions of this cluster's resources don't compare"
        return [RuleResult(rule.id, rule.statement, None, reason) for rule in chosen_rules]
    gangs = Gangs()
    for record in ordered:
        is_muted = any(start < record.seq and (until is None or record.seq <= until) for start, until in foreign_spans)
        for rule in chosen_rules:
            rule.is_muted = is_muted and not rule.of_scheduler
            rule.observe(record, gangs)
        gangs.apply(record)
    now = history.now()
    return sorted((rule.result(gangs, now) for rule in chosen_rules), key=lambda verdict: verdict.id)
