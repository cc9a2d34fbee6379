"""Tests of the fields of cliques and scaling groups that follow the template."""

from __future__ import annotations

import msgspec

from reference_impl.api.models import AutoScaling, CliqueTemplate, PodClique, PodCliqueScalingGroup, PodCliqueSpec
from reference_impl.api.models import ScalingGroupConfig as Config
from reference_impl.api.models import ScalingGroupSpec as GroupSpec
from reference_impl.plan import template_drift

SPEC = PodCliqueSpec(role_name="w", replicas=3, min_available=2, auto_scaling_config=AutoScaling(max_replicas=4))
TEMPLATE = CliqueTemplate(name="w", spec=SPEC)


def clique(**changes) -> PodClique:
    return PodClique(spec=msgspec.structs.replace(SPEC, **changes))


def test_replicas_and_pod_spec_are_not_corrected():
    assert template_drift.clique_patch(TEMPLATE, clique(replicas=7, pod_spec={"containers": []})) == {}


def test_the_minimum_and_the_role_follow_the_template():
    change = template_drift.clique_patch(TEMPLATE, clique(min_available=1, role_name="x"))
    assert change == {"spec": {"minAvailable": 2, "roleName": "w"}}


def test_the_autoscaling_configuration_follows_the_template_as_a_whole():
    current = clique(auto_scaling_config=AutoScaling(min_replicas=1, max_replicas=9))
    assert template_drift.clique_patch(TEMPLATE, current) == {
        "spec": {"autoScalingConfig": {"minReplicas": None, "maxReplicas": 4}}
    }
    bare = CliqueTemplate(name="w", spec=msgspec.structs.replace(SPEC, auto_scaling_config=None))
    assert template_drift.clique_patch(bare, current) == {"spec": {"autoScalingConfig": None}}


def test_the_minimum_and_members_of_a_group_follow_the_template():
    config = Config(name="g", clique_names=["a", "b"], replicas=2, min_available=1)
    right = GroupSpec(replicas=5, min_available=1, clique_names=["a", "b"])
    assert template_drift.group_patch(config, PodCliqueScalingGroup(spec=right)) == {}
    wrong = GroupSpec(replicas=5, min_available=2, clique_names=["b"])
    change = {"spec": {"minAvailable": 1, "cliqueNames": ["a", "b"]}}
    assert template_drift.group_patch(config, PodCliqueScalingGroup(spec=wrong)) == change
