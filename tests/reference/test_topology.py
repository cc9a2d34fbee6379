"""Tests of topology constraints in gangs, of linked GPUs, and of the metadata that gangs take over from their set."""

from __future__ import annotations

import msgspec
import pytest

from kube.objects import ObjectMeta
from reference_impl.api.kubernetes import ComputeDomain
from reference_impl.api.models import (
    ClusterTopologyBinding,
    Pack,
    PodGang,
    TopologyBindingSpec,
    TopologyConstraint,
    TopologyLevel,
)
from reference_impl.plan import children, desired, gangs, labels, mnnvl, topology
from reference_impl.plan.lines import NAMES
from tests.reference.examples import disaggregated, placement, standalone

BINDING = ClusterTopologyBinding(
    spec=TopologyBindingSpec(levels=[TopologyLevel(domain=d, key=f"k/{d}") for d in ("zone", "rack", "host")])
)


@pytest.fixture
def pcs():
    result = disaggregated()
    template = result.spec.template
    template.topology_constraint = TopologyConstraint(topology_name="t", pack=Pack(required="zone"))
    template.pod_clique_scaling_groups[0].topology_constraint = TopologyConstraint(pack_domain="rack")
    template.cliques[2].topology_constraint = TopologyConstraint(pack=Pack(preferred="host"))
    return result


def plan(pcs, binding=BINDING, enabled=True):
    constraints = topology.set_topology(pcs, enabled, binding)
    return {gang.name: gang for gang in gangs.planned_gangs(pcs, 0, placement(pcs), NAMES, constraints)}


def packs(constraint):
    return constraint and (constraint.pack_constraint.required, constraint.pack_constraint.preferred)


def test_constraints_become_node_label_keys(pcs):
    base, scaled = plan(pcs)["llm-0"], plan(pcs)["llm-0-workers-0"]
    assert packs(base.topology) == ("k/zone", None)
    assert [(g.name, g.pod_group_names, packs(g.topology_constraint)) for g in base.of_groups] == [
        ("llm-0-workers-0", ["llm-0-workers-0-prefill", "llm-0-workers-0-decode"], ("k/rack", None))
    ]
    assert {name: packs(c) for name, c in base.of_cliques.items()} == {"llm-0-workers-0-decode": (None, "k/host")}
    assert packs(scaled.topology) == ("k/rack", None) and scaled.of_groups == []


def test_a_group_without_a_constraint_has_the_constraint_of_the_set(pcs):
    pcs.spec.template.pod_clique_scaling_groups[0].topology_constraint = None
    assert packs(plan(pcs)["llm-0-workers-0"].topology) == ("k/zone", None)


@pytest.mark.parametrize(("binding", "enabled"), [(None, True), (BINDING, False)])
def test_without_a_binding_or_the_feature_nothing_is_constrained(pcs, binding, enabled):
    for gang in plan(pcs, binding, enabled).values():
        assert not gang.constrained and gang.of_groups == []


def test_an_unknown_domain_is_ignored(pcs):
    fewer_levels = ClusterTopologyBinding(spec=TopologyBindingSpec(levels=BINDING.spec.levels[:1]))
    assert plan(pcs, fewer_levels)["llm-0-workers-0"].topology is None
    condition = topology.condition(pcs, topology.set_topology(pcs, True, fewer_levels), "now")
    assert (condition.status, condition.message) == ("True", "Unavailable topology domains: [host rack]")


@pytest.mark.parametrize(
    ("enabled", "binding", "status", "reason"),
    [
        (False, BINDING, "Unknown", "TopologyAwareSchedulingDisabled"),
        (True, None, "Unknown", "ClusterTopologyNotFound"),
        (True, BINDING, "False", "AllClusterTopologyLevelsAvailable"),
    ],
)
def test_the_condition_reports_the_state_of_the_constraints(pcs, enabled, binding, status, reason):
    condition = topology.condition(pcs, topology.set_topology(pcs, enabled, binding), "now")
    assert (condition.status, condition.reason) == (status, reason)


def test_a_set_without_constraints_has_no_condition_without_the_feature():
    assert topology.condition(disaggregated(), topology.SetTopology(), "now") is None


def gang_of(pcs, planned):
    manifest = gangs.manifest(pcs, planned, "gang", "t")
    manifest["metadata"] |= {"uid": "u-gang", "resourceVersion": "1"}
    return msgspec.convert(manifest, PodGang)


