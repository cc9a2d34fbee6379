"""Rules about the topology constraints of a new set (VTC-01 to VTC-12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reference_impl.admission.errors import FieldError, invalid, required
from reference_impl.admission.rules import paths
from reference_impl.api.models import PodCliqueSet, TopologyConstraint

Levels = Sequence[str]
"""The domains of a binding, broadest first."""
TOPOLOGY_DISABLED = "topology constraints are not allowed when Topology Aware Scheduling is disabled"
NAME_REQUIRED = "topologyName is required when topologyConstraint is set and cannot be inherited"
NAMES_DIFFER = (
    "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current implementation"
)


@dataclass(frozen=True)
class ConstraintLocation:
    """A constraint with its path, and the enclosing constraints from which it may inherit a name, nearest first."""

    path: str
    owner: str
    """The owner of the constraint in messages: `PodCliqueSet`, `PodClique 'a'`."""
    constraint: TopologyConstraint
    enclosing: tuple[ConstraintLocation, ...] = ()

    @property
    def own_name(self) -> str:
        """The name of the binding in the constraint itself, or an empty string if it names none."""
        return self.constraint.topology_name or ""

    @property
    def inherited_name(self) -> str:
        """The name of the binding in the nearest enclosing constraint that names a binding, or an empty string if no
        such constraint exists."""
        return next((location.own_name for location in self.enclosing if location.own_name), "")

    @property
    def name(self) -> str:
        """The name of the binding, which is the constraint's own name or else the inherited name."""
        return self.own_name or self.inherited_name


def required_domain(constraint: TopologyConstraint | None) -> str:
    """Return `pack.required`, or else the deprecated `packDomain` (API-064). Return an empty string if neither is
    set."""
    if constraint is None:
        return ""
    return (constraint.pack.required if constraint.pack else None) or constraint.pack_domain or ""


def preferred_domain(constraint: TopologyConstraint | None) -> str:
    """Return `pack.preferred` (API-061), or an empty string if it is not set."""
    return (constraint.pack.preferred if constraint and constraint.pack else None) or ""


def constraint_locations(pcs: PodCliqueSet) -> list[ConstraintLocation]:
    """Return every constraint of a set: the set's own constraint, then the constraints of scaling groups and of
    cliques. A clique inherits from its scaling group if the group has a constraint, and otherwise from the set
    (VTC-03)."""
    template = pcs.spec.template
    constraint = template.topology_constraint
    set_location = (
        (ConstraintLocation(f"{paths.TEMPLATE}.topologyConstraint", "PodCliqueSet", constraint),) if constraint else ()
    )
    locations = list(set_location)
    enclosing_by_clique: dict[str, tuple[ConstraintLocation, ...]] = {}
    for i, group in enumerate(template.pod_clique_scaling_groups or []):
        if group.topology_constraint:
            owner = f"PodCliqueScalingGroup '{group.name}'"
            location = ConstraintLocation(
                f"{paths.group(i)}.topologyConstraint", owner, group.topology_constraint, set_location
            )
            locations.append(location)
            enclosing_by_clique |= dict.fromkeys(group.clique_names, (location, *set_location))
    for i, clique in enumerate(template.cliques):
        if clique.topology_constraint:
            enclosing = enclosing_by_clique.get(clique.name, set_location)
            path = f"{paths.clique(i)}.topologyConstraint"
            locations.append(
                ConstraintLocation(path, f"PodClique '{clique.name}'", clique.topology_constraint, enclosing)
            )
    return locations


