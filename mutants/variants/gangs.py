"""Variants of PodGangs and of the scheduling gates of their pods."""

from __future__ import annotations

from typing import Any

import msgspec

from mutants.profiles import core_objects, gang, scaling_to_zero
from mutants.registry import variant
from mutants.replacement import alter, on_result_of
from reference_impl.api.models import PodCliqueSet, PodGang, PodGroup, to_json
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.plan import gangs, labels
from reference_impl.plan.coherent import update
from reference_impl.plan.gangs import PlannedGang


@variant(
    "operator",
    "keeps the PodGroup of a standalone clique that is scaled to zero, with a minimum of 0",
    *("SCALE-016", "SCALE-017", "SCALE-018", "SCALE-019"),
)
def _idle_groups_kept() -> None:
    scaling_to_zero.idle_groups(keep_minimum=False)


@variant("operator", "lists the pods of a group in the reverse order", "GANG-002", "GANG-009")
@on_result_of(gangs, "groups_with_references")
def _references_reversed(groups: list[PodGroup], *_: Any) -> list[PodGroup]:
    return [msgspec.structs.replace(group, pod_references=group.pod_references[::-1]) for group in groups]


@variant(
    "operator",
    "sets minReplicas of standalone cliques to 0 once their gang is scheduled, as GREP-393 has it",
    "GANG-001",
    "SCALE-005",
    exempt=("SCALE-019",),
)
def _minimums_released() -> None:
    released_groups: set[tuple[str, str]] = set()

    def drift(
        body: dict[str, Any],
        self: SetReconciler,
        pcs: PodCliqueSet,
        planned: PlannedGang,
        current: PodGang,
        *__: Any,
    ) -> dict[str, Any]:
        namespace, uid = pcs.metadata.namespace, current.metadata.uid
        standalone = {
            name
            for name in planned.minimums
            if (clique := self._cache.cliques.get(namespace, name)) is not None
            and not clique.metadata.label(labels.SCALING_GROUP)
        }
        required = {(uid, name) for name in standalone if planned.minimums[name]}
        released_groups.difference_update([pair for pair in released_groups if pair[0] == uid and pair not in required])
        if all(self._cache.count_scheduled_pods(namespace, name) >= least for name, least in planned.minimums.items()):
            released_groups.update(required)
        if update.is_coherent(pcs):
            return body
        stored, spec = to_json(current.spec.podgroups), dict(body.get("spec", {}))
        groups = [
            {**group, "minReplicas": 0} if (uid, group["name"]) in released_groups else group
            for group in spec.pop("podgroups", stored)
        ]
        if groups != stored:
            spec["podgroups"] = groups
        changed = {"metadata": body.get("metadata"), "spec": spec}
        return {key: value for key, value in changed.items() if value}

    alter(SetReconciler, "_gang_drift", drift)


@variant(
    "operator",
    "reports a gang as not initialized, and then as initialized again, when its references change",
    "GANG-009",
    exempt=("GANG-028",),
)
def _initialized_anew() -> None:
    gang.initialize_anew()


@variant(
    "operator",
    "gives the scheduling gate of pods another name",
    "GANG-005",
    "GANG-006",
    "GANG-007",
    "GANG-008",
    "GANG-010",
    exempt=("GANG-026",),
)
def _gate_renamed() -> None:
    gang.rename_gate()


@variant(
    "operator",
    "gives pods a second scheduling gate, of a name of its own, and removes both at once",
    "GANG-005",
    "GANG-006",
    "GANG-007",
    "GANG-010",
    "GANG-026",
)
def _second_gate() -> None:
    gang.add_gate()


@variant(
    "operator",
    "ungates scaled gangs once their base gang is Ready, as the operator's README has it",
    "GANG-008",
    "START-010",
    "START-012",
    exempt=("GANG-027",),
    conflict="scaled gangs would wait for good beside base gangs that others keep from becoming Ready",
)
def _scaled_gangs_wait_for_ready() -> None:
    core_objects.gates_wait_for_ready()
