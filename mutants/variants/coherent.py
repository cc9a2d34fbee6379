"""Variants of coherent updates where the proposal leaves a choice or is ambiguous."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mutants.profiles.gang import OWN_GATES
from mutants.registry import variant
from mutants.replacement import Original, alter, around, instead_of, on_result_of, replace
from reference_impl.admission import scaling
from reference_impl.admission.errors import FieldError, invalid
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.rules import coherent as rules
from reference_impl.admission.rules import paths
from reference_impl.api.models import PodCliqueSet, SetUpdateProgress
from reference_impl.api.pods import Pod
from reference_impl.control.layouts import Layouts
from reference_impl.control.maps import MapWriter
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.plan import defaults, fitting, gangs, labels, maps
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent import planner, progress, slots, steps, update, versions
from reference_impl.plan.coherent.planner import Step, Wait
from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.coherent.steps import SubStep, SubStepKind
from reference_impl.plan.components import Component, Key, Kind
from reference_impl.plan.layout import Layout
from reference_impl.plan.lines import Placement
from reference_impl.plan.maps import StoredMap
from reference_impl.plan.observed import Observed


@variant("operator", "lists the newest gang first in maps", "COHR-030", "COHR-032", "COHR-046", "MAP-002", "MAP-020")
@around(maps, "manifest")
def _entries_reversed(original: Original, pcs: PodCliqueSet, index: int, stored: StoredMap) -> dict[str, Any]:
    body = original(pcs, index, stored)
    return {**body, "spec": {**body["spec"], "entries": body["spec"]["entries"][::-1]}}


@variant(
    "operator",
    "replaces every second replica first",
    *("COHR-030", "COHR-031", "COHR-047"),
    exempt=("COHR-037", "COHR-097"),
)
def _odd_replicas_first() -> None:
    original = slots.slots

    def mixed(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        members = original(layout, key, observed, generation)
        unavailable, available = (
            [slot for slot in members if not slot.available],
            [slot for slot in members if slot.available],
        )
        return [*unavailable, *available[1::2], *available[::2]]

    replace(planner, "slots", mixed)


@variant("operator", "opens gates one by one, the last pod first", "COHR-020", "COHR-030")
@around(CliqueReconciler, "_ungate_all")
async def _gates_one_by_one(original: Original, self: CliqueReconciler, ready: Iterable[Pod]) -> None:
    for pod in sorted(ready, key=lambda pod: pod.metadata.name, reverse=True):
        await original(self, [pod])


@variant("operator", "writes further labels and annotations on maps", "COHR-010", "COHR-086", "MAP-001", "MAP-020")
@around(maps, "manifest")
def _further_map_labels(original: Original, pcs: PodCliqueSet, index: int, stored: StoredMap) -> dict[str, Any]:
    body = original(pcs, index, stored)
    body["metadata"]["labels"]["example.com/team"] = "blue"
    body["metadata"]["annotations"]["example.com/note"] = "kept"
    return body


@variant("operator", "writes each map twice", "COHR-030", "COHR-031", "COHR-034", "COHR-095")
@around(MapWriter, "_write")
async def _maps_written_twice(
    original: Original, self: MapWriter, pcs: PodCliqueSet, index: int, stored: StoredMap | None, layout: Layout
) -> None:
    await original(self, pcs, index, stored, layout)
    desired = versions.with_layout(stored, layout, self._layouts.templates(pcs))
    name = maps.manifest(pcs, index, desired)["metadata"]["name"]
    gang_map = self._cache.maps.get(pcs.metadata.namespace, name)
    if gang_map is not None and (stored is None or stored.layout != layout):
        note = {"metadata": {"annotations": {"example.com/entries": f"{len(layout)} entries, twice"}}}
        await self._writer.patch(self._cache.maps, gang_map, note)


@variant(
    "operator",
    "creates pods of anchors without the gate, but those of standalone cliques in an update, as GREP-393 draws it",
    *("COHR-020", "COHR-030", "COHR-036", "GANG-005"),
)
def _anchors_without_gates() -> None:
    def ungated(manifests: list[Manifest], self: CliqueReconciler, place: CliqueContext, _: Any) -> list[Manifest]:
        in_update = update.is_running(place.pcs) and not place.clique.metadata.label(labels.SCALING_GROUP)
        return (
            manifests
            if not update.is_coherent(place.pcs) or in_update
            else [open_(manifest, place) for manifest in manifests]
        )

    def open_(pod: Manifest, place: CliqueContext) -> Manifest:
        if not place.placement.gangs[pod["metadata"]["labels"][labels.PODGANG]].entry.anchor:
            return pod
        gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] not in OWN_GATES]
        return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}

    alter(CliqueReconciler, "_manifests", ungated)


@variant("operator", "lets gangs wait for anchors of all generations", "COHR-020", "COHR-030")
@instead_of(Placement, "awaited_gangs")
def _waits_for_all_anchors(self: Placement, gang: str) -> list[str]:
    if self.gangs[gang].entry.anchor:
        return []
    return [name for name, other in self.gangs.items() if other.entry.anchor]


@variant("operator", "defaults maxUnavailable of coherent sets only", "COHR-007")
@around(defaults, "_default_rolling_updates")
def _budget_of_other_strategies_open(
    original: Original, template: dict[str, Any], strategy: Any, *, created: bool
) -> Any:
    return original(template, strategy, created=False)


@variant(
    "operator",
    "refuses a maxUnavailable below minAvailable whatever the strategy, also its own default",
    "COHR-007",
    exempt=("COHR-008",),
    conflict="it refuses sets of other strategies that scenes create",
)
@on_result_of(rules, "violations")
def _low_budget_refused_whatever_the_strategy(violations: Iterator[FieldError], pcs: PodCliqueSet) -> list[FieldError]:
    template, errors = pcs.spec.template, list(violations)
    parts = [(clique.rolling_update, clique.spec.minimum) for clique in template.cliques]
    parts += [(group.rolling_update, group.min_available) for group in template.pod_clique_scaling_groups or ()]
    for given, minimum in parts if not errors else ():
        if given is not None and given.max_unavailable is not None and given.max_unavailable < minimum:
            errors.append(invalid(f"{paths.TEMPLATE}.cliques", given.max_unavailable, "is below minAvailable"))
    return errors


@variant("operator", "terminates a replica into PodGangs of other epochs that hold the same", "COHR-089")
@around(MapWriter, "prepare_termination")
async def _terminated_into_new_epochs(original: Original, self: MapWriter, pcs: PodCliqueSet, index: int) -> None:
    stored = self._layouts.stored(pcs, index)
    if stored is not None and update.is_coherent(pcs) and not update.is_running(pcs):
        keys = [entry.key for entry in stored.layout]
        other = dict(zip(keys, self._epochs(pcs, index)(len(keys)), strict=True))
        renamed_entries = tuple(
            dataclasses.replace(
                entry, key=other[entry.key], depends_on=tuple(other.get(key, key) for key in entry.depends_on)
            )
            for entry in stored.layout
        )
        await self._write(pcs, index, stored, renamed_entries)
    await original(self, pcs, index)


@variant(
    "operator",
    "replaces one further replica of a scaling group at a time",
    *("COHR-030", "COHR-036", "COHR-041", "COHR-042", "COHR-044", "COHR-046", "COHR-047", "COHR-092"),
    exempt=("COHR-049",),
)
@on_result_of(steps, "sub_step")
def _further_replicas_one_by_one(step: SubStep, *rest: Any) -> SubStep:
    if step.phase is SubStepKind.ANCHOR:
        return step
    return SubStep(step.phase, {k: min(1, n) if k.kind is Kind.GROUP else n for k, n in step.counts.items()})


@variant(
    "operator",
    "begins a sub-step once the gangs of the one before are scheduled, as far as the budget permits",
    *("INV-011", "INV-017", "COHR-030", "COHR-060"),
    exempt=("COHR-109",),
)
def _sub_steps_follow_scheduling() -> None:
    def scheduled(ready: frozenset[str], layouts: Layouts, pcs: PodCliqueSet, index: int) -> frozenset[str]:
        placement = layouts.placement_at(pcs, index)
        names = {gang.metadata.name for gang in layouts.gangs(pcs, index) if gangs.has_been_scheduled(gang)}
        waiting = (
            {gang.entry.key for name, gang in placement.gangs.items() if name not in names} if placement else set()
        )
        every = {gang.entry.key for gang in placement.gangs.values()} if placement else set()
        return frozenset(every - waiting)

    def with_newest_in_flight(
        step: Step, layout: Layout, components: Sequence[Component], observed: Observed, generation: str, *_: Any
    ) -> Step:
        update_entries = progress.own_entries(layout, generation, components, observed)
        if not isinstance(step, Wait) or step.in_flight or not update_entries:
            return step
        return dataclasses.replace(step, in_flight=(update_entries[-1].key,))

    alter(Layouts, "_entries_once_ready", scheduled)
    alter(planner, "next_step", with_newest_in_flight)


@variant(
    "operator",
    "accepts another number of replicas of a set during its update",
    *("COHR-050", "COHR-052", "COHR-053", "COHR-054", "COHR-104"),
    exempt=("COHR-051",),
)
def _set_scaled_during_updates() -> None:
    def accepted(verdict: AdmissionResult, request: Mapping[str, Any], pcs: Any) -> AdmissionResult:
        return AdmissionResult() if (request.get("resource") or {}).get("resource") == "podcliquesets" else verdict

    alter(scaling, "judge", accepted)
    alter(rules, "change_violations", lambda violations, pcs, old: [])


@variant(
    "operator",
    "accepts other sizes of the members of set replicas that are not being updated, as GREP-393 in pull request 649",
    *("COHR-050", "COHR-053", "COHR-054", "COHR-104"),
    exempt=("COHR-052", "COHR-113"),
)
@on_result_of(scaling, "judge")
def _other_replicas_scaled_during_updates(
    verdict: AdmissionResult, request: Mapping[str, Any], pcs: Mapping[str, Any] | None
) -> AdmissionResult:
    if pcs is None or (request.get("resource") or {}).get("resource") == "podcliquesets":
        return verdict
    turns = ((pcs.get("status") or {}).get("updateProgress") or {}).get("currentlyUpdating") or []
    prefixes = tuple(f"{pcs['metadata']['name']}-{turn.get('replicaIndex', 0)}-" for turn in turns)
    return verdict if str(request.get("name")).startswith(prefixes) else AdmissionResult()


@variant(
    "operator",
    "refuses a maxUnavailable above the replicas of a clique with the strategy Coherent",
    *("COHR-004", "COHR-006", "COHR-009"),
)
@on_result_of(rules, "violations")
def _high_budget_refused(violations: Iterator[FieldError], pcs: PodCliqueSet) -> list[FieldError]:
    errors = list(violations)
    for i, clique in enumerate(pcs.spec.template.cliques if update.is_coherent(pcs) else ()):
        given = clique.rolling_update.max_unavailable if clique.rolling_update else None
        if given is not None and given > clique.spec.replicas:
            path = f"spec.template.cliques[{i}].rollingUpdate.maxUnavailable"
            errors.append(invalid(path, given, "must not be greater than replicas"))
    return errors


@variant(
    "operator",
    "refuses a maxUnavailable below minAvailable without the path of the field",
    *("COHR-004", "COHR-009"),
    exempt=("COHR-103",),
)
@on_result_of(rules, "_budget_errors")
def _low_budget_without_its_path(
    violations: Iterator[FieldError], path: str, given: Any, minimum: int
) -> list[FieldError]:
    low = "must not be less than minAvailable"
    return [
        dataclasses.replace(violation, path="spec") if (violation.detail or "").startswith(low) else violation
        for violation in violations
    ]


@variant(
    "operator",
    "lets pods that are added to a clique join the newest anchor, whatever it holds",
    "COHR-081",
    exempt=("COHR-108",),
)
@on_result_of(fitting._LayoutFitter, "_default_anchor")
def _added_pods_join_the_newest_anchor(home: str, self: fitting._LayoutFitter, key: Key) -> str:
    return [entry for entry in self.entries.values() if entry.anchor][-1].key


@variant(
    "operator",
    "updates the replicas of a set with the strategy Coherent from the last to the first",
    *("COHR-050", "COHR-060", "COHR-062", "COHR-063", "COHR-064", "COHR-071", "COHR-107", "INV-016"),
)
@around(update, "advanced_progress")
def _last_replica_of_a_coherent_set_first(
    original: Original, progress: SetUpdateProgress, waiting: Sequence[int], *rest: Any
) -> SetUpdateProgress:
    return original(progress, waiting[-1:], *rest)
