"""Tests of resource claims: their names, the pods that use them, and the templates from which they are created."""

from __future__ import annotations

import msgspec
import pytest

from reference_impl.api.models import (
    ClaimTemplate,
    CliqueSharing,
    GroupSharing,
    GroupSharingFilter,
    PodClique,
    Scope,
    SetSharing,
    SharingFilter,
)
from reference_impl.plan import children, claims, labels
from reference_impl.plan.reconcile_error import ReconcileError
from tests.reference.examples import clique, disaggregated, members, standalone
from tests.reference.test_objects import scaling_group


@pytest.fixture
def pcs():
    result = disaggregated()
    template = result.spec.template
    template.resource_sharing = [
        SetSharing(name="one", scope=Scope.ALL_REPLICAS),
        SetSharing(name="two", scope=Scope.PER_REPLICA, filter=SharingFilter(child_scaling_group_names=["workers"])),
    ]
    template.pod_clique_scaling_groups[0].resource_sharing = [
        GroupSharing(name="gpu", scope=Scope.PER_REPLICA, filter=GroupSharingFilter(child_clique_names=["decode"]))
    ]
    template.cliques[0].resource_sharing = [CliqueSharing(name="own", scope=Scope.PER_REPLICA)]
    return result


def member(pcs, name) -> PodClique:
    group = scaling_group(pcs)
    manifests = {m["metadata"]["name"]: m for m in members(pcs, group)}
    return clique(manifests[name])


def test_claims_are_named_after_their_owner_and_its_replica(pcs):
    assert [c.name for c in claims.set_claims(pcs)] == ["llm-all-one", "llm-0-two"]
    assert [c.name for c in claims.group_claims("llm-0-workers", children.group_configs(pcs)[0], 2)] == [
        "llm-0-workers-0-gpu",
        "llm-0-workers-1-gpu",
    ]


def test_labels_name_the_level_and_the_replica(pcs):
    [first, second] = claims.set_claims(pcs)
    assert first.labels == {} and second.labels == {labels.REPLICA_INDEX: "0"}
    [claim] = claims.group_claims("llm-0-workers", children.group_configs(pcs)[0], 1)
    assert claim.labels == {labels.SCALING_GROUP: "llm-0-workers", labels.SCALING_GROUP_REPLICA_INDEX: "0"}


def test_a_pod_beyond_the_replicas_keeps_its_claim(pcs):
    router = clique(standalone(pcs, 0, pcs.spec.template.cliques[0]))
    planned = claims.clique_claims(router, pcs.spec.template.cliques[0], [1, 3])
    assert [c.name for c in planned] == [f"llm-0-router-{index}-own" for index in (0, 1, 3)]


def test_filters_decide_which_cliques_get_a_claim(pcs):
    router = clique(standalone(pcs, 0, pcs.spec.template.cliques[0]))
    assert claims.pod_claims(pcs, router)(1) == ["llm-all-one", "llm-0-router-1-own"]
    assert claims.pod_claims(pcs, member(pcs, "llm-0-workers-2-decode"))(0) == [
        "llm-all-one",
        "llm-0-two",
        "llm-0-workers-2-gpu",
    ]
    assert claims.pod_claims(pcs, member(pcs, "llm-0-workers-2-prefill"))(0) == ["llm-all-one", "llm-0-two"]


def test_a_set_without_sharing_has_no_claims():
    pcs = disaggregated()
    router = clique(standalone(pcs, 0, pcs.spec.template.cliques[0]))
    assert claims.set_claims(pcs) == [] and claims.pod_claims(pcs, router) is None


def test_a_template_of_the_set_takes_precedence_over_the_cluster(pcs):
    [entry, _] = pcs.spec.template.resource_sharing
    outside = {"devices": "outside"}
    assert claims.claim_spec(pcs, entry, lambda *_: outside) == outside
    inside = {"devices": "inside"}
    pcs.spec.template.resource_claim_templates = [ClaimTemplate(name="one", template_spec={"spec": inside})]
    assert claims.claim_spec(pcs, entry, lambda *_: outside) == inside
    named = msgspec.structs.replace(entry, namespace="elsewhere")
    assert claims.claim_spec(pcs, named, lambda namespace, _: {"from": namespace}) == {"from": "elsewhere"}


def test_a_missing_template_is_reported_by_name(pcs):
    with pytest.raises(ReconcileError, match="ResourceClaimTemplate ns/one does not exist"):
        claims.claim_spec(pcs, pcs.spec.template.resource_sharing[0], lambda *_: None)


def test_only_containers_of_the_template_use_the_claims():
    spec = {
        "initContainers": [{"name": "warm"}, {"name": labels.INIT_CONTAINER}],
        "containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "old"}]}}],
    }
    result = claims.with_claims(spec, ["a"])
    assert result["resourceClaims"] == [{"name": "a", "resourceClaimName": "a"}]
    assert result["initContainers"] == [
        {"name": "warm", "resources": {"claims": [{"name": "a"}]}},
        {"name": labels.INIT_CONTAINER},
    ]
    assert result["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "claims": [{"name": "old"}, {"name": "a"}]}
    assert "resourceClaims" not in spec
