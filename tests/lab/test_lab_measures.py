"""Tests of the measurements that the laboratory computes from the history of an update."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.grove.coherent import traces
from conformance.grove.coherent.model import Key
from conformance.history.order import server_order
from conformance.lab import measures
from conformance.lab.measures import AvailabilityPoint, UpdateMeasurement
from tests.coherent.trace_simulation import TraceSimulation

TRACES = {trace.name: trace for trace in traces.traces()}
ALL_COMPONENTS = TRACES["all-components"]
FINAL_LAYOUT = ALL_COMPONENTS.writes[-1].layout
P, D = Key("group", "P"), Key("group", "D")


def measure_trace(faults_by_write: dict[int, Callable[[TraceSimulation], object]] | None = None) -> UpdateMeasurement:
    """Return the measurement of the COH-T1 trace. `faults_by_write` maps the index of a write to an action that follows
    the write."""
    simulation = TraceSimulation(ALL_COMPONENTS, faults_by_write=faults_by_write).run()
    ordered_records = server_order(simulation.story.history.records())
    assert ordered_records is not None
    start = next(n for n, record in enumerate(ordered_records) if b"updateStartedAt" in record.raw)
    return measures.UpdateMeter("s", ALL_COMPONENTS.components, "v0").measure(
        ordered_records[:start], ordered_records[start:]
    )


def test_an_update_without_failures_keeps_the_minimum_of_each_component() -> None:
    result = measure_trace()
    assert result.duration > 0
    assert result.evicted == []
    expected_lowest = {
        component.key.name: component.replicas - component.unavailable for component in ALL_COMPONENTS.components
    }
    assert result.lowest_available == expected_lowest
    assert result.points[0].available == {
        component.key.name: component.replicas for component in ALL_COMPONENTS.components
    }


def test_only_units_of_one_version_are_counted() -> None:
    """F5/2 P4/1 D3/1 form two units at rest. The first sub-step leaves three F of the old version, which form only one
    unit."""
    result = measure_trace()
    assert result.points[0].whole_units == result.points[-1].whole_units == 2
    assert result.lowest_whole_units == 1
    assert 1 < result.mean_whole_units < 2


def test_deleted_ready_pods_of_new_gangs_count_as_evicted() -> None:
    """A deleted Ready pod of a new gang counts as evicted, because the operator has no reason to delete such a pod."""

    def delete_ready_pod(simulation: TraceSimulation) -> None:
        simulation.delete_pod(simulation.pod_names("M1", "P-0-p")[0])

    [pod] = measure_trace({2: delete_ready_pod}).evicted
    assert pod.startswith("pod-")


def test_members_are_derived_from_the_names_of_pods() -> None:
    names = ["s-0-F-3", "s-0-P-2-pl-0", "s-0-P-2-pw-0", "other"]
    assert measures.members(names, "s", ALL_COMPONENTS.components) == ["P[2]", "pod 3"]


@pytest.mark.parametrize(("key", "index", "size"), [(P, 0, 2), (P, 1, 1), (P, 2, 2), (D, 2, 1)])
def test_the_size_of_a_gang_counts_the_members_that_share_it(key: Key, index: int, size: int) -> None:
    """The final layout is M1{F2,P0,D0} T1{P1} M2{F3,P2,D1} T2{P3} T3{D2}."""
    assert measures.shared_gang_size(FINAL_LAYOUT, key, index) == size


def test_the_largest_shared_gang_counts_members_above_the_minimum() -> None:
    assert measures.largest_shared_gang(FINAL_LAYOUT, ALL_COMPONENTS.components) == 2
    single_members = traces.layout(["A*@v1: F5 P[0] D[0]", "B@v1: P[1]", "C@v1: D[1]"])
    assert measures.largest_shared_gang(single_members, ALL_COMPONENTS.components) == 1


def test_orphans_lose_all_their_partners() -> None:
    layout_before = traces.layout(["A*@v1: F2 P[0] D[0]", "B*@v1: F2 P[1] D[1,2]", "C@v1: D[3]"])
    layout_after = traces.layout(["A*@v1: F2 P[0] D[0]", "B*@v1: F2 P[1]"])
    assert measures.orphans(layout_before, layout_after) == ["P[1]"]
    other_layout = traces.layout(["A*@v1: F2 P[0] D[0]", "B*@v1: F2 P[1] D[1]"])
    assert measures.orphans(layout_before, other_layout) == []


def test_means_are_weighted_by_time() -> None:
    points = [
        AvailabilityPoint(0.0, {"F": 2}, 2),
        AvailabilityPoint(1.0, {"F": 1}, 0),
        AvailabilityPoint(3.0, {"F": 2}, 1),
    ]
    result = UpdateMeasurement(duration=4.0, points=points)
    assert result.mean_whole_units == pytest.approx((2 * 1 + 0 * 2 + 1 * 1) / 4)
    assert result.lowest_available == {"F": 1}
