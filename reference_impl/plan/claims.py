"""ResourceClaims of sets, scaling groups and cliques, and which claims a pod uses (spec OBJ-112, OBJ-113, OBJ-219,
OBJ-820 to OBJ-826)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from reference_impl.api import kubernetes
from reference_impl.api.models import (
    CliqueSharing,
    CliqueTemplate,
    GroupSharing,
    PodClique,
    PodCliqueSet,
    ScalingGroupConfig,
    Scope,
    SetSharing,
)
from reference_impl.plan import labels, names
from reference_impl.plan.children import Manifest, clique_config, clique_template
from reference_impl.plan.reconcile_error import ReconcileError

ClaimSpecLookup = Callable[[str, str], Manifest | None]
"""Returns the spec of a ResourceClaimTemplate object by namespace and name, or None if the object does not exist."""


@dataclass(frozen=True)
class PlannedClaim:
    """A claim that should exist."""

    name: str
    sharing: CliqueSharing = field(hash=False)
    labels: dict[str, str] = field(hash=False)


def _planned_claims(
    owner: str, sharing: Sequence[CliqueSharing] | None, indices: Iterable[int], tags: dict[str, str], index_label: str
) -> Iterator[PlannedClaim]:
    """Yield the claims of one owner: one claim for all its replicas, or one claim for each index."""
    index_list = list(indices)
    for entry in sharing or ():
        if entry.scope == Scope.ALL_REPLICAS:
            yield PlannedClaim(names.shared_claim(owner, entry.name), entry, tags)
        else:
            for index in index_list:
                index_tags = {**tags, index_label: str(index)}
                yield PlannedClaim(names.replica_claim(owner, index, entry.name), entry, index_tags)


def set_claims(pcs: PodCliqueSet) -> list[PlannedClaim]:
    """Return the claims that the set itself owns."""
    sharing = pcs.spec.template.resource_sharing
    return list(_planned_claims(pcs.metadata.name, sharing, range(pcs.spec.replicas), {}, labels.REPLICA_INDEX))


def group_claims(group: str, config: ScalingGroupConfig, replicas: int) -> list[PlannedClaim]:
    """Return the claims that a scaling group owns. `group` is its full name."""
    tags, index_label = {labels.SCALING_GROUP: group}, labels.SCALING_GROUP_REPLICA_INDEX
    return list(_planned_claims(group, config.resource_sharing, range(replicas), tags, index_label))


def clique_claims(clique: PodClique, template: CliqueTemplate, in_use: Iterable[int]) -> list[PlannedClaim]:
    """Return the claims that a clique owns. `in_use` holds the indices of its pods, because a pod keeps its claim even
    if its index is beyond the replicas (OBJ-826)."""
    indices = sorted({*range(clique.spec.replicas), *in_use})
    name = clique.metadata.name
    return list(_planned_claims(name, template.resource_sharing, indices, {labels.PODCLIQUE: name}, labels.POD_INDEX))


def claim_spec(pcs: PodCliqueSet, sharing: CliqueSharing, find_claim_spec: ClaimSpecLookup) -> Manifest:
    """Return the spec of a new claim. Templates in the set take precedence over those in the cluster (OBJ-820). Raises
    ReconcileError if neither has the template."""
    if not sharing.namespace:
        for claim_template in pcs.spec.template.resource_claim_templates or ():
            if claim_template.name == sharing.name:
                return dict(claim_template.template_spec.get("spec") or {})
    namespace = sharing.namespace or pcs.metadata.namespace
    spec = find_claim_spec(namespace, sharing.name)
    if spec is None:
        text = f"ResourceClaimTemplate {namespace}/{sharing.name} does not exist (hint: create it)"
        raise ReconcileError("ERR_RESOURCE_CLAIM_TEMPLATE_NOT_FOUND", text)
    return spec


def manifest(pcs: PodCliqueSet, claim: PlannedClaim, spec: Manifest, owner: Manifest) -> Manifest:
    """Return the manifest of a claim (OBJ-219)."""
    return {
        "apiVersion": kubernetes.CLAIMS.api_version,
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim.name,
            "namespace": pcs.metadata.namespace,
            "labels": {**labels.common_labels(pcs.metadata.name, "resource-claim"), **claim.labels},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def pod_claims(pcs: PodCliqueSet, clique: PodClique) -> Callable[[int], list[str]] | None:
    """Return a function that returns the names of a pod's claims by the pod's index, in the order of OBJ-824. Return
    None if the pods of the clique use no claims."""
    template = clique_template(pcs, clique)
    if template is None:
        return None
    config = clique_config(pcs, clique)
    get_label = clique.metadata.label
    set_sharing = [s for s in pcs.spec.template.resource_sharing or () if _is_shared_by_set(s, template, config)]
    shared_claim_names = _claim_names(pcs.metadata.name, set_sharing, get_label(labels.REPLICA_INDEX))
    if config is not None:
        group_sharing = [s for s in config.resource_sharing or () if _is_shared_by_group(s, template)]
        shared_claim_names += _claim_names(
            get_label(labels.SCALING_GROUP), group_sharing, get_label(labels.SCALING_GROUP_REPLICA_INDEX)
        )
    clique_sharing = template.resource_sharing or []
    if not shared_claim_names and not clique_sharing:
        return None
    return lambda index: [*shared_claim_names, *_claim_names(clique.metadata.name, clique_sharing, str(index))]


def _claim_names(owner: str, sharing: Sequence[CliqueSharing], index: str) -> list[str]:
    """Return the names of the owner's claims that its replica `index` uses. Claims for all replicas come first."""
    shared = [names.shared_claim(owner, s.name) for s in sharing if s.scope == Scope.ALL_REPLICAS]
    return shared + [names.replica_claim(owner, index, s.name) for s in sharing if s.scope != Scope.ALL_REPLICAS]


def _is_shared_by_set(sharing: SetSharing, template: CliqueTemplate, config: ScalingGroupConfig | None) -> bool:
    """Return whether the filter of the set's sharing grants the claim to a clique (OBJ-825)."""
    if (sharing_filter := sharing.filter) is None:
        return True
    if template.name in (sharing_filter.child_clique_names or ()):
        return True
    return config is not None and config.name in (sharing_filter.child_scaling_group_names or ())


def _is_shared_by_group(sharing: GroupSharing, template: CliqueTemplate) -> bool:
    return sharing.filter is None or template.name in (sharing.filter.child_clique_names or ())


def with_claims(pod_spec: Manifest, claims: Sequence[str]) -> Manifest:
    """Return the pod spec with these claims added to every container of the template (OBJ-824)."""
    container_claims = [{"name": name} for name in claims]

    def container(old: Manifest) -> Manifest:
        if old.get("name") == labels.INIT_CONTAINER:
            return old
        resources = old.get("resources") or {}
        return {**old, "resources": {**resources, "claims": [*(resources.get("claims") or ()), *container_claims]}}

    result = dict(pod_spec)
    own_claims = [{"name": name, "resourceClaimName": name} for name in claims]
    result["resourceClaims"] = [*(pod_spec.get("resourceClaims") or ()), *own_claims]
    for container_field in ("initContainers", "containers"):
        if pod_spec.get(container_field):
            result[container_field] = [container(c) for c in pod_spec[container_field]]
    return result
