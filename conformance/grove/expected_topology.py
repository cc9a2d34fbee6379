"""The expected topology constraints of a set's gangs (docs/spec/objects.md, section 4.5). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.grove import labels, template
from conformance.grove.expected import ExpectedGang, ExpectedObjects
from conformance.grove.fields import Document, at, items, text, texts

Constraint = dict[str, str]
"""`required` and `preferred`, as node label keys; empty for no constraint."""

Levels = Mapping[str, str]
"""Domain → node label key, from the ClusterTopologyBinding."""


@dataclass(frozen=True)
class Placement:
    """The constraints of a gang."""

    gang: Constraint
    groups: Mapping[str, Constraint]
    """The constraint of each PodGroup that has one."""
    bundles: list[tuple[list[str], Constraint]]
    """Lists of PodGroups that are packed together, each with its constraint. Implementations choose the names of these
    bundles (OBJ-115)."""
    inherited: bool = False
    """Whether the gang has the constraint of the set because its scaling group has none (OBJ-453)."""

    @property
    def any(self) -> bool:
        """Return whether the gang has any constraint."""
        return bool(self.gang or self.groups or self.bundles)


def with_label_keys(constraint: object, levels: Levels) -> Constraint:
    """Return a constraint of the set translated to node label keys (OBJ-451), without domains that the binding does not
    have."""
    domains = {
        "required": text(constraint, "pack", "required") or text(constraint, "packDomain"),
        "preferred": text(constraint, "pack", "preferred"),
    }
    return {strength: levels[domain] for strength, domain in domains.items() if domain in levels}


def placements(workload: Document, objects: ExpectedObjects, levels: Levels) -> dict[str, Placement]:
    """Return the constraints of each gang, for a binding with these levels; pass no levels if there is no binding."""
    return {gang.name: _placement(workload, objects, gang, levels) for gang in objects.gangs.values()}


def _placement(workload: Document, objects: ExpectedObjects, gang: ExpectedGang, levels: Levels) -> Placement:
    set_template = template.read(workload)
    cliques = objects.of_gang(gang.name)
    clique_constraints = {
        clique.name: with_label_keys(at(clique.template.entry, "topologyConstraint"), levels) for clique in cliques
    }
    set_constraint = with_label_keys(at(workload, "spec", "template", "topologyConstraint"), levels)
    bundles: list[tuple[list[str], Constraint]] = []
    gang_constraint, inherited = set_constraint, not gang.base
    for group in set_template.groups:
        constraint = at(group.entry, "topologyConstraint")
        members = [c for c in cliques if c.group and c.template.name in group.cliques]
        if constraint is None or not members:
            continue
        if not gang.base:
            gang_constraint, inherited = with_label_keys(constraint, levels), False  # OBJ-453
            continue
        for j in sorted({c.labels[labels.GROUP_INDEX] for c in members}):
            names = sorted(c.name for c in members if c.labels[labels.GROUP_INDEX] == j)
            if pack := with_label_keys(constraint, levels):
                bundles.append((names, pack))
    group_constraints = {name: pack for name, pack in clique_constraints.items() if pack}
    return Placement(gang_constraint, group_constraints, sorted(bundles), inherited)


def observed_constraints(gang: object) -> Placement:
    """Return the constraints of a PodGang. Entries without a constraint are left out."""
    groups = {text(group, "name"): _pack(group) for group in items(gang, "spec", "podgroups")}
    configs = items(gang, "spec", "topologyConstraintGroupConfigs")
    bundles = [(sorted(texts(entry, "podGroupNames")), _pack(entry)) for entry in configs]
    return Placement(
        _pack(at(gang, "spec")),
        {name: pack for name, pack in groups.items() if pack},
        sorted(bundle for bundle in bundles if bundle[1]),
    )


def _pack(holder: object) -> Constraint:
    pack = at(holder, "topologyConstraint", "packConstraint")
    return {strength: text(pack, strength) for strength in ("required", "preferred") if text(pack, strength)}
