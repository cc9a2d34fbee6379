"""Mutants of the scheduler in the writes of claims, and in what it does with gangs that need devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mutants.profiles.scheduler_placement import place_extra_pods_early
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace, replace_unnoted
from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import Cycle, Plan
from reference_impl.scheduler.devices import decisions
from reference_impl.scheduler.devices.claim_store import ClaimStore
from reference_impl.scheduler.devices.inventory import Inventory
from reference_impl.scheduler.devices.ledger import Ledger
from reference_impl.scheduler.devices.objects import ResourceClaim
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Node
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.search import Budget

ROLE: Final = "gang-scheduler"


@mutant(ROLE, "does not say on which nodes the devices of a claim are", "DEV-016")
def _claims_without_nodes() -> None:
    replace(decisions, "_node_selector", lambda results, inventory, node: None)


@mutant(ROLE, "says that the devices of a claim are on each node with GPUs", "DEV-016")
@instead_of(decisions, "_node_selector")
def _claims_for_all_gpu_nodes(results: Any, inventory: Inventory, node: str) -> dict[str, Any]:
    expressions = [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


@mutant(ROLE, "binds the pods of a gang for which devices are free", "DEV-003", "DEV-026")
@around(cycle, "place_minimum")
def _gangs_bound_as_far_as_devices_reach(
    original: Original, gang: Gang, capacity: Capacity, result: Plan, budget: Budget
) -> bool:
    placed = original(gang, capacity, result, budget)
    for index, pods in () if placed else gang.pending_pods:
        for pod in pods:
            if (placement := place(gang, [(index, [pod])], capacity, budget)) is not None:
                cycle.bind(gang, placement, capacity, result)
    return placed


@mutant(ROLE, "gives a gang devices for all its pods before the next gang", "DEV-014")
def _extra_pods_take_devices_first() -> None:
    def yield_extra_pods(cycle: Cycle) -> bool:
        return False

    place_extra_pods_early()
    replace_unnoted(cycle, "yield_extra_pods", yield_extra_pods)


@mutant(ROLE, "does not count the devices of pods that it could evict", "DEV-015")
@around(Ledger, "_use")
def _devices_of_victims_kept(original: Original, self: Ledger, claim: ResourceClaim, delta: int) -> None:
    if delta > 0:
        original(self, claim, delta)


@mutant(ROLE, "knows only the devices that exist when it first schedules", "DEV-013")
@around(ClaimStore, "ledger", memory=list)
def _devices_listed_once(
    original: Original, inventories: list[Inventory], self: ClaimStore, nodes: Iterable[Node]
) -> Ledger:
    if inventories:
        self._inventory = inventories[0]
    cycle_ledger = original(self, nodes)
    inventories.append(cycle_ledger.inventory)
    return cycle_ledger
