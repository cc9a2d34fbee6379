"""Tests that checks of resources judge only their own requirement, and not the subject of another one. Needs no
cluster."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove import expected_domains, labels, workloads
from conformance.grove.expected import expected
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.scene import Step
from conformance.tests.resources import (
    test_autoscalers,
    test_compute_domains,
    test_full_featured_set,
    test_names,
    test_topology,
)
from tests.history.story import Story
from tests.suite.judging import failures


def steps(story: Story, *names: str, unmet: str = "") -> dict[str, Step]:
    return {name: Step.now(name, story.history, unmet) for name in names}


def pack(**levels: str) -> dict[str, Any]:
    return {"packConstraint": {word: test_topology.LEVELS[level] for word, level in levels.items()}}


@pytest.mark.parametrize(
    ("remaining", "failed"),
    (
        ({"of_gang": {"required": "zone"}}, []),
        ({"of_gang": {"required": "zone"}, "of_groups": {"required": "rack"}}, ["on racks"]),
        ({}, ["has lost"]),
    ),
)
def test_only_the_constraints_of_a_lost_level_are_removed(
    remaining: dict[str, dict[str, str]], failed: list[str]
) -> None:
    """RES-060 judges whether constraints are in the right place."""
    story, workload = Story(), workloads.load("packed", {"binding": "b"})
    desired = expected(workload)

    def gangs(of_gang: dict[str, str] | None = None, of_groups: dict[str, str] | None = None) -> None:
        for gang in desired.gangs.values():
            constraint = {"topologyConstraint": pack(**of_gang)} if of_gang else {}
            bundle = {"podGroupNames": [*gang.minimums], "topologyConstraint": pack(**(of_groups or {}))}
            bundles = {"topologyConstraintGroupConfigs": [bundle]} if of_groups else {}
            spec = {"podgroups": [{"name": clique} for clique in gang.minimums], **constraint, **bundles}
            story.record("podgangs", gang.name, {"spec": spec})

    gangs({"required": "zone"}, {"required": "rack"})
    recorded = steps(story, "gangs exist", test_topology.RACK_CONSTRAINT_PRESENT)
    gangs(**remaining)
    recorded |= steps(story, test_topology.RACK_REMOVED)
    violations = failures(
        test_topology.test_constraints_are_removed_with_their_level, story, recorded, expected=desired
    )
    assert len(violations) == len(desired.gangs) * len(failed)
    assert all(failed[0] in text for text in violations)


@pytest.mark.parametrize(("group", "count"), (("p-0-sg", 0), ("p-0-plain", 1)))
def test_only_scaling_groups_without_an_annotation_must_have_that_of_the_set(group: str, count: int) -> None:
    """Only `group` has no annotation. RES-115 judges whether annotations of a template are copied."""
    story, workload = Story(), workloads.load("linked")
    domains = expected_domains.domains(workload)
    for domain in domains:
        story.record("computedomains", domain, {})
    for name in ("p-0-sg", "p-0-plain", "p-1-sg", "p-1-plain"):
        annotations = {labels.MNNVL: "none" if name.endswith("sg") else "wide"} if name != group else {}
        story.record("podcliquescalinggroups", name, {"metadata": {"annotations": annotations}})
    scene = {"workload": workload, "expected": expected(workload), "domains": domains}
    test = test_compute_domains.test_the_nearest_annotation_says_the_group
    assert len(failures(test, story, steps(story, "nothing moves"), **scene)) == count


@pytest.mark.parametrize(("gang", "count"), (("", 0), ("p-0-other", 0), ("mine", 1)))
def test_labels_of_grove_are_not_taken_from_a_template(gang: str, count: int) -> None:
    """Other requirements judge the PodGang that a Pod names."""
    story, workload = Story(), workloads.load("full-featured")
    story.record("podcliques", "p-0-fe", {"metadata": {"labels": {"example.com/tier": "front"}}})
    story.pod("p-0-fe-0", clique="p-0-fe", gang=gang)
    scene = {"workload": workload, "expected": expected(workload)}
    recorded = steps(story, test_full_featured_set.LABELS_MIRRORED)
    assert (
        len(failures(test_full_featured_set.test_labels_of_templates_are_passed_on, story, recorded, **scene)) == count
    )


@pytest.mark.parametrize(("role", "count"), (("prefill", 0), ("worker", 1)))
def test_a_clique_of_the_right_template_may_lack_labels_defaults_and_pods(role: str, count: int) -> None:
    """RES-023 judges labels of the template, the profile admission judges defaults, and CORE-007 judges pods."""
    story, workload = Story(), workloads.load("namesakes")
    story.record("podcliques", "alike-0-prefill-worker", {"spec": {"roleName": role, "replicas": 2}})
    recorded = steps(story, "all cliques exist", "all pods and Services exist")
    test = test_names.test_a_clique_is_created_from_the_template_of_its_whole_name
    assert len(failures(test, story, recorded, expected=expected(workload))) == count


@pytest.mark.parametrize(("remains", "count"), ((True, 0), (False, 1)))
def test_gangs_that_are_still_needed_are_kept(remains: bool, count: int) -> None:
    """Other requirements judge the contents of these PodGangs."""
    story = Story()
    for gang, cliques in {"a": ["p-0-fe"], "b": ["p-0-sg-1-wk"], "c": ["p-1-fe"], "d": ["p-0-sg-3-ld"]}.items():
        story.record("podgangs", gang, {"spec": {"podgroups": [{"name": clique} for clique in cliques]}})
    recorded = steps(story, "nothing moves after the update")
    for gang in "cd" if remains else "bcd":
        story.delete("podgangs", gang)
    recorded |= steps(story, "gangs of removed replicas are deleted", "nothing moves after the removal")
    assert len(failures(test_autoscalers.test_gangs_of_removed_replicas_are_deleted, story, recorded)) == count


@pytest.mark.parametrize(
    ("test", "premise", "later"),
    (
        (
            test_autoscalers.test_claims_of_removed_replicas_are_deleted,
            "claims of all replicas exist",
            ("claims of removed replicas are deleted", "nothing moves after the removal"),
        ),
        (
            test_compute_domains.test_domains_of_removed_replicas_are_deleted,
            "ComputeDomains exist",
            ("domains of the removed replica are deleted", "domains of the last replica are deleted"),
        ),
    ),
)
def test_an_object_that_was_never_created_does_not_count_as_removed(
    test: Any, premise: str, later: tuple[str, ...]
) -> None:
    story = Story()
    recorded = steps(story, premise, unmet="there are none") | steps(story, *later)
    with pytest.raises(Blocked):
        failures(test, story, recorded, domains={"p-0-wide": None}, second=[])
