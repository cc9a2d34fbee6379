"""PodGangs: which ones there are, what is in them, and when they are complete (spec OBJ-401 to OBJ-432, GS-F01 to
GS-F17). This is the one place that decides which gang a pod belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from reference_impl.api import models
from reference_impl.api.models import (
    Condition,
    NamespacedName,
    PodClique,
    PodCliqueSet,
    PodGang,
    PodGangSpec,
    PodGroup,
    wire,
)
from reference_impl.api.pods import Pod
from reference_impl.plan import labels, names
from reference_impl.plan.children import (
    Manifest,
    group_configs,
    set_reference,
    standalone_templates,
    template,
)

INITIALIZED = "Initialized"


@dataclass(frozen=True)
class PlannedGang:
    """A gang as it should be, apart from the pods that it refers to."""

    name: str
    floors: dict[str, int] = field(hash=False)
    """Clique name → pods of it that have to be placed for the gang to be placed, in podgroup order."""


def planned(pcs: PodCliqueSet, index: int, group_replicas: Callable[[str], int | None]) -> list[PlannedGang]:
    """The base gang of a replica and the scaled gangs of its scaling groups.

    `group_replicas` gives the live replicas of a scaling group object by name, or None where there is none yet: its
    template's number is used then (OBJ-402).
    """
    name = pcs.metadata.name
    base: dict[str, int] = {names.clique(name, index, t.name): t.spec.floor for t in standalone_templates(pcs)}
    scaled: list[PlannedGang] = []
    for config in group_configs(pcs):
        group = names.scaling_group(name, index, config.name)
        live = group_replicas(group)
        for j in range(max(config.replicas if live is None else live, config.min_available)):
            floors = {
                names.member_clique(group, j, clique): t.spec.floor
                for clique in config.clique_names
                if (t := template(pcs, clique)) is not None
            }
            if j < config.min_available:
                base |= floors
            else:
                scaled.append(PlannedGang(names.scaled_gang(group, j, config.min_available), floors))
    return [PlannedGang(names.base_gang(name, index), base), *scaled]


def gang_labels(pcs: PodCliqueSet, index: int, scheduler_name: str, existing: dict[str, str] | None) -> dict[str, str]:
    """Labels of a gang (OBJ-214, OBJ-230, OBJ-521). The replica index is ours: it finds the gangs of a replica."""
    own = {**labels.common(pcs.metadata.name, "podgang"), labels.SCHEDULER_NAME: set_scheduler(pcs, scheduler_name)}
    own[labels.REPLICA_INDEX] = str(index)
    return labels.mirrored(own, existing, pcs.metadata.labels)


def set_scheduler(pcs: PodCliqueSet, default: str) -> str:
    """The scheduler of a set: the first that a clique names, else the default."""
    named = (t.spec.pod_spec.get("schedulerName") for t in pcs.spec.template.cliques)
    return next((name for name in named if name), default)


def manifest(pcs: PodCliqueSet, index: int, gang: PlannedGang, scheduler_name: str) -> Manifest:
    """A new gang: all its groups, no pods yet."""
    metadata: Manifest = {
        "name": gang.name,
        "namespace": pcs.metadata.namespace,
        "labels": gang_labels(pcs, index, scheduler_name, None),
        "ownerReferences": [set_reference(pcs)],
    }
    if annotations := labels.mirrored({}, None, pcs.metadata.annotations):
        metadata["annotations"] = annotations
    groups = [PodGroup(name=clique, min_replicas=floor) for clique, floor in gang.floors.items()]
    spec = PodGangSpec(podgroups=groups, priority_class_name=pcs.spec.template.priority_class_name)
    return {
        "apiVersion": models.PODGANGS.api_version,
        "kind": "PodGang",
        "metadata": metadata,
        "spec": wire(spec),
    }


def belongs(pod: Pod, gang: str, clique: str) -> bool:
    """Whether a pod is a living member of a gang through a clique (OBJ-412)."""
    controller = pod.metadata.controller
    return (
        not pod.terminating
        and controller is not None
        and controller.name == clique
        and pod.metadata.label(labels.PODGANG) == gang
    )


def filled(gang: PodGang, floors: dict[str, int] | None, pods: Iterable[Pod]) -> list[PodGroup]:
    """The gang's groups with the references of all their living pods, sorted by name. `floors` are the planned groups,
    or None to keep those that the gang has."""
    members = list(pods)
    if floors is None:
        floors = {group.name: group.min_replicas for group in gang.spec.podgroups}
    constraints = {group.name: group.topology_constraint for group in gang.spec.podgroups}
    return [
        PodGroup(
            name=clique,
            min_replicas=floor,
            pod_references=[
                NamespacedName(namespace=gang.metadata.namespace, name=name)
                for name in sorted(p.metadata.name for p in members if belongs(p, gang.metadata.name, clique))
            ],
            topology_constraint=constraints.get(clique),
        )
        for clique, floor in floors.items()
    ]


def complete(gang: PodGang, groups: list[PodGroup], clique: Callable[[str], PodClique | None]) -> bool:
    """Whether every clique of the gang exists and has all its pods, all of them members of this gang (OBJ-431)."""
    for group in groups:
        owner = clique(group.name)
        if owner is None or owner.metadata.label(labels.PODGANG) != gang.metadata.name:
            return False
        if len(group.pod_references) < owner.spec.replicas:
            return False
    return bool(groups)


def initialized(gang: PodGang) -> bool:
    conditions = gang.status.conditions if gang.status else None
    return any(c.type == INITIALIZED and c.status == "True" for c in conditions or ())


def initialized_condition(is_complete: bool, now: str) -> Condition:
    """The condition that tells the scheduler that all pods of the gang have been created (GS-F17)."""
    if is_complete:
        return Condition(
            type=INITIALIZED,
            status="True",
            reason="PodGangPodsCreated",
            message="PodGang is fully initialized",
            last_transition_time=now,
        )
    return Condition(
        type=INITIALIZED,
        status="False",
        reason="PodGangPodsCreationPending",
        message="Not all constituent pods have been created yet",
        last_transition_time=now,
    )
