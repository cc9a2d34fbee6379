"""Tests of INV-006 and INV-026. Each rule is tested with histories where it holds, where it is violated, and where it
cannot be judged."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.grove import labels


class Ordered:
    """A set `s` with startup type InOrder and the cliques `a` (minAvailable 2) and `b`, with methods that record its
    pods."""

    def __init__(self, story):
        self.story = story
        cliques = [
            {"name": name, "spec": {"replicas": 3, "minAvailable": minimum, "podSpec": {}}}
            for name, minimum in (("a", 2), ("b", 1))
        ]
        template = {"cliqueStartupType": "CliqueStartupTypeInOrder", "cliques": cliques}
        story.owned("podcliquesets", "s", None, replicas=1, template=template)
        for name in ("s-0-a", "s-0-b"):
            story.owned("podcliques", name, ("podcliquesets", "s"))

    def pod(self, name, ready=False, owned=True, wait=None, **options):
        clique = f"s-0-{name[0]}"
        metadata = {
            "labels": {labels.PART_OF: "s", labels.SET_INDEX: "0", labels.GANG: "s-0", labels.CLIQUE: clique},
            "ownerReferences": self.story.owners(("podcliques", clique)) if owned else [],
        }
        spec = {"initContainers": [wait]} if wait else {}
        status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
        return self.story.record("pods", name, {"metadata": metadata, "spec": spec, "status": status}, **options)

    def verdict(self, rule="INV-026"):
        [result] = invariants.judge(self.story.history, rule_ids=[rule])
        return result


@pytest.fixture
def ordered(story):
    return Ordered(story)


def test_a_pod_that_is_ready_after_the_floor_of_its_parent_is_right(ordered):
    ordered.pod("b1")
    ordered.pod("a1", ready=True)
    ordered.pod("a2", ready=True)
    assert ordered.verdict().holds is None, "nobody with parents is Ready yet"
    ordered.pod("b1", ready=True)
    assert ordered.verdict().holds is True


def test_a_pod_that_is_ready_before_the_floor_is_wrong(ordered):
    ordered.pod("b1")
    ordered.pod("a1", ready=True)
    early = ordered.pod("b1", ready=True)
    ordered.pod("a2", ready=True)
    result = ordered.verdict()
    assert result.holds is False and result.records == (early,)
    assert "s-0-a had 1 of 2 pods Ready" in result.reason


def test_one_ready_pod_of_a_parent_is_enough_where_documents_disagree(ordered):
    ordered.pod("b1")
    ordered.pod("a1", ready=True)
    ordered.pod("b1", ready=True)
    assert (ordered.verdict("INV-006").holds, ordered.verdict("INV-026").holds) == (True, False)


def test_a_pod_that_is_ready_before_any_of_its_parent_is_wrong(ordered):
    ordered.pod("b1")
    early = ordered.pod("b1", ready=True)
    ordered.pod("a1", ready=True)
    result = ordered.verdict("INV-006")
    assert result.holds is False and result.records == (early,)
    assert "s-0-a had 0 of 1 pods Ready" in result.reason


def test_a_wait_that_is_over_stays_over(ordered):
    ordered.pod("b1")
    for name in ("a1", "a2"):
        ordered.pod(name, ready=True)
    ordered.pod("a1")
    ordered.story.delete("pods", "a2")
    ordered.pod("b1", ready=True)
    assert ordered.verdict().holds is True


def test_a_pod_that_is_created_later_need_not_wait_again(ordered):
    """Whether a replacement waits is covered by START-014."""
    ordered.pod("b1")
    for name in ("a1", "a2"):
        ordered.pod(name, ready=True)
    ordered.pod("a1")
    ordered.pod("b2")
    ordered.pod("b2", ready=True)
    assert ordered.verdict().holds is True


def test_a_clique_whose_pods_are_created_later_has_to_wait(ordered):
    for name in ("a1", "a2"):
        ordered.pod(name, ready=True)
    ordered.pod("a1")
    ordered.pod("b1")
    ordered.pod("b1", ready=True)
    assert ordered.verdict().holds is False


def test_parent_pods_that_were_ready_one_after_another_do_not_reach_the_minimum(ordered):
    ordered.pod("b1")
    ordered.pod("a1", ready=True)
    ordered.pod("a1")
    ordered.pod("a2", ready=True)
    ordered.pod("b1", ready=True)
    assert ordered.verdict().holds is False


@pytest.mark.parametrize(("args", "holds"), ((["--after=s-0-a"], None), (["--podcliques=s-0-a:1"], False)))
def test_only_waits_that_the_fake_kubelet_simulates_are_judged(ordered, args, holds):
    """The fake kubelet ends an init container of another form at once."""
    ordered.pod("b1", wait={"name": "wait", "args": args})
    ordered.pod("b1", ready=True, wait={"name": "wait", "args": args})
    assert [ordered.verdict(rule).holds for rule in ("INV-006", "INV-026")] == [holds, holds]


def test_pods_without_a_controller_are_found_by_their_label(ordered):
    """Whether pods have a controller is covered by CORE-045."""
    ordered.pod("b1")
    ordered.pod("a1", ready=True, owned=False)
    ordered.pod("b1", ready=True)
    assert ordered.verdict("INV-006").holds is True
    ordered.pod("b2", owned=False)
    ordered.pod("b2", ready=True, owned=False)
    assert ordered.verdict("INV-026").holds is False


def test_a_pod_that_a_list_first_shows_as_ready_is_not_judged(ordered):
    ordered.pod("b1", ready=True, listed=True)
    assert ordered.verdict().holds is None


def test_a_pod_that_is_ready_when_it_is_created_is_judged(ordered):
    ordered.pod("b1", ready=True)
    assert ordered.verdict().holds is False
