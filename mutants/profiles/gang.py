"""Mutants that tear gangs apart, place more pods on a node than fit, or hide pods from their gang."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from kube.objects import Key
from kube.resource import PODS
from mutants.profiles import scheduler_placement
from mutants.registry import mutant
from mutants.replacement import Original, alter, around, replace_unnoted
from reference_impl.api.pods import Pod
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.control.podgang import GangReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import gangs, labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.pods import PodBuilder
from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.search import Budget


@mutant("gang-scheduler", "skips a group none of whose pods fits anywhere", "SCHED-007")
@around(cycle, "place_minimum")
def _hopeless_group_skipped(original: Original, gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
    placeable = [(i, pods) for i, pods in gang.pending_pods if capacity.shape(pods[0]).total]
    if len(placeable) == len(gang.pending_pods):
        return original(gang, capacity, result, budget)
    if (placement := place(gang, placeable, capacity, budget)) is not None:
        cycle.bind(gang, placement, capacity, result)
    return placement is not None


@mutant("gang-scheduler", "checks whether each group fits alone, not whether all fit together", "SCHED-008")
@around(cycle, "place_minimum")
def _groups_by_themselves(original: Original, gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
    mark = capacity.mark()
    for index, pods in gang.pending_pods:
        placement_of_group = place(gang, [(index, pods)], capacity, budget)
        capacity.undo(mark)
        if placement_of_group is None:
            return original(gang, capacity, result, budget)
    for index, pods in gang.pending_pods:
        for pod in pods:
            if (placement := place(gang, [(index, [pod])], capacity, budget)) is not None:
                cycle.bind(gang, placement, capacity, result)
    return True


def _on_a_cluster(name: str, planning: str, *caught_by: str) -> None:
    """Register a mutant of the planning for the suite. The mutant is also proved against the oracle."""
    [planning_mutant] = [candidate for candidate in scheduler_placement.MUTANTS if candidate.name == planning]
    mutant("gang-scheduler", planning_mutant.text, *caught_by, name=name)(planning_mutant.apply)


_on_a_cluster("equals-evicted", "preempts-equals", "INV-009")
_on_a_cluster("node-overbooked", "capacity-overbooked", "INV-010")


@mutant("operator", "creates all pods of a clique but the first without gate and labels", "GANG-005")
@around(Writer, "create")
async def _labels_late(original: Original, self: Writer, informer: Any, manifest: dict[str, Any]) -> None:
    meta = manifest["metadata"]
    if manifest["kind"] != "Pod" or meta["labels"].get(labels.POD_INDEX) == "0":
        return await original(self, informer, manifest)
    name = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
    spec = {key: value for key, value in manifest["spec"].items() if key != "schedulingGates"}
    await original(self, informer, {**manifest, "metadata": {**meta, "name": name, "labels": {}}, "spec": spec})
    await self._client.patch(PODS, meta["namespace"], name, {"metadata": {"labels": meta["labels"]}})


OTHER_GATE, SECOND_GATE = "scheduling.example.org/gang-is-incomplete", "scheduling.example.org/gang-is-incomplete-too"
OWN_GATES = (labels.GATE, OTHER_GATE, SECOND_GATE)
"""Grove's gate, its renamed form and the gate that variants add."""


@mutant("operator", "gives the scheduling gate of pods another name", "GANG-026", name="gate-misnamed")
def rename_gate() -> None:
    """Create pods with a gate of another name. Gates of both names are removed, because earlier pods may have the usual
    gate."""

    _change_gates(lambda gates: [{"name": OTHER_GATE} if gate["name"] == labels.GATE else gate for gate in gates])

    def gated_by(result: bool, pod: Pod, name: str) -> bool:
        gates = pod.spec.scheduling_gates or ()
        return result or (name == labels.GATE and any(gate.name == OTHER_GATE for gate in gates))

    alter(Pod, "gated_by", gated_by)


def add_gate() -> None:
    """Create pods with Grove's gate and a second gate, which is removed together with it."""
    _change_gates(lambda gates: [*gates, {"name": SECOND_GATE}])


def _change_gates(change: Callable[[list[Manifest]], list[Manifest]]) -> None:
    """Change the gates with which pods are created, and remove all of Grove's gates together."""

    def gated(pod: Manifest, *_: Any) -> Manifest:
        return {**pod, "spec": {**pod["spec"], "schedulingGates": change(pod["spec"]["schedulingGates"])}}

    async def ungate(self: CliqueReconciler, pod: Pod) -> None:
        gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
        grove_gates = [name for name in OWN_GATES if name in gates]
        removed = [{"$patch": "delete", "name": name} for name in grove_gates]
        await self._writer.patch_strategically(self._cache.pods, pod, {"spec": {"schedulingGates": removed}})

    alter(PodBuilder, "pod", gated)
    replace_unnoted(CliqueReconciler, "_ungate", ungate)


@mutant(
    "operator",
    "reports a gang as not initialized whenever its references change",
    "GANG-028",
    name="uninitialized-while-replaced",
)
@around(GangReconciler, "reconcile")
async def initialize_anew(original: Original, self: GangReconciler, key: Key) -> float | None:
    """Report Initialized=False, and then True again, when the references of an initialized gang change."""
    gang = self._cache.gangs.get(*key)
    pcs = self._cache.set_of(gang) if gang is not None and gang.metadata.controller is not None else None
    if gang is not None and pcs is not None and pcs.metadata.deletion_timestamp is None:
        members = self._members(gang, pcs)
        if gangs.is_initialized(gang) and gangs.groups_with_references(gang, None, members) != gang.spec.podgroups:
            await self._write_initialized(gang, is_complete=False)
    return await original(self, key)
