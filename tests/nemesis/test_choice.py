"""Tests that plans that cover something new run first."""

from __future__ import annotations

from conformance.nemesis import choice
from conformance.nemesis.catalog import Fault, all_faults
from conformance.nemesis.points import FaultPlan, FaultPoint, PointCounter
from conformance.nemesis.proxy.calls import Call

KILL_FAULT, DELAY_FAULT = Fault("killed", "write", ""), Fault("late", "event", "")


def write_point(name: str, resource: str = "pods", occurrence: int = 1) -> FaultPoint:
    return FaultPoint("create", "write", "create", resource, "", name, occurrence)


def test_each_resource_comes_once_before_a_resource_comes_twice() -> None:
    points = [write_point("a"), write_point("b"), write_point("s", "services"), write_point("c")]
    names = [plan.point.name for plan in choice.plans("x", points, [KILL_FAULT])]
    assert names == ["a", "s", "b", "c"]


def test_a_patch_of_another_field_comes_before_a_second_patch_of_the_same_field() -> None:
    def patch(occurrence: int, *fields: str) -> FaultPoint:
        return FaultPoint("update", "write", "patch", "podcliques", "status", "s-a", occurrence, fields)

    points = [patch(1, "status.a"), patch(2, "status.a"), patch(3, "status.a", "status.b.c"), patch(4, "status.b.c")]
    assert [plan.point.occurrence for plan in choice.plans("x", points, [KILL_FAULT])] == [1, 3, 2, 4]
    assert patch(1) == points[0]  # points are equal even if their writes set different fields


def test_a_fault_applies_only_to_points_of_its_kind() -> None:
    points = [write_point("a"), FaultPoint("create", "event", "ADDED", "pods", "", "a")]
    assert choice.plans("x", points, [KILL_FAULT, DELAY_FAULT]) == [
        FaultPlan("x", "killed", points[0]),
        FaultPlan("x", "late", points[1]),
    ]


def test_a_point_is_recognized_in_another_namespace_by_its_number() -> None:
    counter = PointCounter("create", "n1")
    first_point, second_point = (counter.write_point(Call("create", "pods", "n1"), "s-a-*") for _ in range(2))
    assert (first_point.occurrence, second_point.occurrence) == (1, 2)
    assert PointCounter("create", "n2").write_point(Call("create", "pods", "n2"), "s-a-*") == first_point


def test_every_fault_has_a_name_a_text_and_a_kind_of_point() -> None:
    faults = {fault.name: fault for fault in all_faults()}
    assert {"killed-before", "killed-after", "lost-answer", "conflict", "late"} <= set(faults)
    assert {fault.at for fault in faults.values()} == {"write", "event"} and all(
        fault.text for fault in faults.values()
    )
