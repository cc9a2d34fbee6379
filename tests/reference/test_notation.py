"""Tests that quantities are written as upstream writes them, and stay unchanged as long as the amount is unchanged."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import hashes, notation, quantities
from tests.reference import hash_vectors
from tests.reference.apiserver import stored

NOTATIONS = [(entry["json"], entry["marshalled"]) for entry in hash_vectors.document()["quantities"] if "dump" in entry]
"""Quantities as sent, and as upstream's operators store them."""
LOST = "1000E"
"""Upstream stores 1, because its library does not support the suffix."""


@pytest.mark.parametrize(("sent", "marshalled"), NOTATIONS)
def test_a_quantity_is_written_as_upstream_writes_it(sent: object, marshalled: str) -> None:
    quantity = quantities.parse_json(sent)
    assert quantity is not None and quantities.format_quantity(quantity) == (sent if sent == LOST else marshalled)


@pytest.mark.parametrize("wrong", ["", "abc", "1.5.2", "1e", "1e3.5", "9" * 5000, "1e9999999999", True, None, [], {}])
def test_invalid_quantities_are_unchanged(wrong: object) -> None:
    assert quantities.parse_json(wrong) is None
    assert list(notation.patch(a_set(cpu=wrong), None)) == []


def a_set(cpu: Any = "1", **pod: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "example.com/gpu~x": "01"}
    containers = [{"name": "main", "image": "i", "resources": {"requests": requests}}]
    clique = {"name": "c", "spec": {"roleName": "c", "replicas": 1, "podSpec": {"containers": containers, **pod}}}
    template = {"cliques": [clique]}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "s", "namespace": "n", "uid": "u"},
        "spec": {"template": template},
    }


CPU = "/spec/template/cliques/0/spec/podSpec/containers/0/resources/requests/cpu"


def changed(pcs: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    return {op["path"]: op.get("value") for op in notation.patch(pcs, before)}


@pytest.mark.parametrize("before", ["500m", "0.5", "0.500", "5e-1", 0.5])
@pytest.mark.parametrize("after", ["500m", "0.5", ".5", "500000u"])
def test_another_notation_of_the_stored_amount_becomes_the_stored_notation(before: object, after: object) -> None:
    assert changed(a_set(after), a_set(before)) == ({} if after == before else {CPU: before})


def test_another_amount_is_written_as_upstream_writes_it() -> None:
    assert changed(a_set("0.25"), a_set("0.5")) == {CPU: "250m"}
    assert changed(a_set("0.25")) == {CPU: "250m"}


def test_every_quantity_of_a_set_is_found() -> None:
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "w", "downwardAPI": {"items": [
        {"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}}]  # fmt: skip
    pcs = a_set("1000m", overhead={"cpu": 0.5}, volumes=volumes)
    target = {"type": "AverageValue", "averageValue": "0.5"}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    template = pcs["spec"]["template"]
    template["cliques"][0]["spec"]["autoScalingConfig"] = {"metrics": metrics}
    template["podCliqueScalingGroups"] = [{"name": "g", "scaleConfig": {"metrics": metrics}}]
    root = "/spec/template/cliques/0/spec"
    metric = "metrics/0/resource/target/averageValue"
    assert changed(pcs) == {
        CPU: "1",
        f"{root}/podSpec/overhead/cpu": "500m",
        f"{root}/podSpec/volumes/0/emptyDir/sizeLimit": "1Gi",
        f"{root}/podSpec/volumes/1/downwardAPI/items/0/resourceFieldRef/divisor": "0",
        f"{root}/autoScalingConfig/{metric}": "500m",
        f"/spec/template/podCliqueScalingGroups/0/scaleConfig/{metric}": "500m",
    }


def test_list_items_are_identified_by_their_names() -> None:
    before = a_set("1e0")
    after = a_set("1000m")
    after["spec"]["template"]["cliques"].insert(0, copy.deepcopy(after["spec"]["template"]["cliques"][0]))
    after["spec"]["template"]["cliques"][0]["name"] = "another"
    second = CPU.replace("cliques/0", "cliques/1")
    assert changed(after, before) == {CPU: "1", second: "1e0"}


def test_a_field_without_a_divisor_is_unchanged() -> None:
    """Upstream stores `divisor: 0`, while an operator without a webhook stores nothing; hashes distinguish the two."""

    def env(**field: Any) -> dict[str, Any]:
        return {"initContainers": [{"name": "i", "env": [{"name": "E", "valueFrom": {"resourceFieldRef": field}}]}]}

    divisor = "/spec/template/cliques/0/spec/podSpec/initContainers/0/env/0/valueFrom/resourceFieldRef/divisor"
    with_divisor, without_divisor = (
        a_set(**env(resource="limits.cpu", divisor="0")),
        a_set(**env(resource="limits.cpu")),
    )
    assert changed(without_divisor) == {divisor: "0"} and changed(with_divisor) == {}
    assert changed(without_divisor, with_divisor) == {divisor: "0"}
    assert changed(without_divisor, without_divisor) == {} and changed(with_divisor, without_divisor) == {divisor: None}


@pytest.mark.parametrize(("sent", "marshalled"), [pair for pair in NOTATIONS if pair[0] != LOST])
def test_a_manifest_that_is_applied_again_after_a_take_over_has_the_stored_hash(sent: object, marshalled: str) -> None:
    """Upstream stores and hashes either its own notation or the notation that was sent (HASH-065, HASH-087)."""
    for text in (marshalled, sent):
        before = stored(a_set())
        _requests(before)["cpu"] = text
        reapplied = stored(a_set(sent), before)
        assert _requests(reapplied)["cpu"] == text
        assert _generation(reapplied) == _generation(before)


def test_a_created_set_has_the_notation_that_upstream_stores() -> None:
    for sent, marshalled in NOTATIONS:
        assert _requests(stored(a_set(sent)))["cpu"] == (sent if sent == LOST else marshalled)


def _requests(pcs: dict[str, Any]) -> dict[str, Any]:
    requests: dict[str, Any] = pcs["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"][
        "requests"
    ]
    return requests


def _generation(pcs: dict[str, Any]) -> str:
    return hashes.window(msgspec.convert(pcs, PodCliqueSet)).generation.written