def drift(pcs, planned, current, binding="t"):
    tags = gangs.gang_labels(pcs, "gang", current.metadata.labels)
    return gangs.drift(pcs, planned, current, tags, binding, list)


def test_a_gang_as_planned_needs_no_correction(pcs):
    for planned in plan(pcs).values():
        assert drift(pcs, planned, gang_of(pcs, planned)) == {}


def test_constraints_and_annotation_are_removed_with_the_binding(pcs):
    current = gang_of(pcs, plan(pcs)["llm-0"])
    assert current.metadata.annotations == {labels.TOPOLOGY_NAME: "t"}
    body = drift(pcs, plan(pcs, None)["llm-0"], current)
    assert body["metadata"]["annotations"] == {labels.TOPOLOGY_NAME: None}
    assert body["spec"]["topologyConstraint"] is None and body["spec"]["topologyConstraintGroupConfigs"] is None
    assert all("topologyConstraint" not in group for group in body["spec"]["podgroups"])


def test_gangs_mirror_metadata_without_the_grove_prefix(pcs):
    pcs.metadata.labels = {"team": "red", "grove.io/x": "1", labels.MANAGED_BY: "somebody"}
    pcs.metadata.annotations = {"note": "1", labels.LAST_APPLIED: "{}"}
    planned = plan(pcs)["llm-0"]
    current = gang_of(pcs, planned)
    assert current.metadata.labels["team"] == "red" and "grove.io/x" not in current.metadata.labels
    assert current.metadata.labels[labels.MANAGED_BY] == labels.MANAGER
    assert current.metadata.annotations == {"note": "1", labels.TOPOLOGY_NAME: "t"}
    current.metadata.annotations |= {"grove.io/by-hand": "1", "by-hand": "1"}
    assert "by-hand" not in drift(pcs, planned, current).get("metadata", {}).get("annotations", {})


def linked(**annotations):
    pcs = disaggregated()
    for template in pcs.spec.template.cliques[1:]:
        template.spec.pod_spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "2"}}
    pcs.metadata.annotations = {labels.MNNVL_GROUP: annotations["of_set"]} if "of_set" in annotations else None
    if "of_group" in annotations:
        pcs.spec.template.pod_clique_scaling_groups[0].annotations = {labels.MNNVL_GROUP: annotations["of_group"]}
    if "of_clique" in annotations:
        pcs.spec.template.cliques[1].annotations = {labels.MNNVL_GROUP: annotations["of_clique"]}
    return pcs


def test_the_nearest_level_names_the_group_even_if_it_is_none():
    assert mnnvl.groups(linked()) == []
    assert mnnvl.groups(linked(of_set="g")) == ["g"]
    assert mnnvl.groups(linked(of_set="g", of_group="none")) == []
    assert mnnvl.groups(linked(of_set="g", of_group="none", of_clique="h")) == ["h"]


def test_only_containers_with_gpus_get_a_channel():
    pcs = linked(of_set="g")
    router, prefill = pcs.spec.template.cliques[:2]
    plain = standalone(pcs, 0, router, channels=True)["spec"]["podSpec"]
    assert "resourceClaims" not in plain
    config = children.group_configs(pcs)[0]
    spec = mnnvl.with_group_channel(
        {**prefill.spec.pod_spec, "initContainers": [{"name": "i"}]}, pcs, prefill, config, 0
    )
    assert spec["resourceClaims"] == [{"name": "mnnvl-claim", "resourceClaimTemplateName": "llm-0-g"}]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "mnnvl-claim"}]
    assert spec["initContainers"] == [{"name": "i"}]
    assert mnnvl.with_group_channel(spec, pcs, prefill, config, 0) == spec


def test_there_are_no_channels_without_domains():
    pcs = linked(of_set="g")
    pcs.spec.template.cliques[0].spec.pod_spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    router = pcs.spec.template.cliques[0]
    assert "resourceClaims" not in standalone(pcs, 0, router)["spec"]["podSpec"]
    assert "resourceClaims" in standalone(pcs, 0, router, channels=True)["spec"]["podSpec"]


def test_domains_of_the_former_naming_scheme_are_kept_with_their_replica():
    pcs = linked(of_set="g")
    existing = [
        ComputeDomain(metadata=ObjectMeta(name=name)) for name in ("llm-0", "llm-0-h", f"llm-{pcs.spec.replicas}")
    ]
    surplus = desired.DesiredSet(pcs, (), (), ()).surplus("ComputeDomain", existing)
    assert [domain.metadata.name for domain in surplus] == ["llm-0-h", f"llm-{pcs.spec.replicas}"]