def disabled_violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Reject all constraints while topology-aware scheduling is disabled (VTC-02)."""
    for location in constraint_locations(pcs):
        domains = [required_domain(location.constraint), preferred_domain(location.constraint)]
        yield invalid(location.path, [domain for domain in domains if domain], TOPOLOGY_DISABLED)


def name_violations(pcs: PodCliqueSet) -> list[FieldError]:
    """Require that each constraint names or inherits a binding, and that the whole set uses the same binding (VTC-03 to
    VTC-05)."""
    locations = constraint_locations(pcs)
    errors = [required(f"{location.path}.topologyName", NAME_REQUIRED) for location in locations if not location.name]
    naming_locations = [location for location in locations if location.own_name]
    clashes = [
        location
        for location in naming_locations
        if location.inherited_name and location.inherited_name != location.own_name
    ]
    if not clashes and len({location.own_name for location in naming_locations}) > 1:
        clashes = naming_locations
    return errors + [invalid(f"{location.path}.topologyName", location.own_name, NAMES_DIFFER) for location in clashes]


def binding_names(pcs: PodCliqueSet) -> list[str]:
    """Return the names of the bindings that a set refers to."""
    return list(dict.fromkeys(location.own_name for location in constraint_locations(pcs) if location.own_name))


def violations(pcs: PodCliqueSet, binding_levels: Mapping[str, Levels]) -> list[FieldError]:
    """Return the errors in the constraints of a new set. Each step is checked only if the previous step passes
    (VTC-01). `binding_levels` holds the domains of the existing bindings."""
    if errors := name_violations(pcs):
        return errors
    locations = constraint_locations(pcs)
    for location in locations:
        if location.own_name and location.own_name not in binding_levels:
            detail = f'ClusterTopologyBinding "{location.own_name}" not found'
            return [invalid(f"{location.path}.topologyName", location.own_name, detail)]
    if errors := [
        error for location in locations for error in _unknown_domain_errors(location, binding_levels[location.name])
    ]:
        return errors
    return [
        error for location in locations for error in _inversion_errors(location, pcs, binding_levels[location.name])
    ]


def warnings(pcs: PodCliqueSet, binding_levels: Mapping[str, Levels]) -> Iterator[str]:
    """Warn about preferred domains that have no effect (VTC-11), also on updates (DFT-16)."""
    for location in constraint_locations(pcs):
        levels = binding_levels.get(location.name, ())
        required_level, preferred_level = required_domain(location.constraint), preferred_domain(location.constraint)
        if (
            required_level in levels
            and preferred_level in levels
            and levels.index(preferred_level) < levels.index(required_level)
        ):
            pack = f"{location.path}.pack"
            yield f"{pack}.preferred is coarser than {pack}.required and is redundant"


def deprecations(pcs: PodCliqueSet) -> Iterator[str]:
    """Warn about the deprecated `packDomain` (VTC-29)."""
    for location in constraint_locations(pcs):
        if location.constraint.pack_domain:
            yield f"{location.path}.packDomain is deprecated; use {location.path}.pack.required instead"


def _unknown_domain_errors(location: ConstraintLocation, levels: Levels) -> Iterator[FieldError]:
    """Reject domains that the binding does not have (VTC-07)."""
    pack = location.constraint.pack
    domains = [
        ("packDomain", location.constraint.pack_domain),
        ("pack.required", pack.required if pack else None),
        ("pack.preferred", pack.preferred if pack else None),
    ]
    for field, domain in domains:
        if domain and domain not in levels:
            detail = f"topology domain '{domain}' does not exist in cluster topology [{' '.join(levels)}]"
            yield invalid(f"{location.path}.{field}", domain, detail)


def _inversion_errors(parent: ConstraintLocation, pcs: PodCliqueSet, levels: Levels) -> Iterator[FieldError]:
    """Reject parents that are narrower than their children, comparing required with required and preferred with
    preferred domains (VTC-08 to VTC-10)."""
    for child in constraint_locations(pcs):
        if parent not in child.enclosing:
            continue
        for domain, suffix in ((required_domain, ""), (preferred_domain, ".pack.preferred")):
            outer, inner = domain(parent.constraint), domain(child.constraint)
            if outer and inner and levels.index(outer) > levels.index(inner):
                narrower = f"{parent.owner} topology constraint domain '{outer}' is narrower"
                detail = f"{narrower} than {child.owner} topology constraint domain '{inner}'"
                yield invalid(f"{parent.path}{suffix}", outer, detail)
