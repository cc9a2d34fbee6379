"""Coherent updates of sets of other shapes: without groups, without standalone cliques, with nothing to spare."""

from __future__ import annotations

import json

from conformance.grove.coherent import change, plan, shapes
from conformance.grove.coherent.change import Change
from conformance.grove.coherent.model import shape
from conformance.grove.fields import at, items, text
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import CONSTRAINED, ORDERED, SINGLE, SetsOfEveryShape


def shaped(run: Recorded[SetsOfEveryShape], each: str) -> list[Change]:
    """The set of one shape was updated by the plan; returns what the writes of its map did."""
    run.given("deployed", f"{each}: updated")
    found = change.changes(sets.layouts(run.between("change", "end"), each))
    wanted = [[str(b) for b in reading] for reading in plan.readings(sets.components(run.scene.workloads[each]))]
    seen = [str(step.batch) for step in found]
    run.expect(f"{each}: sub-steps", seen if seen in wanted else wanted[0], seen)
    return found


@requirement("COHR-043")
def test_standalone_cliques_only(run: Recorded[SetsOfEveryShape]) -> None:
    """A PodCliqueSet without PodCliqueScalingGroups MUST be updated by the plan."""
    shaped(run, "alone")
    seen = shape(sets.layout(run.at("end"), "alone"))
    # Of the older texts, each step opens an anchor; of the newest, one anchor takes all in (GM-154).
    run.expect("gangs in the end", seen if seen == ["anchor {f2}"] * 3 else ["anchor {f6}"], seen)


@requirement("COHR-044")
def test_scaling_groups_only(run: Recorded[SetsOfEveryShape]) -> None:
    """A PodCliqueSet without standalone PodCliques MUST be updated by the plan, with anchors of replicas only."""
    shaped(run, "grouped")
    view = run.at("end")
    anchors = {entry.key for entry in sets.layout(view, "grouped") if len(entry.groups) == 2}
    marked = {key for key, gang in sets.gangs(view, "grouped").items() if shapes.is_anchor(gang)}
    run.expect("anchors, and gangs that are marked", (2, sorted(anchors)), (len(anchors), sorted(marked)))


@requirement("COHR-045")
def test_everything_is_the_minimum(run: Recorded[SetsOfEveryShape]) -> None:
    """A PodCliqueSet without anything above the minimum MUST be updated in one step, with one anchor."""
    shaped(run, "whole")
    run.expect("gangs in the end", ["anchor {f2, g[0,1]}"], shape(sets.layout(run.at("end"), "whole")))


@requirement("COHR-046")
def test_what_is_left_follows_after_the_last_step(run: Recorded[SetsOfEveryShape]) -> None:
    """What is left after the last step MUST follow, and Pods MUST join the newest anchor."""
    last = shaped(run, "uneven")[-1]
    anchors = [entry for entry in last.before if entry.anchor and entry.generation == last.after[-1].generation]
    newest = max(anchors, key=lambda entry: entry.key).key if anchors else ""
    run.expect("gangs that pods have joined", [newest], sorted(last.grown))


@requirement("COHR-047")
def test_further_replicas_follow_within_the_budget(run: Recorded[SetsOfEveryShape]) -> None:
    """The further replicas of a step MUST be replaced in sub-steps of maxUnavailable at most."""
    tails = [len(step.tails) for step in shaped(run, "skewed")]
    run.expect("gangs of further replicas by sub-step", [0, 2, 2, 0, 2, 2], tails)


@requirement("COHR-048")
def test_pods_that_start_in_order(run: Recorded[SetsOfEveryShape]) -> None:
    """A PodCliqueSet whose PodCliques start in order MUST be updated by the plan, its Pods waiting for each other."""
    shaped(run, ORDERED)
    waiting = [pod for pod in sets.of_template(run.at("end"), ORDERED, "dm") if items(pod, "spec", "initContainers")]
    run.expect("new pods of d that wait for f", 2, len(waiting))


@requirement("COHR-019")
def test_new_gangs_are_constrained_as_the_old_ones(run: Recorded[SetsOfEveryShape]) -> None:
    """PodGangs of an update MUST have the priority class and constraints of the set, their Pods its scheduler name."""
    run.given("deployed", f"{CONSTRAINED}: updated")
    for step in ("change", "end"):
        found = sets.gangs(run.at(step), CONSTRAINED).values()
        constraints = {json.dumps(at(gang, "spec", "topologyConstraint"), sort_keys=True) for gang in found}
        run.expect(f"{step}: constraints", [json.dumps(run.scene.constraint)], sorted(constraints))
        priorities = {text(gang, "spec", "priorityClassName") for gang in found}
        run.expect(f"{step}: priority", ["system-cluster-critical"], sorted(priorities))
        schedulers = {text(pod, "spec", "schedulerName") for pod in sets.of_set(run.at(step), CONSTRAINED)}
        run.expect(f"{step}: scheduler", [run.scene.scheduler], sorted(schedulers))


@requirement("COHR-046")
def test_a_budget_above_the_minimum(run: Recorded[SetsOfEveryShape]) -> None:
    """What is left after the last step MUST follow, and Pods MUST join the newest anchor."""
    shaped(run, "loose")
    run.expect(
        "gangs in the end", ["anchor {f3, g[0]}", "anchor {f4, g[1]}"], shape(sets.layout(run.at("end"), "loose"))
    )


@requirement("COHR-097")
def test_one_anchor_only(run: Recorded[SetsOfEveryShape]) -> None:
    """With the gang layout SingleAnchor, an update SHOULD open one anchor, and end with the gangs of a first one."""
    run.given("deployed", f"{SINGLE}: updated")
    found = change.changes(sets.layouts(run.between("change", "end"), SINGLE))
    wanted = plan.readings(sets.components(run.scene.workloads[SINGLE]), single_anchor=True)
    texts, seen = [[str(batch) for batch in reading] for reading in wanted], [str(step.batch) for step in found]
    run.expect("sub-steps", seen if seen in texts else texts[0], seen)
    before, after = (shape(sets.layout(run.at(step), SINGLE)) for step in ("change", "end"))
    run.expect("gangs in the end", before, after)


@invariants("INV-011", "INV-012", "INV-017", "INV-019", "INV-023")
def test_invariants(run: Recorded[SetsOfEveryShape], invariant: str) -> None:
    """What MUST hold at every moment of any history."""
    run.invariant()
