"""Topology constraints: the translation of a set's domains into node label keys for its gangs (spec OBJ-450 to
OBJ-455), and the set's condition (OBJ-717 to OBJ-723)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reference_impl.api.models import (
    ClusterTopologyBinding,
    Condition,
    GangTopology,
    PackConstraint,
    PodCliqueSet,
    TopologyConstraint,
)
from reference_impl.plan.children import group_configs

CONDITION = "TopologyLevelsUnavailable"


@dataclass(frozen=True)
class SetTopology:
    """The topology that a set refers to. `levels` holds node label keys by domain. It is empty if the feature is
    disabled, the set names no binding, or the binding does not exist."""

    enabled: bool = False
    binding: str = ""
    binding_exists: bool = False
    levels: Mapping[str, str] | None = None

    def translate(self, constraint: TopologyConstraint | None) -> GangTopology | None:
        """Return the constraint in node label keys, without unknown domains, or None if nothing remains."""
        required, preferred = (self._key(domain) for domain in domains(constraint))
        if required is None and preferred is None:
            return None
        return GangTopology(pack_constraint=PackConstraint(required=required, preferred=preferred))

    def _key(self, domain: str | None) -> str | None:
        return (self.levels or {}).get(domain) if domain else None


def domains(constraint: TopologyConstraint | None) -> tuple[str | None, str | None]:
    """Return the required and the preferred domain; `packDomain` is the old name of the required domain (API-064)."""
    if constraint is None:
        return None, None
    pack = constraint.pack
    required = (pack.required if pack else None) or constraint.pack_domain
    return required, pack.preferred if pack else None


def constraints(pcs: PodCliqueSet) -> Iterator[TopologyConstraint]:
    """Yield all constraints of a set: its own constraint and the constraints of its scaling groups and cliques."""
    template = pcs.spec.template
    of_groups = (config.topology_constraint for config in group_configs(pcs))
    of_cliques = (clique.topology_constraint for clique in template.cliques)
    yield from filter(None, (template.topology_constraint, *of_groups, *of_cliques))


def binding_name(pcs: PodCliqueSet) -> str:
    """Return the name of the first ClusterTopologyBinding that a set refers to, or an empty string if there is none."""
    return next((c.topology_name for c in constraints(pcs) if c.topology_name), "")


def set_topology(pcs: PodCliqueSet, enabled: bool, binding: ClusterTopologyBinding | None) -> SetTopology:
    """Return the topology of a set. `binding` is the object named by `binding_name`, or None if it does not exist."""
    name = binding_name(pcs)
    if not enabled or binding is None:
        return SetTopology(enabled=enabled, binding=name)
    return SetTopology(True, name, True, {level.domain: level.key for level in binding.spec.levels})


def condition(pcs: PodCliqueSet, topology: SetTopology, now: str) -> Condition | None:
    """Return the condition in the set's status about its topology constraints, or None if the set needs no
    condition."""
    domain_names = sorted({d for constraint in constraints(pcs) for d in domains(constraint) if d})
    unknown = [domain for domain in domain_names if domain not in (topology.levels or {})]
    if not topology.enabled:
        if not domain_names:
            return None
        state = ("Unknown", "TopologyAwareSchedulingDisabled")
        message = "Topology constraints are defined but Topology Aware Scheduling is disabled"
    elif not domain_names:
        state, message = ("False", "AllClusterTopologyLevelsAvailable"), "No topology constraints defined"
    elif not topology.binding:
        state = ("Unknown", "TopologyNameMissing")
        message = "PodCliqueSet topology constraints must include topologyName"
    elif not topology.binding_exists:
        state, message = ("Unknown", "ClusterTopologyNotFound"), "ClusterTopologyBinding resource not found"
    elif unknown:
        state = ("True", "ClusterTopologyLevelsUnavailable")
        message = f"Unavailable topology domains: [{' '.join(unknown)}]"  # sorted (OBJ-722)
    else:
        state, message = ("False", "AllClusterTopologyLevelsAvailable"), "All topology levels are available"
    status, reason = state
    return Condition(
        type=CONDITION,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=now,
        observed_generation=pcs.metadata.generation,
    )
