"""Tests of a set's secondary resources, and of the fields that are corrected in existing resources."""

from __future__ import annotations

import msgspec

from reference_impl.api import kubernetes
from reference_impl.api.models import AutoScaling, CliqueSharing, LastError
from reference_impl.plan import autoscalers, claims, drift, ownership, reconcile_error, secondary_resources
from tests.reference.examples import disaggregated


def stored(manifest, kind, **changes):
    """Return the object as the API server would return it."""
    metadata = {**manifest["metadata"], "uid": "u", "resourceVersion": "1"}
    return msgspec.convert({**manifest, **changes, "metadata": metadata}, kind)


def test_an_object_as_desired_is_unchanged():
    pcs = disaggregated()
    for make, kind in (
        (secondary_resources.service_account, kubernetes.ServiceAccount),
        (secondary_resources.role, kubernetes.Role),
        (secondary_resources.role_binding, kubernetes.RoleBinding),
        (secondary_resources.token_secret, kubernetes.Secret),
    ):
        assert drift.correction(make(pcs), stored(make(pcs), kind)) == {}


def test_an_immutable_claim_is_unchanged():
    pcs = disaggregated()
    claim = claims.PlannedClaim("llm-all-gpu", CliqueSharing(name="gpu", scope="AllReplicas"), {})
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "llm", "uid": "o", "controller": True}
    manifest = claims.manifest(pcs, claim, {"devices": {"requests": [{"name": "gpu"}]}}, owner)
    assert drift.correction(manifest, stored(manifest, kubernetes.Claim)) == {}
    assert drift.correction({**manifest, "spec": {}}, stored(manifest, kubernetes.Claim)) == {}
    current = stored(manifest, kubernetes.Claim)
    current.metadata.labels = None
    assert drift.correction(manifest, current) == {"metadata": {"labels": manifest["metadata"]["labels"]}}


def test_the_label_of_a_role_has_no_colons():
    assert (
        secondary_resources.role(disaggregated())["metadata"]["labels"]["app.kubernetes.io/name"] == "grove.io-pcs-llm"
    )


def test_a_wider_role_is_corrected():
    manifest = secondary_resources.role(disaggregated())
    wide = [*secondary_resources.RULES, {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    assert drift.correction(manifest, stored(manifest, kubernetes.Role, rules=wide)) == {
        "rules": secondary_resources.RULES
    }


def test_additional_labels_are_kept_and_lost_labels_are_restored():
    manifest = secondary_resources.role(disaggregated())
    current = stored(manifest, kubernetes.Role)
    current.metadata.labels = {"mine": "1", **manifest["metadata"]["labels"], "app.kubernetes.io/name": "x"}
    body = drift.correction(manifest, current)
    assert body == {"metadata": {"labels": {"app.kubernetes.io/name": "grove.io-pcs-llm"}}}


def test_an_object_without_an_owner_is_adopted_unless_it_is_a_secret():
    for make, kind, adopted in (
        (secondary_resources.role, kubernetes.Role, True),
        (secondary_resources.token_secret, kubernetes.Secret, False),
    ):
        manifest = make(disaggregated())
        current = stored(manifest, kind)
        current.metadata.owner_references = None
        assert not ownership.has_expected_controller(manifest, current)
        assert ownership.is_adoptable(manifest, current) is adopted


def test_only_the_presence_of_a_token_is_kept_of_a_secret():
    current = stored(secondary_resources.token_secret(disaggregated()), kubernetes.Secret, data={"token": "c2VjcmV0"})
    assert current.has_token and current.data is None


def test_autoscalers_have_the_name_of_their_target():
    pcs = disaggregated()
    assert list(autoscalers.replica_autoscalers(pcs, 0)) == []
    pcs.spec.template.cliques[0].spec.auto_scaling_config = AutoScaling(max_replicas=5)
    pcs.spec.template.pod_clique_scaling_groups[0].scale_config = AutoScaling(min_replicas=2, max_replicas=4)
    clique, group = autoscalers.replica_autoscalers(pcs, 1)
    assert clique["metadata"]["name"] == "llm-1-router" and clique["spec"]["minReplicas"] == 2
    assert group["spec"]["scaleTargetRef"]["kind"] == "PodCliqueScalingGroup"
    assert (group["spec"]["minReplicas"], group["spec"]["maxReplicas"]) == (2, 4)


def test_metrics_defaulted_by_the_server_are_not_drift():
    pcs = disaggregated()
    pcs.spec.template.cliques[0].spec.auto_scaling_config = AutoScaling(max_replicas=5)
    [manifest] = autoscalers.replica_autoscalers(pcs, 0)
    current = stored(manifest, kubernetes.Autoscaler, spec={**manifest["spec"], "metrics": [{"type": "Resource"}]})
    assert drift.correction(manifest, current) == {}
    current.spec["maxReplicas"] = 9
    assert drift.correction(manifest, current) == {"spec": {"maxReplicas": 5}}


def test_the_same_error_is_reported_once():
    problem = reconcile_error.conflict("Secret", "ns", "llm-ic-sat")
    first = reconcile_error.last_errors(None, [problem], "now")
    assert [error.code for error in first] == ["ERR_SECRET_CONFLICT"]
    assert reconcile_error.last_errors(first, [problem], "later") == first
    assert reconcile_error.last_errors([LastError(code="X")], [], "later") is None
