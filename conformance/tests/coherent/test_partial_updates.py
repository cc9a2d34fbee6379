"""Tests of coherent updates of some components of a set. The other components do not change."""

from __future__ import annotations

from conformance.grove.coherent import shapes
from conformance.testing.scene import Recorded, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.following import expect_unchanged, layouts
from conformance.tests.coherent.scenes import ONE_MEMBER, ONLY_FRONT, ONLY_GROUPS, SetUpdatedFourTimes


@requirement("COHR-040")
def test_a_standalone_clique_alone(run: Recorded[SetUpdatedFourTimes]) -> None:
    """According to the merged text, each step has an anchor; according to the newest text, one anchor holds all
    pods."""
    before = {entry.key for entry in layouts(run, ONLY_FRONT)[0]}
    entries = [entry for entry in layouts(run, ONLY_FRONT)[-1] if entry.cliques]
    run.expect("old entries that hold pods of f", [], [entry.key for entry in entries if entry.key in before])
    run.expect("entries with pods of f that are no anchors", [], [entry.key for entry in entries if not entry.anchor])
    expect_unchanged(run, ONLY_FRONT, "p", "d")


@requirement("COHR-041")
def test_scaling_groups_alone(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The gang that holds the pods of f loses its replicas of scaling groups."""
    run.given(f"{ONLY_GROUPS}: updated")
    expect_unchanged(run, ONLY_GROUPS, "f")
    view = run.at(f"{ONLY_GROUPS}: at rest")
    keys = [entry.key for entry in sets.layout(view, "s") if entry.cliques]
    gangs = sets.gangs_by_key(view, "s")
    run.same(
        "anchors with pods of f", dict.fromkeys(keys, True), {key: shapes.is_anchor(gangs.get(key)) for key in keys}
    )


@requirement("COHR-042")
def test_one_clique_of_a_scaling_group(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The group p has two cliques, one of which is changed."""
    run.given(f"{ONE_MEMBER}: updated")
    before, after = run.at(f"{ONE_MEMBER}: change"), run.at(f"{ONE_MEMBER}: at rest")
    remaining = (
        sets.clique_by_uid(sets.pods_of_templates(before, "s", "pl", "pw")).keys()
        & sets.clique_by_uid(sets.pods_of_set(after, "s")).keys()
    )
    run.expect("pods of p that were kept", [], sorted(remaining))
    expect_unchanged(run, ONE_MEMBER, "f", "d")
