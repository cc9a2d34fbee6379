"""Tests that plans run in an order that covers something new first."""

from __future__ import annotations

from conformance.nemesis import choice
from conformance.nemesis.catalog import Fault, all_faults
from conformance.nemesis.points import FaultPlan, FaultPoint, PointCounter
from conformance.nemesis.proxy.calls import Call

KILLED, DELAYED = Fault("killed", "", "write", True, ""), Fault("late", "", "event", True, "")


def write(name: str, resource: str = "pods", occurrence: int = 1) -> FaultPoint:
    return FaultPoint("create", "write", "create", resource, "", name, occurrence)


def test_each_resource_comes_once_before_any_comes_twice() -> None:
    points = [write("a"), write("b"), write("s", "services"), write("c")]
    names = [plan.point.name for plan in choice.plans("x", points, [KILLED])]
    assert names == ["a", "s", "b", "c"]


def test_a_patch_that_sets_another_field_comes_before_any_comes_twice() -> None:
    def patch(occurrence: int, *fields: str) -> FaultPoint:
        return FaultPoint("update", "write", "patch", "podcliques", "status", "s-a", occurrence, fields)

    points = [patch(1, "status.a"), patch(2, "status.a"), patch(3, "status.a", "status.b.c"), patch(4, "status.b.c")]
    assert [plan.point.occurrence for plan in choice.plans("x", points, [KILLED])] == [1, 3, 2, 4]
    assert patch(1) == points[0]  # whatever fields the write sets in a run


def test_a_fault_strikes_only_where_it_can() -> None:
    points = [write("a"), FaultPoint("create", "event", "ADDED", "pods", "", "a")]
    assert choice.plans("x", points, [KILLED, DELAYED]) == [
        FaultPlan("x", "killed", points[0]),
        FaultPlan("x", "late", points[1]),
    ]


def test_a_point_is_found_again_in_another_namespace_and_by_its_number() -> None:
    counting = PointCounter("create", "n1")
    first, second = (counting.of_write(Call("create", "pods", "n1"), "s-a-*") for _ in range(2))
    assert (first.occurrence, second.occurrence) == (1, 2)
    assert PointCounter("create", "n2").of_write(Call("create", "pods", "n2"), "s-a-*") == first


def test_every_fault_has_a_name_a_text_and_a_place() -> None:
    faults = {fault.name: fault for fault in all_faults()}
    assert {"killed-before", "killed-after", "lost-answer", "conflict", "late"} <= set(faults)
    assert {fault.at for fault in faults.values()} == {"write", "event"} and all(
        fault.text for fault in faults.values()
    )
