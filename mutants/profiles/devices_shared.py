"""Mutants in claims that several pods share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mutants.registry import mutant
from mutants.replacement import Original, around, on_result_of, replace
from reference_impl.control.cache import BY_OWNER
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.scheduler.devices.claim_store import ClaimStore
from reference_impl.scheduler.devices.decisions import ClaimDecision
from reference_impl.scheduler.devices.ledger import Ledger, PodClaims
from reference_impl.scheduler.filters.dynamic_resources import DynamicResources
from reference_impl.scheduler.model import Node, Pod

ROLE: Final = "gang-scheduler"


@mutant(ROLE, "considers only the last node with devices for a shared claim", "DEV-026")
@around(DynamicResources, "refusal")
def _shared_claims_on_the_last_node(original: Original, self: DynamicResources, node: Node) -> str:
    reason = original(self, node)
    if reason or not self._claims.shared:
        return reason
    last_node = next(candidate for candidate in reversed(self.state.nodes) if not original(self, candidate))
    return "" if last_node is node else "another node has devices"


@mutant(ROLE, "binds no pod to a shared claim that has lost a pod", "DEV-027")
def _shared_claims_not_joined_again() -> None:
    original_ledger, original_refusal = ClaimStore.ledger, Ledger.refusal
    peaks = dict[str, int]()

    def ledger(self: ClaimStore, nodes: Iterable[Node]) -> Ledger:
        cycle_ledger = original_ledger(self, nodes)
        for claim in cycle_ledger.claims.values():
            peaks[claim.metadata.uid] = max(peaks.get(claim.metadata.uid, 0), len(claim.consumers))
        return cycle_ledger

    def refusal(self: Ledger, pod: Pod, pod_claims: PodClaims, node: Node) -> str:
        has_lost_pods = any(len(claim.consumers) < peaks[claim.metadata.uid] for claim in pod_claims.allocated)
        return "resourceclaim has lost a pod" if has_lost_pods else original_refusal(self, pod, pod_claims, node)

    replace(ClaimStore, "ledger", ledger)
    replace(Ledger, "refusal", refusal)


@mutant(ROLE, "reserves claims for gangs, besides their pods", "DEV-030", "DEV-031")
@on_result_of(ClaimDecision, "status")
def claims_reserved_for_gangs(status: dict[str, Any], decision: ClaimDecision, *arguments: Any) -> dict[str, Any]:
    """Add a reservation for the gang."""
    gang = {"apiGroup": "scheduler.grove.io", "resource": "podgangs", "name": "gang", "uid": "gang"}
    entries = [consumer for consumer in status["reservedFor"] if consumer["uid"] != gang["uid"]]
    return {**status, "reservedFor": [*entries, gang]}


@mutant("operator", "deletes the claims of a clique that has lost a pod", "DEV-028")
@around(CliqueReconciler, "_sync_claims", memory=dict)
async def _claims_go_with_a_pod(
    original: Original, uids_by_clique: dict[str, set[str]], self: CliqueReconciler, context: CliqueContext
) -> None:
    clique_uid = context.clique.metadata.uid
    uids = {pod.metadata.uid for pod in self._cache.pods_of(context.clique)}
    earlier_uids = uids_by_clique.get(clique_uid, set())
    uids_by_clique[clique_uid] = uids
    if uids.issuperset(earlier_uids):
        return await original(self, context)
    for claim in list(self._cache.claims.indexed(BY_OWNER, clique_uid)):
        await self._writer.delete(self._cache.claims, claim)
