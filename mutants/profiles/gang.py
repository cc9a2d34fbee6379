"""Mutants that tear gangs apart, place more pods on a node than fit, or hide pods from their gang."""

from __future__ import annotations

import uuid
from typing import Any

from kube.resource import PODS
from mutants.profiles import scheduler_placement
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.control.writer import Writer
from reference_impl.plan import labels
from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.search import Budget


@mutant("hopeless-group-skipped", "gang-scheduler", "skips a group none of whose pods fits anywhere", "SCHED-007")
def _hopeless_group_skipped() -> None:
    right = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        hopeful = [(i, pods) for i, pods in gang.lacking if capacity.shape(pods[0]).total]
        if len(hopeful) == len(gang.lacking):
            return right(gang, capacity, result, budget)
        if (placement := place(gang, hopeful, capacity, budget)) is not None:
            cycle.bind(gang, placement, capacity, result)
        return placement is not None

    replace(cycle, "place_minimum", place_minimum)


@mutant(
    "groups-by-themselves",
    "gang-scheduler",
    "checks whether each group fits alone, not whether all fit together",
    "SCHED-008",
)
def _groups_by_themselves() -> None:
    right = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        mark = capacity.mark()
        for index, pods in gang.lacking:
            alone = place(gang, [(index, pods)], capacity, budget)
            capacity.undo(mark)
            if alone is None:
                return right(gang, capacity, result, budget)
        for index, pods in gang.lacking:
            for pod in pods:
                if (placement := place(gang, [(index, [pod])], capacity, budget)) is not None:
                    cycle.bind(gang, placement, capacity, result)
        return True

    replace(cycle, "place_minimum", place_minimum)


def _on_a_cluster(name: str, planning: str, *caught_by: str) -> None:
    """Register for the suite a mutant of the planning that is also proved against the oracle."""
    [found] = [each for each in scheduler_placement.MUTANTS if each.name == planning]
    mutant(name, "gang-scheduler", found.text, *caught_by)(found.apply)


_on_a_cluster("equals-evicted", "preempts-equals", "INV-009")
_on_a_cluster("node-overbooked", "capacity-overbooked", "INV-010")


@mutant("labels-late", "operator", "creates all pods of a clique but the first without gate and labels", "GANG-005")
def _labels_late() -> None:
    right = Writer.create

    async def create(self: Writer, informer: Any, manifest: dict[str, Any]) -> None:
        meta = manifest["metadata"]
        if manifest["kind"] != "Pod" or meta["labels"].get(labels.POD_INDEX) == "0":
            return await right(self, informer, manifest)
        name = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        spec = {key: value for key, value in manifest["spec"].items() if key != "schedulingGates"}
        await right(self, informer, {**manifest, "metadata": {**meta, "name": name, "labels": {}}, "spec": spec})
        await self._client.patch(PODS, meta["namespace"], name, {"metadata": {"labels": meta["labels"]}})

    replace(Writer, "create", create)
