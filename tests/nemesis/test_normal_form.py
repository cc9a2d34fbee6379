"""Tests that two runs of a scenario have the same normal form, and that differences are shown."""

from __future__ import annotations

from typing import Any

import orjson

from conformance.history.record import ADDED, Record
from conformance.history.view import View
from conformance.nemesis import names, normal_form


def view(*objects: dict[str, Any]) -> View:
    result = View()
    for seq, (resource, item) in enumerate((entry["resource"], entry["item"]) for entry in objects):
        metadata = item["metadata"]
        record = Record(
            seq=seq, at=0, wall=0, kind=ADDED, resource=resource, namespace=metadata["namespace"],
            name=metadata["name"], uid=metadata["name"], version="1", raw=orjson.dumps(item),
        )  # fmt: skip
        result.apply(record)
    return result


def pod(name: str, namespace: str, index: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {"index": index, "gang": f"{namespace}-g"}}
    item = {
        "metadata": metadata,
        "spec": {"nodeName": f"node-of-{name}"},
        "status": {"startTime": "2026-01-01T00:00:00Z"},
    }
    return {"resource": "pods", "item": {**item, **fields}}


def gang(name: str, namespace: str, pods: list[str]) -> dict[str, Any]:
    return {
        "resource": "podgangs",
        "item": {"metadata": {"name": name, "namespace": namespace}, "spec": {"pods": pods}},
    }


def form(state: View, namespace: str) -> normal_form.Form:
    return normal_form.normal_form(state, namespace)


def test_two_runs_have_the_same_form_whatever_was_generated() -> None:
    first = view(
        pod("s-a-bcdfg", "n1", "0"), pod("s-a-hjklm", "n1", "1"),
        gang("s-0-1700000000000000001", "n1", ["s-a-bcdfg", "s-a-hjklm"]),
    )  # fmt: skip
    second = view(
        pod("s-a-zzzzz", "n2", "0"), pod("s-a-bbbbb", "n2", "1"),
        gang("s-0-1800000000000000009", "n2", ["s-a-bbbbb", "s-a-zzzzz"]),
    )  # fmt: skip
    assert form(first, "n1") == form(second, "n2")
    assert set(form(first, "n1")) == {"pods/s-a-*", "podgangs/s-0-*"}


def test_a_lost_pod_is_shown_as_one_object_less() -> None:
    expected, actual = (
        form(view(pod("s-a-bcdfg", "n", "0"), pod("s-a-hjklm", "n", "1")), "n"),
        form(view(pod("s-a-bcdfg", "n", "0")), "n"),
    )
    lines = normal_form.difference(expected, actual)
    assert lines[0] == "pods/s-a-*: 2 object(s) without the fault, 1 with it"
    assert any(line.startswith("-") and "index" in line for line in lines)


def test_a_changed_value_is_a_line_of_the_diff() -> None:
    expected = form(view(pod("s-a-bcdfg", "n", "0", status={"phase": "Running"})), "n")
    actual = form(view(pod("s-a-bcdfg", "n", "0", status={"phase": "Pending"})), "n")
    assert {"-  phase: Running", "+  phase: Pending"} <= set(normal_form.difference(expected, actual))


def test_what_differs_without_a_fault_says_nothing_about_one() -> None:
    first = form(view(pod("s-a-bcdfg", "n", "0", random=1)), "n")
    second = form(view(pod("s-a-bcdfg", "n", "0", random=2)), "n")
    masked = normal_form.varying([first, second])
    assert masked == {"pods:random"}
    assert normal_form.without(first, masked) == normal_form.without(second, masked)


def test_names_keep_what_people_have_chosen() -> None:
    assert names.stable("s-0-frontend") == "s-0-frontend"
    assert names.stable("s-0-a-bcdfg") == names.stable("s-0-a-597bae26") == "s-0-a-*"
    assert names.stable("grove.io:pcs:kept") == "grove.io:pcs:kept"
    assert names.stable("bind-s-0-a-bcdfg-request") == "bind-s-0-a-*-request"
    assert names.stable("pg-s-0-e886089a-f420-471a-a28f-7017af65b6f9") == "pg-s-0-*"


def test_what_is_masked_does_not_order_the_rest() -> None:
    def form(first: int, second: int) -> normal_form.Form:
        conditions = [{"observed": first, "type": "Ready"}, {"observed": second, "type": "Scheduled"}]
        return normal_form.normal_form(view(pod("s-a-x1", "n", "0", status={"conditions": conditions})), "n")

    masked = normal_form.varying([form(1, 2), form(2, 1)]) | {"pods:status.conditions.observed"}
    assert normal_form.without(form(1, 2), masked) == normal_form.without(form(2, 1), masked)


def test_an_empty_field_is_as_one_that_is_missing() -> None:
    empty = view(pod("s-a-x1", "n", "0", extra={"annotations": {}, "items": []}))
    assert normal_form.normal_form(empty, "n") == normal_form.normal_form(view(pod("s-a-x1", "n", "0", extra={})), "n")
