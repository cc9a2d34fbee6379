"""Tests of a set's secondary resources, and of the fields that are corrected in existing ones."""

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


def test_an_object_that_is_as_it_should_be_is_left_alone():
    pcs = disaggregated()
    for make, kind in (
        (secondary_resources.service_account, kubernetes.ServiceAccount),
        (secondary_resources.role, kubernetes.Role),
        (secondary_resources.role_binding, kubernetes.RoleBinding),
        (secondary_resources.token_secret, kubernetes.Secret),
    ):
        assert drift.correction(make(pcs), stored(make(pcs), kind)) == {}


def test_a_claim_that_cannot_be_changed_is_left_alone():
    pcs = disaggregated()
    claim = claims.PlannedClaim("llm-all-gpu", CliqueSharing(name="gpu", scope="AllReplicas"), {})
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "llm", "uid": "o", "controller": True}
    manifest = claims.manifest(pcs, claim, {"devices": {"requests": [{"name": "gpu"}]}}, owner)
    assert drift.correction(manifest, stored(manifest, kubernetes.Claim)) == {}
    assert drift.correction({**manifest, "spec": {}}, stored(manifest, kubernetes.Claim)) == {}
    current = stored(manifest, kubernetes.Claim)
    current.metadata.labels = None
    assert drift.correction(manifest, current) == {"metadata": {"labels": manifest["metadata"]["labels"]}}


def test_a_role_s_label_has_no_colons():
    assert (
        secondary_resources.role(disaggregated())["metadata"]["labels"]["app.kubernetes.io/name"] == "grove.io-pcs-llm"
    )


def test_a_wider_role_is_corrected():
    manifest = secondary_resources.role(disaggregated())
    wide = [*secondary_resources.RULES, {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    assert drift.correction(manifest, stored(manifest, kubernetes.Role, rules=wide)) == {
        "rules": secondary_resources.RULES
    }


def test_labels_that_others_added_stay_and_lost_ones_come_again():
    manifest = secondary_resources.role(disaggregated())
    current = stored(manifest, kubernetes.Role)
    current.metadata.labels = {"mine": "1", **manifest["metadata"]["labels"], "app.kubernetes.io/name": "x"}
    body = drift.correction(manifest, current)
    assert body == {"metadata": {"labels": {"app.kubernetes.io/name": "grove.io-pcs-llm"}}}


def test_an_object_without_owner_is_adopted_but_a_secret_is_not():
    for make, kind, adopted in (
        (secondary_resources.role, kubernetes.Role, True),
        (secondary_resources.token_secret, kubernetes.Secret, False),
    ):
        manifest = make(disaggregated())
        current = stored(manifest, kind)
        current.metadata.owner_references = None
        assert not ownership.has_expected_controller(manifest, current)
        assert ownership.is_adoptable(manifest, current) is adopted


def test_of_a_secret_only_the_presence_of_a_token_is_kept():
    current = stored(secondary_resources.token_secret(disaggregated()), kubernetes.Secret, data={"token": "c2VjcmV0"})
    assert current.has_token and current.data is None


def test_autoscalers_have_the_name_of_what_they_scale():
    pcs = disaggregated()
    assert list(autoscalers.replica_autoscalers(pcs, 0)) == []
    pcs.spec.template.cliques[0].spec.auto_scaling_config = AutoScaling(max_replicas=5)
    pcs.spec.template.pod_clique_scaling_groups[0].scale_config = AutoScaling(min_replicas=2, max_replicas=4)
    clique, group = autoscalers.replica_autoscalers(pcs, 1)
    assert clique["metadata"]["name"] == "llm-1-router" and clique["spec"]["minReplicas"] == 2
    assert group["spec"]["scaleTargetRef"]["kind"] == "PodCliqueScalingGroup"
    assert (group["spec"]["minReplicas"], group["spec"]["maxReplicas"]) == (2, 4)


def test_metrics_that_the_server_chose_are_no_drift():
    pcs = disaggregated()
    pcs.spec.template.cliques[0].spec.auto_scaling_config = AutoScaling(max_replicas=5)
    [manifest] = autoscalers.replica_autoscalers(pcs, 0)
    current = stored(manifest, kubernetes.Autoscaler, spec={**manifest["spec"], "metrics": [{"type": "Resource"}]})
    assert drift.correction(manifest, current) == {}
    current.spec["maxReplicas"] = 9
    assert drift.correction(manifest, current) == {"spec": {"maxReplicas": 5}}


def test_the_same_trouble_is_told_once():
    problem = reconcile_error.conflict("Secret", "ns", "llm-ic-sat")
    first = reconcile_error.last_errors(None, [problem], "now")
    assert [error.code for error in first] == ["ERR_SECRET_CONFLICT"]
    assert reconcile_error.last_errors(first, [problem], "later") == first
    assert reconcile_error.last_errors([LastError(code="X")], [], "later") is None
