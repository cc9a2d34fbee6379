"""Tests of the rules about the creation of objects (CORE-007, CORE-036, GANG-005, GANG-023, GANG-024, INV-025,
TERM-012). Each rule is tested with histories where it holds, where it is violated, and where it cannot be judged."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.history.record import DELETED
from conformance.invariants.creations import STALE
from conformance.invariants.result import RuleResult

A = {"gang": "s-0", "clique": "s-0-a"}
SET, CLIQUE = ("podcliquesets", "s"), ("podcliques", "s-0-a")


def verdict(story, id: str) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=[id])
    return result


# -- GANG-024 -------------------------------------------------------------------------------------------------------


def test_a_pod_that_is_created_after_its_gang_is_right(story):
    story.gang("s-0", {"s-0-a": (1, [])})
    story.pod("a1", **A, gated=True)
    assert verdict(story, "GANG-024").holds is True


def test_a_pod_that_is_created_before_its_gang_is_wrong_in_any_history(story):
    story.gang("s-0", {"s-0-a": (1, [])})
    story.pod("a1", **A, gated=True)
    early = story.pod("b1", gang="s-1", clique="s-1-a", gated=True)
    story.gang("s-1", {"s-1-a": (1, [])})
    result = verdict(story, "GANG-024")
    assert result.holds is False
    assert result.records == (early,)
    assert result.reason == "pod b1 was created while its gang s-1 did not exist"


def test_the_order_of_the_server_counts_for_gangs_and_pods(story):
    story.pod("a1", **A, gated=True, revision=9)
    story.gang("s-0", {"s-0-a": (1, [])}, revision=5)
    assert verdict(story, "GANG-024").holds is True


@pytest.mark.parametrize(("after", "holds"), [(STALE - 1, True), (STALE + 1, False)])
def test_a_gang_that_was_just_deleted_counts_for_a_while(story, after, holds):
    story.gang("s-0", {"s-0-a": (1, [])})
    story.delete("podgangs", "s-0")
    story.pod("a1", **A, gated=True, after=after)
    assert verdict(story, "GANG-024").holds is holds


def test_pods_of_any_age_and_pods_without_a_gang_are_not_judged(story):
    story.pod("a1", **A, gated=True, listed=True)
    story.pod("a1", **A)
    story.pod("other")
    assert verdict(story, "GANG-024").holds is None


def test_objects_of_another_operator_are_not_judged(story):
    """The other operator is the version from which the judged one takes over, or to which it is rolled back."""
    start = story.log.last_seq()
    story.pod("a1", **A, gated=True)
    until = story.log.last_seq()
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a2", **A, gated=True)

    def verdict_without(*periods: tuple[int, int | None]) -> bool | None:
        [result] = invariants.judge(story.history, rule_ids=["GANG-024"], foreign_spans=periods)
        return result.holds

    assert verdict_without() is False
    assert verdict_without((start, until)) is True
    assert verdict_without((start, None)) is True
    assert verdict_without((until, None)) is False


# -- GANG-005 -------------------------------------------------------------------------------------------------------


def test_a_pod_is_created_with_the_gate(story):
    story.pod("stranger")
    story.pod("old", **A, listed=True)
    assert verdict(story, "GANG-005").holds is None
    story.pod("a1", **A, gated=True)
    story.pod("a1", **A)
    assert verdict(story, "GANG-005").holds is True
    story.pod("a2", **A)
    assert verdict(story, "GANG-005").reason == "pod a2 was created without the gate"


# -- GANG-023 -------------------------------------------------------------------------------------------------------


def test_a_gang_refers_to_pods_that_exist_or_have_existed(story):
    story.gang("s-0", {"s-0-a": (1, [])})
    assert verdict(story, "GANG-023").holds is None
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.delete("pods", "a1")
    story.gang("s-0", {"s-0-a": (2, ["a1"])})
    assert verdict(story, "GANG-023").holds is True


def test_a_gang_that_refers_to_a_pod_that_was_not_created_is_wrong(story):
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a1", **A, gated=True)
    assert verdict(story, "GANG-023").reason == "gang s-0 refers to pods that have not been created: a1"


# -- INV-025 --------------------------------------------------------------------------------------------------------


def record_indexed_pod(story, name: str, index: int, owner: tuple[str, str] = CLIQUE, **options) -> None:
    story.pod(name, **A, owner=owner, host=f"{owner[1]}-{index}", **options)


@pytest.fixture
def clique(story):
    story.owned(*SET, None)
    story.owned(*CLIQUE, SET)
    return story


def test_two_active_pods_of_a_clique_with_one_index_are_wrong(clique):
    assert verdict(clique, "INV-025").holds is None
    record_indexed_pod(clique, "a1", 0)
    record_indexed_pod(clique, "a2", 1)
    assert verdict(clique, "INV-025").holds is True
    record_indexed_pod(clique, "a3", 1)
    assert verdict(clique, "INV-025").reason == "pods a2 and a3 both have the index 1"


def test_pods_that_are_owned_and_not_controlled_have_one_index_each(clique):
    controlled = clique.owners
    clique.owners = lambda owner: [{**reference, "controller": False} for reference in controlled(owner)]
    record_indexed_pod(clique, "a1", 0)
    record_indexed_pod(clique, "a2", 0)
    assert verdict(clique, "INV-025").holds is False


@pytest.mark.parametrize("previous", [{"terminating": True}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_a_pod_that_terminates_or_has_ended_leaves_its_index_to_another(clique, previous):
    record_indexed_pod(clique, "a1", 0)
    record_indexed_pod(clique, "a1", 0, **previous)
    record_indexed_pod(clique, "a2", 0)
    clique.delete("pods", "a2")
    record_indexed_pod(clique, "a3", 0)
    assert verdict(clique, "INV-025").holds is True


def test_a_recreated_clique_has_its_own_indices(clique):
    record_indexed_pod(clique, "a1", 0)
    clique.delete(*CLIQUE)
    clique.owned(*CLIQUE, SET)
    record_indexed_pod(clique, "a2", 0)
    assert verdict(clique, "INV-025").holds is True


# -- CORE-036 and CORE-007 ------------------------------------------------------------------------------------------


def test_cliques_and_groups_are_created_with_their_finalizer(story):
    tags = {labels.MANAGED_BY: labels.OPERATOR}
    story.record("podcliques", "of-a-stranger", {})
    assert verdict(story, "CORE-036").holds is None
    story.record(*CLIQUE, {"metadata": {"labels": tags, "finalizers": [labels.CLIQUE_FINALIZER]}})
    story.record(*CLIQUE, {"metadata": {"labels": tags}})  # removed later, when it is deleted
    assert verdict(story, "CORE-036").holds is True
    story.record("podcliquescalinggroups", "s-0-g", {"metadata": {"labels": tags}})
    assert "podcliquescalinggroups/s-0-g was created without the finalizer" in verdict(story, "CORE-036").reason


def judged_names(story, config: dict[str, bool] | None, name: str, host: str, subdomain: str) -> bool | None:
    """Return the verdict on a pod with these names, of a set with this headlessServiceConfig."""
    story.record(*SET, {"spec": {"template": {"headlessServiceConfig": config}}})
    assert verdict(story, "CORE-007").holds is None
    tags = {labels.PART_OF: "s", labels.SET_INDEX: "0", labels.CLIQUE: "s-0-a"}
    story.owned(*CLIQUE, SET)
    metadata = {"labels": tags, "ownerReferences": story.owners(CLIQUE)}
    story.record("pods", name, {"metadata": metadata, "spec": {"hostname": host, "subdomain": subdomain}})
    return verdict(story, "CORE-007").holds


@pytest.mark.parametrize(
    ("name", "host", "subdomain", "holds"),
    [
        ("s-0-a-x7k2m", "s-0-a-1", "s-0", True),
        ("a-x7k2m", "s-0-a-1", "s-0", False),
        ("s-0-a-x7k2m", "s-0-b-1", "s-0", False),
        ("s-0-a-x7k2m", "s-0-a", "s-0", False),
        ("s-0-a-x7k2m", "s-0-a-1", "s", False),
    ],
)
def test_a_pod_has_the_names_of_its_clique_and_index(story, name, host, subdomain, holds):
    assert judged_names(story, {}, name, host, subdomain) is holds


@pytest.mark.parametrize(("host", "holds"), [("s-0-a-1", True), ("s-0-a", False)])
def test_a_pod_of_a_set_that_asks_for_no_service_needs_no_subdomain(story, host, holds):
    assert judged_names(story, None, "s-0-a-x7k2m", host, "") is holds


# -- TERM-012 -------------------------------------------------------------------------------------------------------


def record_set(story, replicas: int) -> None:
    cliques = [{"name": "a", "spec": {"replicas": replicas}}, {"name": "w", "spec": {"replicas": 3}}]
    story.record(*SET, {"spec": {"template": {"cliques": cliques}}})


def record_clique(story, replicas: int, **options) -> None:
    tags = {labels.PART_OF: "s", labels.SET_INDEX: "0"}
    story.record(*CLIQUE, {"metadata": {"labels": tags}, "spec": {"replicas": replicas}}, **options)


@pytest.mark.parametrize(
    ("template", "scaled", "recreated", "holds"),
    [
        ([2], 2, 2, True),
        ([2], 5, 2, True),  # as in the template
        ([2], 5, 5, True),  # as it was scaled
        ([2, 4], 2, 4, True),  # as in the template after a change
        ([0], 1, 1, True),  # the default
        ([2, 4], 4, 2, True),  # as in the template before a change that the operator has not seen
        ([2], 2, 0, False),
        ([2], 2, 3, False),
    ],
)
def test_a_recreated_clique_has_a_size_that_was_requested(story, template, scaled, recreated, holds):
    for replicas in template:
        record_set(story, replicas)
    record_clique(story, template[0])
    record_clique(story, scaled)
    assert verdict(story, "TERM-012").holds is None
    record_clique(story, scaled, kind=DELETED)
    record_clique(story, recreated)
    result = verdict(story, "TERM-012")
    assert result.holds is holds
    assert holds or f"clique s-0-a was recreated with {recreated} replicas instead of 2" in result.reason


def test_a_clique_of_a_group_has_the_size_of_its_own_template(story):
    record_set(story, 2)
    tags = {labels.PART_OF: "s", labels.SET_INDEX: "0", labels.GROUP: "s-0-g", labels.GROUP_INDEX: "1"}
    for replicas, kind in ((3, ""), (3, DELETED), (2, "")):
        story.record(
            "podcliques", "s-0-g-1-w", {"metadata": {"labels": tags}, "spec": {"replicas": replicas}}, kind=kind
        )
    assert "s-0-g-1-w was recreated with 2 replicas instead of 3" in verdict(story, "TERM-012").reason
