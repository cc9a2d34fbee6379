"""Mutants of interrupted coherent updates, of the steps before and after them, and of rejected changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.admission import scaling
from reference_impl.admission.result import AdmissionResult
from reference_impl.api.models import CliqueTemplate, PodCliqueSet, SetUpdateProgress, UpdateStrategyType
from reference_impl.control import coherent as control
from reference_impl.control.layouts import Layouts
from reference_impl.control.podclique import CliqueContext
from reference_impl.plan import defaults, revisions, update_progress, update_set_replicas
from reference_impl.plan.coherent import budget, planner, progress, scope, slots, update
from reference_impl.plan.coherent.budget import Batch
from reference_impl.plan.coherent.scope import ReplicaState
from reference_impl.plan.components import Component, Key, cliques
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.layout import Layout
from reference_impl.plan.lines import Placement
from reference_impl.plan.observed import Observed
from reference_impl.plan.revisions import Revision


@mutant("operator", "lets pods of coherent sets start without waiting", "COHR-048")
def _starts_at_once() -> None:
    original = CliqueContext.awaited_cliques
    replace(
        CliqueContext,
        "awaited_cliques",
        lambda self, gang: {} if update.is_coherent(self.pcs) else original(self, gang),
    )


@mutant("operator", "keeps the first maxUnavailable that it has read", "COHR-049")
@around(Layouts, "components", memory=dict)
def _budget_read_once(
    original: Original,
    first_components: dict[tuple[str, int], list[Component]],
    self: Layouts,
    pcs: PodCliqueSet,
    index: int,
) -> list[Component]:
    current = original(self, pcs, index)
    return first_components.setdefault((pcs.metadata.uid, index), current)


@mutant("operator", "begins a running update again when it starts", "COHR-072")
@around(control.CoherentProgress, "progress", memory=set)
def _restart_begins_again(
    original: Original,
    started_generations: set[str],
    self: control.CoherentProgress,
    pcs: PodCliqueSet,
    generation: Revision,
    observed: update_set_replicas.ObservedSet,
    step: planner.Step | None,
    now: str,
) -> SetUpdateProgress | None:
    result = original(self, pcs, generation, observed, step, now)
    if result is None or result.update_ended_at is not None or pcs.metadata.uid in started_generations:
        return result
    started_generations.add(pcs.metadata.uid)
    return msgspec.structs.replace(result, update_started_at=now)


@mutant("operator", "never takes a component out of the scope of an update", "COHR-112")
@instead_of(scope, "scope")
def _scope_only_grows(
    changed: Iterable[Key], previous: Iterable[Key], replicas: Iterable[ReplicaState], generation: str
) -> frozenset[Key]:
    return frozenset({*changed, *previous})


@mutant("operator", "updates again what an earlier generation has completed", "COHR-073")
def _generation_decides() -> None:
    original = slots.slots

    def by_generation(layout: Layout, key: Key, observed: Observed, generation: str) -> list[slots.Slot]:
        current = {entry.key for entry in layout if entry.generation == generation}
        return [
            dataclasses.replace(slot, has_current_template=slot.has_current_template and slot.entry in current)
            for slot in original(layout, key, observed, generation)
        ]

    for module in (scope, planner):
        replace(module, "slots", by_generation)


@mutant("operator", "counts lost pods as available", "COHR-074")
def _losses_uncounted() -> None:
    def affordable(
        components: Sequence[Component], places: budget.Slots, counts: Mapping[Key, int], *, whole: bool
    ) -> Batch:
        slots_by_key = {c.key: [slot for slot in places[c.key] if not slot.has_current_template] for c in components}
        return {key: open_slots[: counts[key]] for key, open_slots in slots_by_key.items()}

    ready_names: dict[tuple[str, Key], set[str]] = {}
    original = progress.incomplete_reason

    def incomplete(update_entries: Layout, components: Sequence[Component], observed: Observed) -> str | None:
        anchor = progress.open_anchor(update_entries)
        if anchor is None:
            return None
        for component in cliques(components):
            names = ready_names.setdefault((anchor.key, component.key), set())
            names |= {pod.name for pod in observed.pods_in(component.key.name, anchor.key) if pod.ready}
            if len(names) < anchor.count(component.key):
                return original(update_entries, components, observed)
        return None

    replace(budget, "affordable_batch", affordable)
    replace(progress, "incomplete_reason", incomplete)


@mutant("operator", "never returns to a replica that it has updated", "COHR-075")
@around(control.CoherentProgress, "_outdated_replicas")
def _complete_replicas_stay(
    original: Original,
    self: control.CoherentProgress,
    pcs: PodCliqueSet,
    generation: Revision,
    present: SetUpdateProgress,
    done: int | None,
) -> list[int]:
    turn = update_progress.current_replica(pcs)
    return [index for index in original(self, pcs, generation, present, done) if turn is None or index > turn]


@mutant("operator", "lets gangs wait for gangs that do not exist any more", "COHR-088")
@around(Placement, "awaited_gangs", memory=dict)
def _removed_gangs_awaited(original: Original, first: dict[str, list[str]], self: Placement, gang: str) -> list[str]:
    return first.setdefault(gang, original(self, gang))


@mutant("operator", "updates coherently with the strategy OnDelete", "COHR-093")
def _on_delete_is_coherent() -> None:
    def coherent(pcs: PodCliqueSet) -> bool:
        strategy = pcs.spec.update_strategy
        return strategy is not None and strategy.type in (UpdateStrategyType.COHERENT, UpdateStrategyType.ON_DELETE)

    replace(update, "is_coherent", coherent)
    replace(update_progress, "is_on_delete", lambda pcs: False)


@mutant("operator", "replaces all pods if cliques are put in another order", "COHR-100")
def _order_replaces_pods() -> None:
    of_set, of_template = revisions.set_revision, revisions.template_revision

    def with_order(pcs: PodCliqueSet, policy: Policy = STANDARD) -> Revision:
        names = [clique.name for clique in pcs.spec.template.cliques]
        hash = of_set(pcs, policy).hash + "".join(str(sorted(names).index(name)) for name in names)
        return Revision(hash, frozenset({hash}))

    def with_place(pcs: PodCliqueSet, template: CliqueTemplate, policy: Policy = STANDARD) -> Revision:
        names = [clique.name for clique in pcs.spec.template.cliques]
        hash = f"{of_template(pcs, template, policy).hash}{names.index(template.name)}"
        return Revision(hash, frozenset({hash}))

    replace(revisions, "set_revision", with_order)
    replace(revisions, "template_revision", with_place)


@mutant("operator", "refuses changes of replicas without naming the field", "COHR-104")
@around(scaling, "judge")
def _refusal_without_field(
    original: Original, request: Mapping[str, Any], pcs: Mapping[str, Any] | None
) -> AdmissionResult:
    result = original(request, pcs)
    return AdmissionResult(refusal=result.refusal.replace("spec.replicas", "this")) if result.refusal else result


@mutant("operator", "makes stored sets Coherent that name no strategy", "COHR-106")
@around(defaults, "patch")
def _everybody_joins(original: Original, pcs: dict[str, Any], stored: Any = None) -> list[Any]:
    operations = list(original(pcs, stored))
    if not (pcs.get("spec") or {}).get("updateStrategy"):
        operations.append({"op": "add", "path": "/spec/updateStrategy", "value": {"type": "Coherent"}})
    return operations
