"""Tests of coherent updates of sets with other shapes: without groups, without standalone cliques, or with no pods
above the minimum."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conformance.grove import labels, pods
from conformance.grove.coherent import change, shapes
from conformance.grove.coherent.change import LayoutChange
from conformance.grove.coherent.model import shape
from conformance.grove.fields import at, label, text
from conformance.suite.scenes import known_waits
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.following import expect_plan
from conformance.tests.coherent.scenes import CONSTRAINED, ORDERED, SINGLE, SetsOfEveryShape


def expect_planned_update(run: Recorded[SetsOfEveryShape], set_name: str) -> list[LayoutChange]:
    """Expect that the set of this shape was updated according to the plan. Return the changes to its map, one per
    write."""
    run.given("deployed", f"{set_name}: updated")
    changes = change.changes(sets.layouts(run.between("change", "end"), set_name))
    expect_plan(run, set_name, changes, sets.components(run.scene.workloads[set_name]))
    return changes


@requirement("COHR-043")
def test_standalone_cliques_only(run: Recorded[SetsOfEveryShape]) -> None:
    """The two texts have different plans for this shape."""
    expect_planned_update(run, "alone")
    observed = shape(sets.layout(run.at("end"), "alone"))
    # In older revisions of GREP-393, each step opens an anchor. In the newest revision, one anchor takes over all pods
    # (GM-154).
    run.expect("gangs in the end", observed if observed == ["anchor {f2}"] * 3 else ["anchor {f6}"], observed)


@requirement("COHR-044", reaches="grouped: updated")
def test_scaling_groups_only(run: Recorded[SetsOfEveryShape]) -> None:
    """Both anchors hold replicas of both groups."""
    expect_planned_update(run, "grouped")
    view = run.at("end")
    anchors = {entry.key for entry in sets.layout(view, "grouped") if len(entry.groups) == 2}
    marked = {key for key, gang in sets.gangs_by_key(view, "grouped").items() if shapes.is_anchor(gang)}
    run.expect("anchors, and gangs that are marked", (2, sorted(anchors)), (len(anchors), sorted(marked)))


@requirement("COHR-045")
def test_everything_is_the_minimum(run: Recorded[SetsOfEveryShape]) -> None:
    """No pods of the old version remain alongside the anchor."""
    expect_planned_update(run, "whole")
    run.expect("gangs in the end", ["anchor {f2, g[0,1]}"], shape(sets.layout(run.at("end"), "whole")))


@requirement("COHR-046")
def test_what_is_left_follows_after_the_last_step(run: Recorded[SetsOfEveryShape]) -> None:
    """One pod of seven remains after two steps of three pods. Entries may be written one by one."""
    changes = expect_planned_update(run, "uneven")
    anchors = [(number, entry.key) for number, step in enumerate(changes) for entry in step.new_anchors]
    last, newest = anchors[-1] if anchors else (-1, "")
    joined = {gang for step in changes[last + 1 :] for gang in step.gains_by_gang}
    run.expect("gangs that pods have joined", [newest], sorted(joined))


@requirement("COHR-047")
def test_further_replicas_follow_within_the_budget(run: Recorded[SetsOfEveryShape]) -> None:
    """In each of the two steps there are four replicas of g above the minimum, and maxUnavailable is two."""
    run.given("deployed", "skewed: updated")
    changes = change.changes(sets.layouts(run.between("change", "end"), "skewed"))
    budgets = {component.key: component.unavailable for component in sets.components(run.scene.workloads["skewed"])}
    batches = [step.batch for step in changes if not step.batch.opens_anchor]
    wide = [str(batch) for batch in batches if any(count > budgets[key] for key, count in batch.counts.items())]
    run.expect("sub-steps that replace more than maxUnavailable", [], wide)


@requirement("COHR-048")
def test_pods_that_start_in_order(run: Recorded[SetsOfEveryShape]) -> None:
    """The scene keeps the new pods of f from becoming Ready for a while. During that time, no pod of d may become
    Ready."""
    run.given(f"{ORDERED}: pods of f wait")
    known_waits.require(sets.pods_of_set(run.at(f"{ORDERED}: f released"), ORDERED), template_names=())
    span = run.between("change", f"{ORDERED}: f released")
    early = {record.name for record in span.records("pods") if _is_new_and_ready(record.object)}
    run.expect("new pods of d that are Ready before one of f", [], sorted(early))
    expect_planned_update(run, ORDERED)


@requirement("COHR-034")
def test_what_an_update_waits_for_is_in_flight(run: Recorded[SetsOfEveryShape]) -> None:
    """The scene keeps a new pod of the first anchor from becoming Ready."""
    run.given("deployed", f"{ORDERED}: pods of f wait")
    waiting = run.at(f"{ORDERED}: f released").get(sets.SETS, ORDERED)
    run.expect("whether gangs are in flight", True, any(shapes.in_flight(waiting).values()))


@requirement("COHR-019")
def test_new_gangs_are_constrained_as_the_old_ones(run: Recorded[SetsOfEveryShape]) -> None:
    """It is not specified whether the constraint of the set also applies to the other replicas of its scaling
    groups."""
    run.given("deployed", f"{CONSTRAINED}: updated")
    gangs = sets.gangs_by_key(run.at("end"), CONSTRAINED).values()
    constraints = {
        json.dumps(at(gang, "spec", "topologyConstraint"), sort_keys=True) for gang in gangs if shapes.is_anchor(gang)
    }
    run.expect("constraints of anchors", [json.dumps(run.scene.constraint)], sorted(constraints))
    priorities = {text(gang, "spec", "priorityClassName") for gang in gangs}
    run.expect("priority classes", ["system-cluster-critical"], sorted(priorities))


@requirement("COHR-046")
def test_a_budget_above_the_minimum(run: Recorded[SetsOfEveryShape]) -> None:
    """maxUnavailable of f is above its minimum."""
    expect_planned_update(run, "loose")
    entries = [entry for entry in sets.layout(run.at("end"), "loose") if not entry.is_empty]
    anchors = sorted(entry.sizes() for entry in entries if entry.anchor)
    run.expect("anchors in the end", ["{f3, g×1}", "{f4, g×1}"], anchors)
    run.expect("other gangs in the end", [], [entry.sizes() for entry in entries if not entry.anchor])


@requirement("COHR-097")
def test_one_anchor_only(run: Recorded[SetsOfEveryShape]) -> None:
    """Without that layout, the same set would have one anchor per step."""
    run.given("deployed", f"{SINGLE}: updated")
    changes = change.changes(sets.layouts(run.between("change", "end"), SINGLE))
    expect_plan(run, SINGLE, changes, sets.components(run.scene.workloads[SINGLE]), single_anchor=True)
    before, after = (shape(sets.layout(run.at(step), SINGLE)) for step in ("change", "end"))
    run.expect("gangs in the end", before, after)


def _is_new_and_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod of the group d of the ordered set is Ready and of the new version."""
    of_d = label(pod, labels.PART_OF) == ORDERED and sets.template_of(pod) == "dm"
    return of_d and sets.image_tag(pod) == "2" and pods.is_ready(pod)


test_invariants = invariants(SetsOfEveryShape, "INV-011", "INV-012", "INV-017", "INV-019", "INV-023")
