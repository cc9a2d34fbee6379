"""Rules about the topology constraints of a new set (VTC-01 to VTC-12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reference_impl.admission.errors import FieldError, invalid, required
from reference_impl.admission.rules import paths
from reference_impl.api.models import PodCliqueSet, TopologyConstraint

Levels = Sequence[str]
"""The domains of a binding, broadest first."""
DISABLED = "topology constraints are not allowed when Topology Aware Scheduling is disabled"
NAMELESS = "topologyName is required when topologyConstraint is set and cannot be inherited"
MIXED = "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current implementation"


@dataclass(frozen=True)
class ConstraintLocation:
    """A constraint with its path, and the enclosing constraints from which it may inherit a name, nearest first."""

    path: str
    owner: str
    """The owner of the constraint in messages: `PodCliqueSet`, `PodClique 'a'`."""
    constraint: TopologyConstraint
    above: tuple[ConstraintLocation, ...] = ()

    @property
    def own_name(self) -> str:
        """The name of the binding in the constraint itself, or an empty string if it names none."""
        return self.constraint.topology_name or ""

    @property
    def inherited_name(self) -> str:
        """The name of the binding in the nearest enclosing constraint that names one, or an empty string if none
        does."""
        return next((place.own_name for place in self.above if place.own_name), "")

    @property
    def name(self) -> str:
        """The name of the binding: the constraint's own or the inherited one."""
        return self.own_name or self.inherited_name


def required_domain(constraint: TopologyConstraint | None) -> str:
    """Return `pack.required`, or else the deprecated `packDomain` (API-064), or an empty string if neither is set."""
    if constraint is None:
        return ""
    return (constraint.pack.required if constraint.pack else None) or constraint.pack_domain or ""


def preferred_domain(constraint: TopologyConstraint | None) -> str:
    """Return `pack.preferred` (API-061), or an empty string if it is not set."""
    return (constraint.pack.preferred if constraint and constraint.pack else None) or ""


def places(pcs: PodCliqueSet) -> list[ConstraintLocation]:
    """Return every constraint of a set: the set's own constraint, then those of scaling groups and those of cliques. A
    clique inherits from its scaling group if the group has a constraint, and else from the set (VTC-03)."""
    template = pcs.spec.template
    constraint = template.topology_constraint
    top = (
        (ConstraintLocation(f"{paths.TEMPLATE}.topologyConstraint", "PodCliqueSet", constraint),) if constraint else ()
    )
    all_places = list(top)
    enclosing_by_clique: dict[str, tuple[ConstraintLocation, ...]] = {}
    for i, group in enumerate(template.pod_clique_scaling_groups or []):
        if group.topology_constraint:
            owner = f"PodCliqueScalingGroup '{group.name}'"
            place = ConstraintLocation(f"{paths.group(i)}.topologyConstraint", owner, group.topology_constraint, top)
            all_places.append(place)
            enclosing_by_clique |= dict.fromkeys(group.clique_names, (place, *top))
    for i, clique in enumerate(template.cliques):
        if clique.topology_constraint:
            enclosing = enclosing_by_clique.get(clique.name, top)
            path = f"{paths.clique(i)}.topologyConstraint"
            all_places.append(
                ConstraintLocation(path, f"PodClique '{clique.name}'", clique.topology_constraint, enclosing)
            )
    return all_places


def refused(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Reject all constraints while topology-aware scheduling is disabled (VTC-02)."""
    for place in places(pcs):
        domains = [required_domain(place.constraint), preferred_domain(place.constraint)]
        yield invalid(place.path, [domain for domain in domains if domain], DISABLED)


def wrong_names(pcs: PodCliqueSet) -> list[FieldError]:
    """Require that each constraint names or inherits a binding, and that the whole set uses the same binding (VTC-03 to
    VTC-05)."""
    all_places = places(pcs)
    errors = [required(f"{place.path}.topologyName", NAMELESS) for place in all_places if not place.name]
    naming_places = [place for place in all_places if place.own_name]
    clashes = [place for place in naming_places if place.inherited_name and place.inherited_name != place.own_name]
    if not clashes and len({place.own_name for place in naming_places}) > 1:
        clashes = naming_places
    return errors + [invalid(f"{place.path}.topologyName", place.own_name, MIXED) for place in clashes]


def bindings(pcs: PodCliqueSet) -> list[str]:
    """Return the names of the bindings that a set refers to."""
    return list(dict.fromkeys(place.own_name for place in places(pcs) if place.own_name))


def violations(pcs: PodCliqueSet, binding_levels: Mapping[str, Levels]) -> list[FieldError]:
    """Return the errors in the constraints of a new set; each step is checked only if the previous one passes (VTC-01).
    `binding_levels` holds the domains of the existing bindings."""
    if errors := wrong_names(pcs):
        return errors
    all_places = places(pcs)
    for place in all_places:
        if place.own_name and place.own_name not in binding_levels:
            detail = f'ClusterTopologyBinding "{place.own_name}" not found'
            return [invalid(f"{place.path}.topologyName", place.own_name, detail)]
    if errors := [error for place in all_places for error in _unknown_domains(place, binding_levels[place.name])]:
        return errors
    return [error for place in all_places for error in _inversions(place, pcs, binding_levels[place.name])]


def warnings(pcs: PodCliqueSet, binding_levels: Mapping[str, Levels]) -> Iterator[str]:
    """Warn of preferred domains that have no effect (VTC-11), also on updates (DFT-16)."""
    for place in places(pcs):
        levels = binding_levels.get(place.name, ())
        required_level, preferred_level = required_domain(place.constraint), preferred_domain(place.constraint)
        if (
            required_level in levels
            and preferred_level in levels
            and levels.index(preferred_level) < levels.index(required_level)
        ):
            pack = f"{place.path}.pack"
            yield f"{pack}.preferred is coarser than {pack}.required and is redundant"


def deprecations(pcs: PodCliqueSet) -> Iterator[str]:
    """Warn of the deprecated `packDomain` (VTC-29)."""
    for place in places(pcs):
        if place.constraint.pack_domain:
            yield f"{place.path}.packDomain is deprecated; use {place.path}.pack.required instead"


def _unknown_domains(place: ConstraintLocation, levels: Levels) -> Iterator[FieldError]:
    """Reject domains that the binding does not have (VTC-07)."""
    pack = place.constraint.pack
    domains = [
        ("packDomain", place.constraint.pack_domain),
        ("pack.required", pack.required if pack else None),
        ("pack.preferred", pack.preferred if pack else None),
    ]
    for field, domain in domains:
        if domain and domain not in levels:
            detail = f"topology domain '{domain}' does not exist in cluster topology [{' '.join(levels)}]"
            yield invalid(f"{place.path}.{field}", domain, detail)


def _inversions(parent: ConstraintLocation, pcs: PodCliqueSet, levels: Levels) -> Iterator[FieldError]:
    """Reject parents that are narrower than their children, comparing required with required and preferred with
    preferred domains (VTC-08 to VTC-10)."""
    for child in places(pcs):
        if parent not in child.above:
            continue
        for domain, suffix in ((required_domain, ""), (preferred_domain, ".pack.preferred")):
            outer, inner = domain(parent.constraint), domain(child.constraint)
            if outer and inner and levels.index(outer) > levels.index(inner):
                narrower = f"{parent.owner} topology constraint domain '{outer}' is narrower"
                detail = f"{narrower} than {child.owner} topology constraint domain '{inner}'"
                yield invalid(f"{parent.path}{suffix}", outer, detail)
