"""PodGangs: which gangs exist, their contents, and when they are complete (spec OBJ-401 to OBJ-432, GS-F01 to GS-F17).
The layout of a replica (`layout.py`) decides which gang a pod belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from reference_impl.api import models
from reference_impl.api.models import (
    CliqueTemplate,
    Condition,
    GangTopology,
    NamespacedName,
    PodClique,
    PodCliqueSet,
    PodGang,
    PodGangSpec,
    PodGroup,
    TopologyGroup,
    to_json,
)
from reference_impl.api.pods import Pod
from reference_impl.plan import labels, names
from reference_impl.plan.children import (
    Manifest,
    find_template,
    group_configs,
    set_reference,
    standalone_templates,
)
from reference_impl.plan.layout import EntryGang
from reference_impl.plan.lines import Line, Placement
from reference_impl.plan.topology import SetTopology

INITIALIZED = "Initialized"
NO_TOPOLOGY = SetTopology()


@dataclass(frozen=True)
class PlannedGang:
    """A desired gang, without its pod references."""

    name: str
    minimums: dict[str, int] = field(hash=False)
    """The minimum number of pods that must be placed for each clique, in the order of the PodGroups."""
    topology: GangTopology | None = field(default=None, hash=False)
    of_cliques: dict[str, GangTopology] = field(default_factory=dict, hash=False)
    """Topology constraints of single cliques, by clique name."""
    of_groups: list[TopologyGroup] = field(default_factory=list, hash=False)
    """Topology constraints of the scaling group replicas in a base gang."""
    labels: dict[str, str] = field(default_factory=dict, hash=False)
    """Labels in addition to those that every gang has."""

    @property
    def constrained(self) -> bool:
        """Whether any constraint could be translated (OBJ-452)."""
        has_group_constraint = any(group.topology_constraint is not None for group in self.of_groups)
        return self.topology is not None or bool(self.of_cliques) or has_group_constraint


def planned_gangs(
    pcs: PodCliqueSet, index: int, placement: Placement, line: Line, topology: SetTopology = NO_TOPOLOGY
) -> list[PlannedGang]:
    """Return the gangs of a replica of a set."""
    oldest = next((entry.key for entry in placement.layout if entry.anchor), None)
    holders = Counter(clique for gang in placement.gangs.values() for clique in gang.cliques)
    undivided = {clique for clique, count in holders.items() if count == 1}
    return [
        _planned_gang(pcs, index, name, gang, line, topology, undivided if gang.entry.key == oldest else ())
        for name, gang in placement.gangs.items()
    ]


def _planned_gang(
    pcs: PodCliqueSet,
    index: int,
    name: str,
    gang: EntryGang,
    line: Line,
    topology: SetTopology,
    undivided: Collection[str],
) -> PlannedGang:
    """Return a planned gang. A standalone clique that is `undivided`, with all its pods in this gang, needs its minimum
    even if it was scaled below the minimum (GM-36). A gang that holds a part of a clique, as during an update, needs at
    most that part (GM-37). With a higher minimum, a replacement pod in this gang would wait for pods that are in other
    gangs."""
    templates: dict[str, CliqueTemplate] = {}
    minimums: dict[str, int] = {}
    for standalone in standalone_templates(pcs) if gang.entry.anchor else ():
        if (count := gang.cliques.get(standalone.name)) is not None:
            clique_name = names.clique(pcs.metadata.name, index, standalone.name)
            templates[clique_name] = standalone
            minimum = standalone.spec.minimum
            minimums[clique_name] = minimum if standalone.name in undivided else min(minimum, count)
    group_constraints: list[TopologyGroup] = []
    constraint = topology.translate(pcs.spec.template.topology_constraint)
    for config in group_configs(pcs):
        group = names.scaling_group(pcs.metadata.name, index, config.name)
        group_constraint = config.topology_constraint if topology.enabled else None
        for j in gang.groups.get(config.name, ()):
            members = {
                names.member_clique(group, j, clique): member_template
                for clique in config.clique_names
                if (member_template := find_template(pcs, clique)) is not None
            }
            templates |= members
            minimums |= {member: member_template.spec.minimum for member, member_template in members.items()}
            if group_constraint is None:
                continue
            if not gang.entry.anchor:
                constraint = topology.translate(group_constraint)
            elif topology.binding_exists:
                group_constraints.append(
                    TopologyGroup(
                        name=names.member_group(group, j),
                        pod_group_names=list(members),
                        topology_constraint=topology.translate(group_constraint),
                    )
                )
    clique_constraints: dict[str, GangTopology] = {}
    if topology.levels:  # usually there are no levels, and this runs for every gang in every reconcile
        translated = {clique: topology.translate(t.topology_constraint) for clique, t in templates.items()}
        clique_constraints = {
            clique: translation for clique, translation in translated.items() if translation is not None
        }
    return PlannedGang(
        name, minimums, constraint, clique_constraints, group_constraints, line.gang_labels(index, gang.entry)
    )


def gang_labels(pcs: PodCliqueSet, scheduler_name: str, existing: dict[str, str] | None) -> dict[str, str]:
    """Return the labels of a gang that are the same on both release lines (OBJ-214, OBJ-230, OBJ-521)."""
    grove_labels = {
        **labels.common_labels(pcs.metadata.name, "podgang"),
        labels.SCHEDULER_NAME: set_scheduler(pcs, scheduler_name),
    }
    return labels.mirrored_metadata(grove_labels, existing, pcs.metadata.labels)


def gang_annotations(
    pcs: PodCliqueSet, gang: PlannedGang, binding: str, existing: dict[str, str] | None
) -> dict[str, str]:
    """Return the annotations of a gang (OBJ-230, OBJ-452). Unlike upstream, keep annotations that other clients have
    added, such as the annotation of the KAI back-end (OBJ-526)."""
    desired_annotations = {**(existing or {}), **labels.mirrored_metadata({}, None, pcs.metadata.annotations)}
    desired_annotations.pop(labels.TOPOLOGY_NAME, None)
    return {**desired_annotations, labels.TOPOLOGY_NAME: binding} if gang.constrained else desired_annotations


def set_scheduler(pcs: PodCliqueSet, default: str) -> str:
    """Return the scheduler of a set, which is the first scheduler that a clique names, or else the default."""
    scheduler_names = (t.spec.pod_spec.get("schedulerName") for t in pcs.spec.template.cliques)
    return next((name for name in scheduler_names if name), default)


def manifest(pcs: PodCliqueSet, gang: PlannedGang, scheduler_name: str, binding: str = "") -> Manifest:
    """Return a new gang with all its groups and without pod references."""
    metadata: Manifest = {
        "name": gang.name,
        "namespace": pcs.metadata.namespace,
        "labels": {**gang_labels(pcs, scheduler_name, None), **gang.labels},
        "ownerReferences": [set_reference(pcs)],
    }
    if annotations := gang_annotations(pcs, gang, binding, None):
        metadata["annotations"] = annotations
    groups = [
        PodGroup(name=clique, min_replicas=minimum, topology_constraint=gang.of_cliques.get(clique))
        for clique, minimum in gang.minimums.items()
    ]
    spec = PodGangSpec(
        podgroups=groups,
        priority_class_name=pcs.spec.template.priority_class_name,
        topology_constraint=gang.topology,
        topology_constraint_group_configs=gang.of_groups or None,
    )
    return {
        "apiVersion": models.PODGANGS.api_version,
        "kind": "PodGang",
        "metadata": metadata,
        "spec": to_json(spec),
    }


def drift(
    pcs: PodCliqueSet,
    gang: PlannedGang,
    existing: PodGang,
    tags: dict[str, str],
    binding: str,
    pods: Callable[[], list[Pod]],
) -> Manifest:
    """Return the merge patch that corrects a gang, or an empty dict if the gang is as desired. `tags` are the desired
    labels, and `pods` returns the pods of its cliques."""
    metadata, spec = _metadata_drift(pcs, gang, existing, tags, binding), _spec_drift(pcs, gang, existing, pods)
    return {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}


def _metadata_drift(
    pcs: PodCliqueSet, gang: PlannedGang, existing: PodGang, tags: dict[str, str], binding: str
) -> Manifest:
    body: Manifest = {}
    annotations = gang_annotations(pcs, gang, binding, existing.metadata.annotations)
    for key, desired, current in (
        ("labels", tags, existing.metadata.labels or {}),
        ("annotations", annotations, existing.metadata.annotations or {}),
    ):
        if desired != current:
            body[key] = {**dict.fromkeys(set(current) - set(desired)), **desired}
    return body


def _spec_drift(pcs: PodCliqueSet, gang: PlannedGang, existing: PodGang, pods: Callable[[], list[Pod]]) -> Manifest:
    body: Manifest = {}
    current = {g.name: (g.min_replicas, g.topology_constraint) for g in existing.spec.podgroups}
    if current != {clique: (minimum, gang.of_cliques.get(clique)) for clique, minimum in gang.minimums.items()}:
        groups = groups_with_references(existing, gang.minimums, pods())
        body["podgroups"] = [
            to_json(msgspec.structs.replace(g, topology_constraint=gang.of_cliques.get(g.name))) for g in groups
        ]
    if existing.spec.topology_constraint != gang.topology:
        body["topologyConstraint"] = _full_constraint(gang.topology)
    if (existing.spec.topology_constraint_group_configs or []) != gang.of_groups:
        body["topologyConstraintGroupConfigs"] = to_json(gang.of_groups) or None
    # "" and an absent field both mean that there is no class, and a write does not distinguish them (OBJ-420).
    if (existing.spec.priority_class_name or "") != (pcs.spec.template.priority_class_name or ""):
        body["priorityClassName"] = pcs.spec.template.priority_class_name
    return body


def _full_constraint(topology: GangTopology | None) -> Manifest | None:
    """Return the constraint for a merge patch, in which None removes a field."""
    if topology is None or topology.pack_constraint is None:
        return None
    pack = topology.pack_constraint
    return {"packConstraint": {"required": pack.required, "preferred": pack.preferred}}


def pods_by_clique(pods: Iterable[Pod], gang: str) -> dict[str, list[Pod]]:
    """Return the pods of a gang that are not terminating, by clique (OBJ-412)."""
    pods_by_clique: dict[str, list[Pod]] = {}
    for pod in pods:
        controller = pod.metadata.controller
        if not pod.terminating and controller is not None and pod.metadata.label(labels.PODGANG) == gang:
            pods_by_clique.setdefault(controller.name, []).append(pod)
    return pods_by_clique


def groups_with_references(gang: PodGang, minimums: dict[str, int] | None, pods: Iterable[Pod]) -> list[PodGroup]:
    """Return the gang's groups with references to all their pods that are not terminating, sorted by name. `minimums`
    holds the minimums of the planned groups; with None, the minimums of the gang are kept."""
    members = pods_by_clique(pods, gang.metadata.name)
    if minimums is None:
        minimums = {group.name: group.min_replicas for group in gang.spec.podgroups}
    constraints = {group.name: group.topology_constraint for group in gang.spec.podgroups}
    return [
        PodGroup(
            name=clique,
            min_replicas=minimum,
            pod_references=[
                NamespacedName(namespace=gang.metadata.namespace, name=name)
                for name in sorted(pod.metadata.name for pod in members.get(clique, ()))
            ],
            topology_constraint=constraints.get(clique),
        )
        for clique, minimum in minimums.items()
    ]


def is_complete(
    gang: PodGang, groups: list[PodGroup], clique: Callable[[str], PodClique | None], shares: Mapping[str, int]
) -> bool:
    """Return whether every clique of the gang exists and has all its pods in this gang (OBJ-431). `shares` holds the
    number of pods of each standalone clique that the gang holds."""
    for group in groups:
        owner = clique(group.name)
        if owner is None:
            return False
        if group.name not in shares and owner.metadata.label(labels.PODGANG) != gang.metadata.name:
            return False
        if len(group.pod_references) < shares.get(group.name, owner.spec.replicas):
            return False
    return bool(groups)


def standalone_pods(pcs: PodCliqueSet, index: int, gang: EntryGang) -> dict[str, int]:
    """Return the number of pods of each standalone clique that a gang holds."""
    return {names.clique(pcs.metadata.name, index, name): count for name, count in gang.cliques.items()}


def has_been_scheduled(gang: PodGang) -> bool:
    """Return whether a gang has ever been scheduled, according to its own status."""
    return gang.status is not None and gang.status.last_scheduled is not None


def has_been_ready(gang: PodGang) -> bool:
    """Return whether a gang has ever been Ready, according to its own status."""
    return gang.status is not None and gang.status.last_ready is not None


def is_initialized(gang: PodGang) -> bool:
    """Return whether the gang's condition Initialized is True."""
    conditions = gang.status.conditions if gang.status else None
    return any(c.type == INITIALIZED and c.status == "True" for c in conditions or ())


def initialized_condition(is_complete: bool, now: str) -> Condition:
    """Return the condition that tells the scheduler whether all pods of the gang have been created (GS-F17)."""
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
