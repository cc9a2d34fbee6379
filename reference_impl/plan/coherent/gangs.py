"""The PodGangs of a PodGangMap: their groups, and on which other gangs they depend (spec COH-081 to COH-102)."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import msgspec

from reference_impl.api.models import CliqueTemplate, PodCliqueSet, PodGang, PodGroup, TopologyGroup
from reference_impl.plan import children, gangs, labels, names
from reference_impl.plan.children import CliqueOf
from reference_impl.plan.coherent.layout import Entry, Layout, anchors
from reference_impl.plan.gangs import NO_TOPOLOGY, PlannedGang
from reference_impl.plan.topology import Topology

GangOf = Callable[[str], PodGang | None]
"""Finds a gang by name."""


def planned(
    pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
) -> PlannedGang:
    """The gang of an entry. Once it was scheduled, its standalone cliques no longer have a minimum: then single pods of
    them may be lost, or move to another gang, without the gang losing its place (COH-089)."""
    released = found is not None and ever_scheduled(found)
    minimums: dict[str, int] = {}
    templates: dict[str, CliqueTemplate] = {}
    for template in children.standalone_templates(pcs):
        if count := entry.cliques.get(template.name):
            name = names.clique(pcs.metadata.name, index, template.name)
            templates[name] = template
            minimums[name] = 0 if released else min(template.spec.minimum, count)
    of_groups: list[TopologyGroup] = []
    constraint = pcs.spec.template.topology_constraint
    of_set = topology.translated(constraint)
    for config in children.group_configs(pcs):
        group = names.scaling_group(pcs.metadata.name, index, config.name)
        own = config.topology_constraint if topology.enabled else None
        for j in entry.groups.get(config.name, ()):
            members = {
                names.member_clique(group, j, clique): t
                for clique in config.clique_names
                if (t := children.template(pcs, clique)) is not None
            }
            templates |= members
            minimums |= {name: t.spec.minimum for name, t in members.items()}
            if own is None:
                continue
            if not entry.anchor:
                of_set = topology.translated(own)
            elif topology.found:
                of_groups.append(
                    TopologyGroup(
                        name=names.member_group(group, j),
                        pod_group_names=list(members),
                        topology_constraint=topology.translated(own),
                    )
                )
    translated = {name: topology.translated(t.topology_constraint) for name, t in templates.items()}
    of_cliques = {name: one for name, one in translated.items() if one is not None} if topology.levels else {}
    return PlannedGang(entry.name, minimums, of_set, of_cliques, of_groups, own_labels(entry))


def own_labels(entry: Entry) -> dict[str, str]:
    """The labels that tell a gang of a map from others (COH-081)."""
    of_anchor = {labels.ANCHOR: "true"} if entry.anchor else {}
    return {labels.GENERATION_HASH: entry.generation, **of_anchor}


def of_a_map(gang: PodGang) -> bool:
    """Whether a gang was created from a PodGangMap, or adopted into one."""
    return bool(gang.metadata.label(labels.GENERATION_HASH))


def ever_scheduled(gang: PodGang) -> bool:
    """Whether a gang has been scheduled."""
    return gang.status is not None and gang.status.last_scheduled is not None


def ever_ready(gang: PodGang) -> bool:
    """Whether a gang has been Ready."""
    return gang.status is not None and gang.status.last_ready is not None


def released(gang: PodGang, groups: list[PodGroup], shares: Mapping[str, int]) -> list[PodGroup]:
    """The groups of a gang; once it was scheduled, its standalone cliques (`shares`) have no minimum (COH-089)."""
    if not ever_scheduled(gang):
        return groups
    return [msgspec.structs.replace(group, min_replicas=0) if group.name in shares else group for group in groups]


def dependencies(layout: Layout, entry: Entry) -> list[str]:
    """The gangs that have to be scheduled before a gang: the anchors of its generation or, if there are none, all
    anchors of its replica (COH-091)."""
    if entry.anchor:
        return []
    others = [anchor for anchor in anchors(layout) if anchor.name != entry.name]
    same = [anchor for anchor in others if anchor.generation == entry.generation]
    return [anchor.name for anchor in same or others]


def may_start(layout: Layout, entry: Entry, gang: GangOf, abandoned: Container[str] = ()) -> bool:
    """Whether all gangs that a gang depends on have been scheduled. `abandoned` are gangs of another generation that
    may never be scheduled."""
    found = [gang(name) for name in dependencies(layout, entry) if name not in abandoned]
    return all(anchor is not None and ever_scheduled(anchor) for anchor in found)


def complete(gang: PodGang, groups: list[PodGroup], clique: CliqueOf, shares: Mapping[str, int]) -> bool:
    """Whether all pods of a gang exist. `shares`: standalone clique → how many of its pods the gang holds."""
    if any(len(group.pod_references) < shares.get(group.name, 0) for group in groups):
        return False
    members = [group for group in groups if group.name not in shares]
    return gangs.complete(gang, members, clique) if members else bool(groups)


def standalone_pods(pcs: PodCliqueSet, index: int, entry: Entry) -> dict[str, int]:
    """Standalone clique → how many of its pods a gang holds."""
    return {names.clique(pcs.metadata.name, index, name): count for name, count in entry.cliques.items()}


def ready_minimums(pcs: PodCliqueSet, index: int, entry: Entry) -> dict[str, int]:
    """Clique → how many of its pods have to be Ready for the gang to be Ready: `minAvailable`, or all that the gang
    holds if they are fewer (COH-087)."""
    return planned(pcs, index, entry, None).minimums
