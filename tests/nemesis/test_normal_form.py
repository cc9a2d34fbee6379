"""Tests that two runs of a scenario have the same normal form, and that differences between runs are shown."""

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


def normal_form_of(state: View, namespace: str) -> normal_form.Form:
    return normal_form.normal_form(state, namespace)


def test_two_runs_have_the_same_form_despite_generated_names() -> None:
    first_run = view(
        pod("s-a-bcdfg", "n1", "0"), pod("s-a-hjklm", "n1", "1"),
        gang("s-0-1700000000000000001", "n1", ["s-a-bcdfg", "s-a-hjklm"]),
    )  # fmt: skip
    second_run = view(
        pod("s-a-zzzzz", "n2", "0"), pod("s-a-bbbbb", "n2", "1"),
        gang("s-0-1800000000000000009", "n2", ["s-a-bbbbb", "s-a-zzzzz"]),
    )  # fmt: skip
    assert normal_form_of(first_run, "n1") == normal_form_of(second_run, "n2")
    assert set(normal_form_of(first_run, "n1")) == {"pods/s-a-*", "podgangs/s-0-*"}


def test_a_lost_pod_is_shown_as_a_missing_object() -> None:
    expected_form, actual_form = (
        normal_form_of(view(pod("s-a-bcdfg", "n", "0"), pod("s-a-hjklm", "n", "1")), "n"),
        normal_form_of(view(pod("s-a-bcdfg", "n", "0")), "n"),
    )
    lines = normal_form.difference(expected_form, actual_form)
    assert lines[0] == "pods/s-a-*: 2 object(s) without the fault, 1 with it"
    assert any(line.startswith("-") and "index" in line for line in lines)


def test_a_changed_value_is_a_line_of_the_diff() -> None:
    expected_form = normal_form_of(view(pod("s-a-bcdfg", "n", "0", status={"phase": "Running"})), "n")
    actual_form = normal_form_of(view(pod("s-a-bcdfg", "n", "0", status={"phase": "Pending"})), "n")
    assert {"-  phase: Running", "+  phase: Pending"} <= set(normal_form.difference(expected_form, actual_form))


def test_differences_between_faultless_runs_are_masked() -> None:
    first_form = normal_form_of(view(pod("s-a-bcdfg", "n", "0", random=1)), "n")
    second_form = normal_form_of(view(pod("s-a-bcdfg", "n", "0", random=2)), "n")
    masked_fields = normal_form.varying_paths([first_form, second_form])
    assert masked_fields == {"pods:random"}
    assert normal_form.without_paths(first_form, masked_fields) == normal_form.without_paths(second_form, masked_fields)


def test_parts_of_names_that_users_have_chosen_are_kept() -> None:
    assert names.stable_name("s-0-frontend") == "s-0-frontend"
    assert names.stable_name("s-0-a-bcdfg") == names.stable_name("s-0-a-597bae26") == "s-0-a-*"
    assert names.stable_name("grove.io:pcs:kept") == "grove.io:pcs:kept"
    assert names.stable_name("bind-s-0-a-bcdfg-request") == "bind-s-0-a-*-request"
    assert names.stable_name("pg-s-0-e886089a-f420-471a-a28f-7017af65b6f9") == "pg-s-0-*"


def test_masked_fields_do_not_affect_the_order() -> None:
    def normal_form_of(first: int, second: int) -> normal_form.Form:
        conditions = [{"observed": first, "type": "Ready"}, {"observed": second, "type": "Scheduled"}]
        return normal_form.normal_form(view(pod("s-a-x1", "n", "0", status={"conditions": conditions})), "n")

    masked_fields = normal_form.varying_paths([normal_form_of(1, 2), normal_form_of(2, 1)]) | {
        "pods:status.conditions.observed"
    }
    assert normal_form.without_paths(normal_form_of(1, 2), masked_fields) == normal_form.without_paths(
        normal_form_of(2, 1), masked_fields
    )


def test_an_empty_field_equals_a_missing_field() -> None:
    empty_fields = view(pod("s-a-x1", "n", "0", extra={"annotations": {}, "items": []}))
    assert normal_form.normal_form(empty_fields, "n") == normal_form.normal_form(
        view(pod("s-a-x1", "n", "0", extra={})), "n"
    )
