"""Tests of the oracle for a set's resources other than pods, with the example of docs/spec/objects.md and GREP-390's
table in OBJ-S84."""

from __future__ import annotations

import pytest

from conformance.grove import (
    expected_claims,
    expected_domains,
    expected_secondary,
    expected_topology,
    labels,
    workloads,
)
from conformance.grove.expected import expected


@pytest.fixture
def full_featured():
    return workloads.load("full-featured")


def test_each_set_has_four_secondary_resources_whatever_its_replicas(full_featured):
    names = {item.resource: item.name for item in expected_secondary.secondary_resources(full_featured)}
    assert names == {
        "serviceaccounts": "p",
        "roles": "grove.io:pcs:p",
        "rolebindings": "grove.io:pcs:p",
        "secrets": "p-ic-sat",
    }
    assert expected_secondary.secondary_resources(workloads.load("full-featured", {"replicas": 0}))
    [role] = [item for item in expected_secondary.secondary_resources(full_featured) if item.resource == "roles"]
    assert role.labels[labels.NAME] == "grove.io-pcs-p"


def test_autoscalers_are_called_like_their_targets(full_featured):
    autoscalers = expected_secondary.autoscalers(full_featured)
    assert {name: autoscaler.target[0] for name, autoscaler in autoscalers.items()} == {
        "p-0-fe": "PodClique",
        "p-0-sg": "PodCliqueScalingGroup",
    }
    assert (autoscalers["p-0-sg"].minimum, autoscalers["p-0-sg"].maximum) == (1, 6)
    del full_featured["spec"]["template"]["podCliqueScalingGroups"][0]["scaleConfig"]["minReplicas"]
    assert expected_secondary.autoscalers(full_featured)["p-0-sg"].minimum is None, "no document has a default"


def test_claims_of_each_level(full_featured):
    claims = expected_claims.claims(full_featured, expected(full_featured))
    set_claims = {"p-all-fabric", "p-0-cache", "p-0-link"}
    group_claims = {"p-0-sg-all-link", *(f"p-0-sg-{j}-gpu" for j in range(3))}
    clique_claims = {"p-0-fe-all-cache", "p-0-fe-0-gpu", "p-0-fe-1-gpu"}
    assert set(claims) == set_claims | group_claims | clique_claims
    assert claims["p-0-sg-1-gpu"].owner == ("PodCliqueScalingGroup", "p-0-sg")
    assert claims["p-0-sg-1-gpu"].labels[labels.GROUP_INDEX] == "1"
    assert expected_claims.embedded_spec(full_featured, claims["p-0-cache"]) == expected_claims.embedded_spec(
        full_featured, claims["p-0-fe-all-cache"]
    )


def test_filters_decide_which_pod_is_given_what(full_featured):
    cliques = expected(full_featured).cliques
    assert expected_claims.pod_claim_names(full_featured, cliques["p-0-fe"], 1) == [
        "p-all-fabric",
        "p-0-link",
        "p-0-fe-all-cache",
        "p-0-fe-1-gpu",
    ]
    leader = expected_claims.pod_claim_names(full_featured, cliques["p-0-sg-2-ld"], 0)
    assert leader == ["p-all-fabric", "p-0-cache", "p-0-sg-all-link"]
    assert expected_claims.pod_claim_names(full_featured, cliques["p-0-sg-2-wk"], 1) == [*leader, "p-0-sg-2-gpu"]


def test_constraints_of_the_worked_example():
    workload = workloads.load("packed")
    levels = {"zone": "Z", "rack": "R", "host": "H"}
    placements = expected_topology.placements(workload, expected(workload), levels)
    assert placements["p-0"].gang == {"required": "Z"}
    assert placements["p-0"].bundles == [(["p-0-sg-0-ld", "p-0-sg-0-wk"], {"required": "R"})]
    assert placements["p-0"].groups == {"p-0-sg-0-wk": {"preferred": "H"}}
    assert (placements["p-0-sg-0"].gang, placements["p-0-sg-0"].bundles) == ({"required": "R"}, [])
    assert placements["p-0-loose-0"].gang == {"required": "Z"}, "a group without a constraint has that of the set"
    assert not any(
        placement.any for placement in expected_topology.placements(workload, expected(workload), {}).values()
    )


def test_malformed_constraints_of_a_gang_are_ignored():
    assert not expected_topology.observed_constraints({"spec": {"podgroups": "nonsense", "topologyConstraint": []}}).any
    gang = {"spec": {"topologyConstraintGroupConfigs": [{"podGroupNames": ["b", "a"]}]}}
    assert not expected_topology.observed_constraints(gang).any, "an entry without a constraint says nothing"


def test_the_nearest_level_decides_about_linked_gpus():
    workload = workloads.load("linked")
    assert set(expected_domains.domains(workload)) == {"p-0-narrow", "p-0-wide", "p-1-narrow", "p-1-wide"}
    cliques = expected(workload).cliques
    assert expected_domains.clique_domain(workload, cliques["p-1-trainer"]) == "p-1-wide"
    assert expected_domains.clique_domain(workload, cliques["p-0-sg-1-near"]) == "p-0-narrow"
    assert expected_domains.clique_domain(workload, cliques["p-0-sg-1-apart"]) == ""
    assert expected_domains.clique_domain(workload, cliques["p-0-plain-0-front"]) == "", "it has no GPUs"
