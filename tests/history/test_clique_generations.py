"""Tests of INV-024 with histories where it holds, where it is violated, and where it cannot be judged."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.invariants.result import RuleResult

CLIQUE = {"clique": "s-0-a", "owner": ("podcliques", "s-0-a")}


def verdict(story) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=["INV-024"])
    return result


def recreate(story) -> None:
    story.delete("podcliques", "s-0-a")
    story.record("podcliques", "s-0-a", {})


@pytest.fixture
def replaced(story):
    """A clique with two bound pods has been deleted and recreated."""
    story.record("podcliques", "s-0-a", {})
    story.pod("old", **CLIQUE, node="n")
    story.pod("also-old", **CLIQUE, node="n")
    assert verdict(story).holds is None
    recreate(story)
    return story


def test_a_pod_that_is_bound_next_to_one_of_the_former_clique_is_wrong(replaced):
    replaced.pod("new", **CLIQUE)
    assert verdict(replaced).holds is None
    replaced.pod("old", **CLIQUE, node="n", terminating=True)
    replaced.pod("new", **CLIQUE, node="n")
    result = verdict(replaced)
    assert result.holds is False and [record.name for record in result.records] == ["also-old", "new"]


def test_terminating_and_deleted_pods_of_the_former_clique_do_not_count(replaced):
    replaced.pod("old", **CLIQUE, node="n", terminating=True)
    replaced.delete("pods", "also-old")
    replaced.pod("new", **CLIQUE, node="n")
    assert verdict(replaced).holds is True


@pytest.mark.parametrize("owned", [True, False], ids=["owned", "labeled"])
def test_pods_without_a_controller_are_judged(story, owned):
    """Pods that refer to their PodClique only by an owner reference without `controller`, or only by a label."""

    def bound(name: str) -> None:
        references = (
            [{**reference, "controller": False} for reference in story.owners(CLIQUE["owner"])] if owned else []
        )
        tags = {labels.CLIQUE: CLIQUE["clique"]}
        story.record(
            "pods", name, {"metadata": {"labels": tags, "ownerReferences": references}, "spec": {"nodeName": "n"}}
        )

    story.record("podcliques", "s-0-a", {})
    bound("old")
    recreate(story)
    bound("new")
    assert verdict(story).holds is False


def test_orphans_of_the_former_clique_do_not_count(replaced):
    for name in ("old", "also-old"):
        replaced.pod(name, clique="s-0-a", owner=None, node="n")
    replaced.pod("new", **CLIQUE, node="n")
    assert verdict(replaced).holds is True
