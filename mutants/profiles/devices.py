"""Mutants of the scheduler in the allocation of devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mutants.profiles.scheduler_filters import _disable_filter
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.scheduler.devices import allocator, claim_store, decisions
from reference_impl.scheduler.devices.allocator import Usage
from reference_impl.scheduler.devices.claim_store import ClaimStore
from reference_impl.scheduler.devices.decisions import ClaimDecision
from reference_impl.scheduler.devices.inventory import Inventory
from reference_impl.scheduler.devices.ledger import Ledger
from reference_impl.scheduler.devices.objects import DeviceId
from reference_impl.scheduler.filters.dynamic_resources import DynamicResources
from reference_impl.scheduler.model import Node, Pod

ROLE: Final = "gang-scheduler"


@mutant(ROLE, "binds pods and leaves their claims to others", "DEV-001")
def _claims_not_allocated() -> None:
    def ignored(bindings: Iterable[Any], ledger: Ledger) -> tuple[list[ClaimDecision], set[str]]:
        return [], set()

    _disable_filter(DynamicResources)
    replace(decisions, "decisions", ignored)


@mutant(ROLE, "forgets which devices are allocated", "DEV-002", "DEV-003")
@instead_of(Usage, "take")
def _devices_allocated_twice(self: Usage, device_id: DeviceId, inventory: Inventory, count: int = 1) -> None:
    return


@mutant(ROLE, "binds pods without devices if there are too few", "DEV-003")
def _gangs_without_devices_bound() -> None:
    original_refusal, original_decisions = DynamicResources.refusal, decisions.decisions

    def refusal(self: DynamicResources, node: Node) -> str:
        refusals = [original_refusal(self, other) for other in self.state.nodes]
        return "" if all(refusals) else original_refusal(self, node)

    def without_the_rest(bindings: Iterable[Any], ledger: Ledger) -> tuple[list[ClaimDecision], set[str]]:
        return original_decisions(bindings, ledger)[0], set()

    replace(DynamicResources, "refusal", refusal)
    replace(decisions, "decisions", without_the_rest)


@mutant(ROLE, "holds devices for a gang that does not fit", "DEV-004")
@around(Ledger, "place")
def _devices_of_attempts_kept(original: Original, self: Ledger, pod: Pod, node: Node, delta: int) -> None:
    if delta > 0 or pod.spec.node_name:
        original(self, pod, node, delta)


@mutant(ROLE, "never uses a device again", "DEV-005")
@around(ClaimStore, "ledger", memory=set)
def _freed_devices_forgotten(
    original: Original, used: set[DeviceId], self: ClaimStore, nodes: Iterable[Node]
) -> Ledger:
    cycle_ledger = original(self, nodes)
    used.update(cycle_ledger.usage.devices)
    cycle_ledger.usage.devices.update(used)
    return cycle_ledger


@mutant(ROLE, "binds the pods of a shared claim to any nodes", "DEV-006")
def _shared_claims_anywhere() -> None:
    spread = dict[str, int]()

    def refusal(self: DynamicResources, node: Node) -> str:
        reason = original(self, node)
        if self.pod.spec.resource_claims and all(c.resource_claim_name for c in self.pod.spec.resource_claims):
            return "" if "not available" in reason else reason or ("used" if spread.get(node.metadata.name) else "")
        return reason

    def place(self: Ledger, pod: Pod, node: Node, delta: int) -> None:
        original_place(self, pod, node, delta)
        if any(c.resource_claim_name for c in pod.spec.resource_claims or ()):
            spread[node.metadata.name] = spread.get(node.metadata.name, 0) + delta

    original, original_place = DynamicResources.refusal, Ledger.place
    replace(DynamicResources, "refusal", refusal)
    replace(Ledger, "place", place)


@mutant(ROLE, "ignores the selectors of requests", "DEV-007")
@around(Inventory, "_is_matched")
def _selectors_ignored(original: Original, self: Inventory, device: Any, expression: str) -> bool:
    return "architecture" in expression or original(self, device, expression)


@mutant(ROLE, "ignores the constraints of claims", "DEV-008")
@instead_of(allocator._Search, "_is_permitted")
def _match_attribute_ignored(self: Any, part: Any, alternative: Any, device: Any) -> bool:
    return True


@mutant(ROLE, "writes only the first claim of a cycle", "DEV-001")
def _only_first_claim_written() -> None:
    original = claim_store.ClaimStore.write

    async def write(self: ClaimStore, claim_decisions: Iterable[ClaimDecision]) -> set[str]:
        return await original(self, list(claim_decisions)[:1])

    replace(ClaimStore, "write", write)
