"""The desired state of a PodCliqueSet and of a scaling group, as a value.

`desired_set` and `desired_members` compute which objects should exist, in the order of creation. `control/` compares
them with the existing objects and writes the difference: it creates missing objects, corrects objects that differ and
deletes the surplus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from kube.objects import Object
from reference_impl.api.models import CliqueTemplate, PodCliqueScalingGroup, PodCliqueSet, ScalingGroupConfig
from reference_impl.plan import autoscalers, children, claims, gangs, mnnvl, names
from reference_impl.plan.children import Manifest
from reference_impl.plan.claims import PlannedClaim
from reference_impl.plan.gangs import PlannedGang
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.lines import Line, Placement
from reference_impl.plan.topology import SetTopology

T = TypeVar("T", bound=Object)
PlacementOf = Callable[[int], Placement]
"""Returns the gangs of a replica, by the replica's index."""


@dataclass(frozen=True)
class Child:
    """One object that should exist."""

    kind: str
    name: str


@dataclass(frozen=True)
class StandaloneClique(Child):
    """A clique that belongs to no scaling group, and its template."""

    template: CliqueTemplate


@dataclass(frozen=True)
class ScalingGroup(Child):
    """A scaling group, and its configuration in the set."""

    config: ScalingGroupConfig


@dataclass(frozen=True)
class DesiredGang(Child):
    """A PodGang, without its pod references."""

    planned: PlannedGang


@dataclass(frozen=True)
class DesiredMap(Child):
    """A PodGangMap, which stores the layout of its replica. It is written before all other objects of the replica."""


@dataclass(frozen=True)
class DesiredAutoscaler(Child):
    """A HorizontalPodAutoscaler of a clique or scaling group."""

    manifest: Manifest
    name_taken: bool
    """Whether an earlier autoscaler of the set has the same name, which a clique and a scaling group may have in common
    (OBJ-123)."""


@dataclass(frozen=True)
class DesiredReplica:
    """The objects of one replica of a set, in the order of creation (OBJ-302)."""

    index: int
    objects: tuple[Child, ...]


@dataclass(frozen=True)
class DesiredDomain:
    """The ComputeDomain of an MNNVL group in a replica of the set."""

    index: int
    group: str


@dataclass(frozen=True)
class DesiredSet:
    """The desired state of a set: its own claims and ComputeDomains, and the objects of each replica."""

    pcs: PodCliqueSet
    claims: tuple[PlannedClaim, ...]
    domains: tuple[DesiredDomain, ...]
    replicas: tuple[DesiredReplica, ...]

    @cached_property
    def names(self) -> frozenset[tuple[str, str]]:
        """The kind and name of every object that may exist."""
        pcs = self.pcs.metadata.name
        keys = {("ResourceClaim", claim.name) for claim in self.claims}
        keys |= {("ComputeDomain", names.compute_domain(pcs, domain.index, domain.group)) for domain in self.domains}
        keys |= {("ComputeDomain", name) for name in mnnvl.former_domains(self.pcs)}
        keys |= {(child.kind, child.name) for replica in self.replicas for child in replica.objects}
        return frozenset(keys)

    def surplus(self, kind: str, existing: Iterable[T]) -> Iterator[T]:
        """Yield the objects of a kind that should not exist and are not being deleted yet."""
        for item in existing:
            if (kind, item.metadata.name) not in self.names and item.metadata.deletion_timestamp is None:
                yield item


def desired_set(
    pcs: PodCliqueSet, placement: PlacementOf, line: Line, levels: SetTopology, *, domains: bool = False
) -> DesiredSet:
    """Return the desired state of a set. `domains` says whether ComputeDomains are enabled."""
    indices = range(pcs.spec.replicas)
    groups = mnnvl.groups(pcs) if domains else []
    autoscaler_names: set[str] = set()
    return DesiredSet(
        pcs,
        tuple(claims.set_claims(pcs)),
        tuple(DesiredDomain(index, group) for index in indices for group in groups),
        tuple(_desired_replica(pcs, index, placement(index), line, levels, autoscaler_names) for index in indices),
    )


def _desired_replica(
    pcs: PodCliqueSet, index: int, placement: Placement, line: Line, levels: SetTopology, autoscaler_names: set[str]
) -> DesiredReplica:
    """Return the objects of one replica in order: Service, cliques, scaling groups, gangs, autoscalers.
    `autoscaler_names` holds the names of the autoscalers of earlier replicas; the names of this replica's autoscalers
    are added to it."""
    name = pcs.metadata.name
    planned = gangs.planned_gangs(pcs, index, placement, line, levels)
    objects: list[Child] = [
        *((DesiredMap("PodGangMap", names.gang_map(name, index)),) if line.stores_layouts else ()),
        Child("Service", names.service(name, index)),
        *(
            StandaloneClique("PodClique", names.clique(name, index, template.name), template)
            for template in children.standalone_templates(pcs)
        ),
        *(
            ScalingGroup("PodCliqueScalingGroup", names.scaling_group(name, index, config.name), config)
            for config in children.group_configs(pcs)
        ),
        *(DesiredGang("PodGang", gang.name, gang) for gang in planned),
    ]
    for manifest in autoscalers.replica_autoscalers(pcs, index):
        autoscaler_name = manifest["metadata"]["name"]
        objects.append(
            DesiredAutoscaler(manifest["kind"], autoscaler_name, manifest, autoscaler_name in autoscaler_names)
        )
        autoscaler_names.add(autoscaler_name)
    return DesiredReplica(index, tuple(objects))


@dataclass(frozen=True)
class DesiredMembers:
    """The desired state of a scaling group: its claims, and the cliques of its replicas."""

    claims: tuple[PlannedClaim, ...] | None
    """None if the scaling group shares no resource claims."""
    cliques: Mapping[str, Manifest]
    """Manifests by name, in the order of creation."""


def desired_members(
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    config: ScalingGroupConfig,
    indices: Iterable[int],
    placement: Placement,
    line: Line,
    *,
    channels: bool = False,
    policy: Policy = STANDARD,
) -> DesiredMembers:
    """Return the desired state of these replicas of a scaling group. `channels` says whether ComputeDomains are
    enabled."""
    planned_claims = (
        claims.group_claims(group.metadata.name, config, group.spec.replicas) if config.resource_sharing else None
    )
    cliques = children.member_cliques(pcs, group, config, indices, placement, line, channels=channels, policy=policy)
    return DesiredMembers(
        None if planned_claims is None else tuple(planned_claims),
        {manifest["metadata"]["name"]: manifest for manifest in cliques},
    )
