"""Tests of the oracle of steps against the specification's worked plans and traces, which are written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.grove.coherent import change, plan, traces
from conformance.grove.coherent.model import Component, Key, broken_partition, total

PLANS = {worked_plan.id: worked_plan for worked_plan in traces.plans()}
TRACES = {trace.name: trace for trace in traces.traces()}


@pytest.mark.parametrize("id", PLANS)
def test_the_oracle_computes_the_worked_plans(id: str) -> None:
    worked_plan = PLANS[id]
    assert [str(batch) for batch in plan.from_totals(worked_plan.components)] == list(worked_plan.batches)


def test_planning_from_the_remainder_differs_if_a_division_leaves_a_remainder() -> None:
    sizes = {"F": (10, 2, 2), "P": (10, 3, 3), "D": (20, 3, 4)}
    components = [Component(Key("clique" if name == "F" else "group", name), *size) for name, size in sizes.items()]
    assert [str(batch) for batch in plan.from_remainder(components)] == [
        "anchor {2 F, 3 D, 3 P}",
        "{1 F, 3 D}",
        "anchor {2 F, 3 D, 3 P}",
        "{1 F, 4 D}",
        "anchor {2 F, 3 D, 3 P}",
        "{2 F, 4 D, 1 P}",
    ]
    assert len(plan.readings(components)) == 2
    assert len(plan.readings([Component(Key("group", "P"), 4, 2, 2)])) == 1


def test_standalone_cliques_alone_may_have_one_anchor() -> None:
    """The latest proposal opens no additional anchor if no scaling group is updated (GM-154)."""
    steps = plan.readings([Component(Key("clique", "F"), 6, 2, 2)])
    assert [[str(batch) for batch in reading] for reading in steps] == [
        ["anchor {2 F}"] * 3,
        ["anchor {2 F}", "{2 F}", "{2 F}"],
    ]


def test_a_component_without_replicas_is_omitted() -> None:
    components = [Component(Key("group", "P"), 0, 1, 1), Component(Key("clique", "F"), 2, 1, 1)]
    assert [str(batch) for batch in plan.from_totals(components)] == ["anchor {1 F}", "anchor {1 F}"]
    assert plan.from_totals(components[:1]) == []


def test_a_component_below_its_minimum_is_updated_in_one_step() -> None:
    components = [Component(Key("clique", "F"), 1, 2, 2), Component(Key("group", "P"), 3, 1, 1)]
    assert [str(batch) for batch in plan.from_totals(components)] == ["anchor {1 F, 1 P}", "{1 P}", "{1 P}"]


def test_a_plan_may_have_a_single_anchor() -> None:
    worked_plan = PLANS["COH-134"]
    batches = plan.readings(worked_plan.components, single_anchor=True)[0]
    assert [batch.opens_anchor for batch in batches] == [True, False, False, False, False]
    assert [dict(batch.counts) for batch in batches] == [
        dict(b.counts) for b in plan.from_totals(worked_plan.components)
    ]


@pytest.mark.parametrize("name", TRACES)
def test_worked_traces_are_permitted_step_by_step(name: str) -> None:
    trace, old_keys, generation = TRACES[name], frozenset[str](), ""
    sizes = {component.key: component.replicas for component in trace.components}
    for write_before, write in zip(trace.writes, trace.writes[1:], strict=False):
        if write.start_generation:
            old_keys, generation = frozenset(entry.key for entry in write_before.layout), write.start_generation
        assert broken_partition(write.layout, sizes) == []
        problems = change.problems(
            change.LayoutChange(write_before.layout, write.layout),
            generation,
            trace.in_scope,
            before=old_keys,
            unavailable=write.unavailable,
        )
        assert problems == []


@pytest.mark.parametrize("name", [name for name, trace in TRACES.items() if trace.whole])
def test_worked_traces_follow_the_plan(name: str) -> None:
    trace = TRACES[name]
    batches = [step.batch for step in change.changes(write.layout for write in trace.writes)]
    assert [str(batch) for batch in batches] == [str(batch) for batch in plan.from_totals(trace.in_scope)]


WRONG_LAYOUTS = {
    "gains members": ["B0*@v0: F3 P[0]", "M1*@v1: F1"],
    "holds 1 of F, whose minimum is 2": ["B0*@v0: F3 P[0,1]", "M1*@v1: F1"],
    "takes {} and adds {2 F": ["B0*@v0: F4 P[0,1]", "M1*@v1: F2 P[0]"],
    "2 anchors are opened": ["M1*@v1: F2 P[0]", "M2*@v1: F2 P[1]"],
    "more than an anchor": ["B0*@v0: F2", "M1*@v1: F2 P[0]", "T1@v1: P[1]"],
    "before the update has opened an anchor": ["B0*@v0: F4 P[0]", "T1@v1: P[1]"],
    "of another generation": ["B0*@v0: F2 P[1]", "M1*@v0: F2 P[0]"],
    "not one replica": ["B0*@v0: F4", "T1@v1: P[0,1]"],
}


@pytest.mark.parametrize("problem", WRONG_LAYOUTS)
def test_wrong_steps_are_reported(problem: str) -> None:
    components = [Component(Key("clique", "F"), 4, 2, 2), Component(Key("group", "P"), 2, 1, 1)]
    layout_before = traces.layout(
        ["B0*@v0: F4 P[0,1]"] if "gains" not in problem else ["B0*@v0: F2 P[0]", "M1*@v1: F2"]
    )
    problems = change.problems(
        change.LayoutChange(layout_before, traces.layout(WRONG_LAYOUTS[problem])), "v1", components, before={"B0"}
    )
    assert problem in "; ".join(problems)


def test_a_batch_above_the_budget_is_reported_unless_its_members_were_unavailable() -> None:
    components = [Component(Key("group", "P"), 4, 1, 1)]
    layout_before = traces.layout(["M1*@v1: P[0]", "B1@v0: P[1]", "B2@v0: P[2]", "B3@v0: P[3]"])
    layout_after = traces.layout(["M1*@v1: P[0]", "T1@v1: P[1]", "T2@v1: P[2]", "B3@v0: P[3]"])
    step = change.LayoutChange(layout_before, layout_after)
    assert change.problems(step, "v1", components) == ["2 of P are replaced at once, and maxUnavailable is 1"]
    assert change.problems(step, "v1", components, unavailable={Key("group", "P"): 2}) == []


def test_entries_may_lose_members_in_a_write_before_others_get_them() -> None:
    components = [Component(Key("clique", "F"), 4, 2, 2), Component(Key("group", "P"), 2, 1, 1)]
    writes = (
        ["B0*@v0: F4 P[0,1]"],
        ["B0*@v0: F2 P[1]"],
        ["B0*@v0: F2 P[1]", "M1*@v1: F2 P[0]"],
        ["M1*@v1: F2 P[0]"],
        ["M1*@v1: F2 P[0]", "M2*@v1: F2 P[1]"],
    )
    batches = [step.batch for step in change.changes(map(traces.layout, writes))]
    assert plan.follows(batches, plan.from_totals(components), components)
    assert not plan.follows(batches[:2], plan.from_totals(components), components)


def test_pods_join_the_newest_anchor_of_the_update() -> None:
    components = [Component(Key("clique", "F"), 5, 2, 2)]
    layout_before = traces.layout(["s-0-900*@v0: F1", "s-0-1000*@v1: F2", "s-0-1100*@v1: F2"])
    wrong_layout = traces.layout(["s-0-1000*@v1: F3", "s-0-1100*@v1: F2"])
    right_layout = traces.layout(["s-0-1000*@v1: F2", "s-0-1100*@v1: F3"])
    assert change.problems(change.LayoutChange(layout_before, right_layout), "v1", components) == []
    problems = change.problems(change.LayoutChange(layout_before, wrong_layout), "v1", components)
    assert problems == ["pods join s-0-1000, and not the newest anchor s-0-1100"]


SIZES = st.tuples(st.integers(1, 6), st.integers(0, 4), st.integers(0, 3))


@st.composite
def sets(draw: st.DrawFn) -> list[Component]:
    components = []
    for number in range(draw(st.integers(1, 4))):
        minimum, extra_replicas, budget = draw(SIZES)
        kind = draw(st.sampled_from(["clique", "group"]))
        key = Key("clique" if kind == "clique" else "group", f"c{number}")
        components.append(Component(key, minimum * draw(st.integers(1, 4)) + extra_replicas, minimum, minimum + budget))
    return components


@given(sets())
def test_every_reading_replaces_all_members_once_and_within_the_budget(components: list[Component]) -> None:
    for batches in plan.readings(components):
        for component in components:
            replaced_counts = [batch.counts.get(component.key, 0) for batch in batches]
            assert sum(replaced_counts) == component.replicas
            assert max(replaced_counts) <= component.unavailable
        anchor_batches = [batch for batch in batches if batch.opens_anchor]
        has_no_groups = not any(component.key.kind == "group" for component in components)
        steps = min(component.replicas // component.minimum for component in components)
        assert len(anchor_batches) in ({1, steps} if has_no_groups else {steps})
        assert all(
            batch.counts == {component.key: component.minimum for component in components} for batch in anchor_batches
        )


def test_the_total_counts_the_members_of_all_entries() -> None:
    layout = traces.layout(["B0*@v0: F2 P[0]", "B1@v0: P[1]"])
    assert total(layout, Key("clique", "F")) == 2 and total(layout, Key("group", "P")) == 2
