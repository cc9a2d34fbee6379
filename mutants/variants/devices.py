"""Variants of the gang scheduler in the choice of devices and in the writes of claims."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Final

from kube.errors import REQUEST_FAILED, ApiError
from mutants.profiles.devices_shared import claims_reserved_for_gangs
from mutants.registry import name_of, variant
from mutants.replacement import Original, alter, around, instead_of, on_result_of, replace
from reference_impl.scheduler import cycle
from reference_impl.scheduler.cycle import Cycle
from reference_impl.scheduler.devices import decisions
from reference_impl.scheduler.devices.claim_store import ClaimStore
from reference_impl.scheduler.devices.decisions import ClaimDecision
from reference_impl.scheduler.devices.inventory import Inventory, NodeDevices
from reference_impl.scheduler.devices.ledger import Ledger
from reference_impl.scheduler.devices.objects import FINALIZER, ResourceClaim
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.scheduler import GangScheduler
from reference_impl.scheduler.shortfall import Shortfall

ROLE: Final = "gang-scheduler"
PROFILE: Final = ("devices",)
WRITES: Final = "each replaces the write of a claim"
DELAY_SECONDS = 1.0
"""Seconds before claims are allocated or freed, in the variants that do so late."""
INTERVAL_SECONDS = 3.0
"""Seconds between scheduling cycles, in the variant that schedules at intervals."""

Status = dict[str, Any]
StatusWrites = Callable[[Status, ClaimDecision], list[Status]]
"""A function that returns what is written instead of the status of a claim, one write after the other."""


def _writes_variant(text: str, *passes: str, finalizer_first: bool = True) -> Callable[[StatusWrites], StatusWrites]:
    """Register the function as a variant in the writes of claims. Claims for extended resources are created as
    before."""

    def register(writes: StatusWrites) -> StatusWrites:
        @around(ClaimStore, "_write")
        async def apply(original: Original, self: ClaimStore, decision: ClaimDecision) -> bool:
            if not decision.claim.metadata.name:
                written: bool = await original(self, decision)
                return written
            statuses = writes(decision.status(self._cycle_inventory), decision)
            return await _all_written(self, decision, statuses, finalizer_first=finalizer_first)

        variant(ROLE, text, *passes, profiles=PROFILE, conflict=WRITES, name=name_of(writes))(apply)
        return writes

    return register


@variant(
    ROLE,
    "chooses the devices of a node from the last to the first",
    *("DEV-001", "DEV-008", "DEV-020", "DEV-021", "DEV-022", "DEV-024"),
)
@on_result_of(Inventory, "on_node")
def _last_device_first(devices: NodeDevices, *arguments: Any) -> NodeDevices:
    return dataclasses.replace(devices, devices=devices.devices[::-1])


@variant(ROLE, "allocates the last claim of a cycle first", "DEV-001", "DEV-005")
def _claims_allocated_last_first() -> None:
    alter(decisions, "decisions", lambda decided, *arguments: (decided[0][::-1], decided[1]))


@variant(
    ROLE, "allocates one claim after the other, and binds the pods after the last", "DEV-001", "DEV-002", "DEV-003"
)
@around(ClaimStore, "write")
async def _claims_allocated_in_sequence(
    original: Original, self: ClaimStore, claim_decisions: Iterable[ClaimDecision]
) -> set[str]:
    failed = set[str]()
    for decision in claim_decisions:
        failed |= await original(self, [decision])
    return failed


@variant(
    ROLE,
    "waits a second before it allocates claims",
    *("DEV-001", "DEV-004", "DEV-005", "DEV-021", "DEV-023", "DEV-024", "DEV-025"),
)
@around(ClaimStore, "write")
async def _claims_allocated_late(
    original: Original, self: ClaimStore, claim_decisions: Iterable[ClaimDecision]
) -> set[str]:
    if order := list(claim_decisions):
        await asyncio.sleep(DELAY_SECONDS)
    return await original(self, order)


@_writes_variant("allocates a claim and reserves it for the pods in a second write", "DEV-001", "DEV-003", "DEV-006")
def _claims_reserved_after_allocation(status: Status, decision: ClaimDecision) -> list[Status]:
    return [{key: status[key]} for key in ("allocation", "reservedFor") if key in status]


@_writes_variant("reserves a shared claim for one pod after the other", "DEV-006", "DEV-001")
def _claims_reserved_for_one_pod_at_a_time(status: Status, decision: ClaimDecision) -> list[Status]:
    consumers = status["reservedFor"]
    first_count = min(len(decision.claim.status.reserved_for) + 1, len(consumers))
    return [{**status, "reservedFor": consumers[:count]} for count in range(first_count, len(consumers) + 1)]


@_writes_variant("adds the finalizer to claims once they are allocated", "DEV-001", "DEV-005", finalizer_first=False)
def _finalizer_after_allocation(status: Status, decision: ClaimDecision) -> list[Status]:
    return [status]


@_writes_variant(
    "allocates each claim, deallocates it, and allocates it again", "DEV-001", "DEV-002", "DEV-003", "DEV-005"
)
def _claims_allocated_anew(status: Status, decision: ClaimDecision) -> list[Status]:
    return [status, {"allocation": None, "reservedFor": None}, status] if "allocation" in status else [status]


@_writes_variant(
    "leaves it to the controller manager to reserve an allocated claim for the pods that join others (DRA-14)",
    "DEV-027",
    "DEV-006",
)
def _claims_joined_without_reservation(status: Status, decision: ClaimDecision) -> list[Status]:
    return [status] if "allocation" in status or not decision.claim.consumers else []


@variant(
    ROLE,
    "reserves claims for gangs as well, and frees them itself a second after their last pod is gone",
    *("DEV-030", "DEV-031", "DEV-005", "DEV-029"),
    profiles=PROFILE,
    conflict=WRITES,
)
def _claims_freed_by_the_scheduler() -> None:
    original_run, original_use = GangScheduler.run, Ledger._use

    async def run(self: GangScheduler) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_free_claims_of_gone_pods(self))
            await original_run(self)

    def use(self: Ledger, used_claim: ResourceClaim, delta: int) -> None:
        """Count the pods that use a claim, and not the gang."""
        self._users.setdefault(used_claim.metadata.uid, max(1, len(used_claim.consumers) - 1))
        original_use(self, used_claim, delta)

    replace(GangScheduler, "run", run)
    replace(Ledger, "_use", use)
    claims_reserved_for_gangs()


@variant(
    ROLE,
    "runs a cycle every three seconds, whatever has changed",
    *("DEV-026", "DEV-027", "DEV-031", "DEV-005", "DEV-025"),
    profiles=PROFILE,
    conflict="each test of a run would take longer",
)
@instead_of(GangScheduler, "_schedule")
async def _schedules_at_intervals(self: GangScheduler) -> None:
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        await self._cycle()


@variant(ROLE, "lists the devices of a claim in the reverse order", "DEV-008", "DEV-007")
@on_result_of(decisions, "allocation")
def _results_in_another_order(content: dict[str, Any], *arguments: Any) -> dict[str, Any]:
    devices = content["devices"]
    return {**content, "devices": {**devices, "results": devices["results"][::-1]}}


@variant(ROLE, "names the requests that each parameter of a claim applies to", "DEV-033", "DEV-001")
@on_result_of(decisions, "_configuration")
def _parameters_name_requests(
    entries: list[dict[str, Any]], claim: Any, results: Any, inventory: Any
) -> list[dict[str, Any]]:
    requests = list(dict.fromkeys(result.request for result in results))
    return [{**entry, "requests": entry.get("requests") or requests} for entry in entries]


@variant(ROLE, "names the node of an allocation by the label with its host name", "DEV-006", "DEV-001")
@on_result_of(decisions, "_node_selector")
def _nodes_of_claims_by_hostname(
    selector: dict[str, Any] | None, results: Any, inventory: Any, node: str
) -> dict[str, Any] | None:
    expressions = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    return selector and {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


@variant(ROLE, "says in other words that devices are missing", "DEV-003", "DEV-005")
def _devices_wait_in_other_words() -> None:
    alter(Ledger, "refusal", lambda reason, *arguments: reason and "not enough accelerators")


@variant(
    ROLE,
    "binds no gang while an earlier one of the same or a higher priority waits",
    *("DEV-003", "DEV-005", "DEV-011", "DEV-013", "DEV-021", "DEV-025"),
    profiles=PROFILE,
    exempt=("DEV-004",),
    conflict="requirements of other profiles demand that gangs overtake",
)
def _gangs_strictly_in_order() -> None:
    original = Cycle._decide

    def decide(self: Cycle, gang: Gang) -> bool:
        if gang.members or gang.incomplete or not self.result.waiting:
            return original(self, gang)
        self.result.waiting[gang.name] = Shortfall("behind", domain=next(iter(self.result.waiting)))
        return False

    replace(Cycle, "_decide", decide)
    replace(cycle, "yield_extra_pods", lambda cycle: False)


async def _free_claims_of_gone_pods(scheduler: GangScheduler) -> None:
    """Deallocate claims once none of the pods that they are reserved for exists, until cancelled."""
    await scheduler.ready.wait()
    while True:
        await asyncio.sleep(DELAY_SECONDS)
        uids = {pod.metadata.uid for pod in scheduler._pods}
        for claim in list(scheduler._claim_store._claims):
            if claim.status.reserved_for and claim.consumers.isdisjoint(uids):
                await scheduler._claim_store._deallocate(claim)


async def _all_written(
    store: ClaimStore, decision: ClaimDecision, statuses: list[Status], *, finalizer_first: bool
) -> bool:
    """Write statuses of a claim in this order. Return whether all could be written."""
    claim = decision.claim
    finalizers = claim.metadata.finalizers or []
    missing = decision.results is not None and FINALIZER not in finalizers
    content = {"finalizers": [*finalizers, FINALIZER]}
    try:
        if missing and finalizer_first:
            claim = await store._patch(claim, content)
        for status in statuses:
            claim = await store._patch(claim, {}, status)
        if missing and not finalizer_first:
            await store._patch(claim, content)
    except REQUEST_FAILED as error:
        assert not isinstance(error, ApiError) or error.conflict or error.not_found, error
        return False
    return True
