"""Rules about changes to the topology constraints of an existing set, few of which are allowed (VTC-20 to VTC-32)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.admission.errors import FieldError, forbidden
from reference_impl.admission.rules import paths, topology
from reference_impl.admission.rules.topology import preferred_domain, required_domain
from reference_impl.api.models import PodCliqueSet, TopologyConstraint

SET = f"{paths.TEMPLATE}.topologyConstraint"


def needs_repair(old: PodCliqueSet) -> bool:
    """Return whether a stored set has a constraint without a topology name, from the time before this field existed
    (VTC-30)."""
    return any(not location.name for location in topology.constraint_locations(old))


def violations(pcs: PodCliqueSet, old: PodCliqueSet) -> list[FieldError]:
    """Return the errors for changes that are not allowed."""
    repaired = needs_repair(old)
    if repaired and (nameless := [e for e in topology.name_violations(pcs) if e.path.endswith(".topologyName")]):
        return nameless
    new_template, old_template = pcs.spec.template, old.spec.template
    errors = list(_set_errors(new_template.topology_constraint, old_template.topology_constraint, repaired))
    cliques = {clique.name: clique for clique in old_template.cliques}
    for i, clique in enumerate(new_template.cliques):
        if clique.name in cliques:
            old_constraint = cliques[clique.name].topology_constraint
            path, owner = f"{paths.clique(i)}.topologyConstraint", f"PodClique '{clique.name}'"
            errors += _part_errors(path, owner, clique.topology_constraint, old_constraint, repaired)
    groups = {group.name: group for group in old_template.pod_clique_scaling_groups or []}
    for i, group in enumerate(new_template.pod_clique_scaling_groups or []):
        if group.name in groups:
            old_constraint = groups[group.name].topology_constraint
            path, owner = f"{paths.group(i)}.topologyConstraint", f"PodCliqueScalingGroup '{group.name}'"
            errors += _part_errors(path, owner, group.topology_constraint, old_constraint, repaired)
    return errors


def _set_errors(new: TopologyConstraint | None, old: TopologyConstraint | None, repaired: bool) -> Iterator[FieldError]:
    """Compare the constraint of the set with the old one (VTC-20, VTC-21)."""
    name, old_name = _name(new), _name(old)
    adds_name = repaired and old is not None and not old_name and name and _has_same_fields(new, old)
    if name != old_name and not adds_name:
        yield forbidden(f"{SET}.topologyName", f'topologyName cannot be changed from "{old_name}" to "{name}"')
    elif not _has_same_domains(new, old):
        yield forbidden(SET, f"PodCliqueSet topology constraint {_change_reason(new, old)}")


def _part_errors(
    path: str, owner: str, new: TopologyConstraint | None, old: TopologyConstraint | None, repaired: bool
) -> Iterator[FieldError]:
    """Compare the constraint of a clique or scaling group with the old one (VTC-22 to VTC-28)."""
    subject = f"{owner} topology constraint"
    if old is None or new is None:
        if new is not None:
            yield forbidden(path, f"{subject} cannot be added after creation")
        elif old is not None:
            yield forbidden(path, f"{subject} cannot be removed after creation")
        return
    name, old_name = _name(new), _name(old)
    adds_name = repaired and not old_name and name and _has_same_fields(new, old)
    if name != old_name and not adds_name:
        yield forbidden(path, f"{subject} topologyName cannot be changed from '{old_name}' to '{name}'")
    elif not _has_same_domains(new, old):
        yield forbidden(path, f"{subject} {_change_reason(new, old)}")


def _name(constraint: TopologyConstraint | None) -> str:
    return (constraint.topology_name if constraint else None) or ""


def _has_same_fields(new: TopologyConstraint | None, old: TopologyConstraint | None) -> bool:
    """Return whether `packDomain` is unchanged, as a repair that adds a name requires (VTC-30). A repair must not add
    `pack.preferred`, which `_has_same_domains` checks (DFT-24)."""
    return (new.pack_domain if new else None) == (old.pack_domain if old else None)


def _has_same_domains(new: TopologyConstraint | None, old: TopologyConstraint | None) -> bool:
    """Return whether two constraints are equivalent in a permitted way. `packDomain` may become `pack.required`
    (VTC-26), but not vice versa (VTC-28)."""
    if new is not None and new.pack_domain and not (old is not None and old.pack_domain):
        return False
    return (required_domain(new), preferred_domain(new)) == (required_domain(old), preferred_domain(old))


def _change_reason(new: TopologyConstraint | None, old: TopologyConstraint | None) -> str:
    """Return the reason why a changed constraint is rejected. A constraint without any domain counts as absent."""
    if not _has_domain(new):
        return "cannot be removed after creation"
    if not _has_domain(old):
        return "cannot be added after creation"
    return f"cannot be changed from {_domains(old)} to {_domains(new)}"


def _has_domain(constraint: TopologyConstraint | None) -> bool:
    return bool(required_domain(constraint) or preferred_domain(constraint))


def _domains(constraint: TopologyConstraint | None) -> str:
    return f'required="{required_domain(constraint)}" preferred="{preferred_domain(constraint)}"'
