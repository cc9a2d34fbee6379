"""Coherent updates of some of the components of a set: the others stay as they are."""

from __future__ import annotations

from conformance.grove.coherent import shapes
from conformance.testing.scene import Recorded, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.following import kept_in_place, layouts
from conformance.tests.coherent.scenes import ONE_MEMBER, ONLY_FRONT, ONLY_GROUPS, SetUpdatedFourTimes


@requirement("COHR-040")
def test_a_standalone_clique_alone(run: Recorded[SetUpdatedFourTimes]) -> None:
    """By the merged text each step has an anchor, by the newest one anchor takes all pods."""
    before = {entry.key for entry in layouts(run, ONLY_FRONT)[0]}
    held = [entry for entry in layouts(run, ONLY_FRONT)[-1] if entry.cliques]
    run.expect("old entries that hold pods of f", [], [entry.key for entry in held if entry.key in before])
    run.expect("entries with pods of f that are no anchors", [], [entry.key for entry in held if not entry.anchor])
    kept_in_place(run, ONLY_FRONT, "p", "d")


@requirement("COHR-041")
def test_scaling_groups_alone(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The gang of the pods of f loses its replicas of scaling groups."""
    run.given(f"{ONLY_GROUPS}: updated")
    kept_in_place(run, ONLY_GROUPS, "f")
    view = run.at(f"{ONLY_GROUPS}: at rest")
    holding = [entry.key for entry in sets.layout(view, "s") if entry.cliques]
    of_gangs = sets.gangs(view, "s")
    run.same(
        "anchors with pods of f", dict.fromkeys(holding, True), {k: shapes.is_anchor(of_gangs.get(k)) for k in holding}
    )


@requirement("COHR-042")
def test_one_clique_of_a_scaling_group(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The group p has two cliques, one of which is changed."""
    run.given(f"{ONE_MEMBER}: updated")
    before, after = run.at(f"{ONE_MEMBER}: change"), run.at(f"{ONE_MEMBER}: at rest")
    kept = sets.uids(sets.of_template(before, "s", "pl", "pw")).keys() & sets.uids(sets.of_set(after, "s")).keys()
    run.expect("pods of p that were kept", [], sorted(kept))
    kept_in_place(run, ONE_MEMBER, "f", "d")
