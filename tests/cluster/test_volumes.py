"""Tests of the simulated storage driver: which nodes can use a volume, and which claims and volumes it handles."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster.addons import volumes
from conformance.cluster.addons.volumes import (
    PROVISIONER,
    PROVISIONER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    Volume,
    VolumeClaim,
)
from conformance.cluster.nodes import HOSTNAME, ZONE

LABELS = {ZONE: "zone-b", HOSTNAME: "node-1"}
DELAYED_CLASS, IMMEDIATE_CLASS = volumes.storage_classes()


def claim(annotations: dict[str, str] | None = None, **spec: Any) -> VolumeClaim:
    metadata = {
        "name": "data",
        "namespace": "default",
        "uid": "u",
        "annotations": annotations or {PROVISIONER_ANNOTATION: PROVISIONER},
    }
    resources = {"requests": {"storage": "3Gi"}}
    return msgspec.convert(
        {"metadata": metadata, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}, VolumeClaim
    )


def allowed_topologies(*terms: dict[str, list[str]]) -> list[dict[str, Any]]:
    return [{"matchLabelExpressions": [{"key": key, "values": term[key]} for key in term]} for term in terms]


@pytest.mark.parametrize(
    ("storage_class", "domain"),
    [
        (DELAYED_CLASS, {ZONE: "zone-b"}),
        (DELAYED_CLASS | {"parameters": {"topologyKey": HOSTNAME}}, {HOSTNAME: "node-1"}),
        (DELAYED_CLASS | {"parameters": {"topologyKey": "example.com/rack"}}, {}),
        (
            DELAYED_CLASS | {"allowedTopologies": allowed_topologies({HOSTNAME: ["node-0", "node-1"]})},
            {HOSTNAME: "node-1"},
        ),
        (IMMEDIATE_CLASS, {}),
        (
            IMMEDIATE_CLASS
            | {"allowedTopologies": allowed_topologies({ZONE: ["zone-c", "zone-b"]}, {ZONE: ["zone-a"]})},
            {ZONE: "zone-c"},
        ),
    ],
)
def test_the_class_of_a_volume_determines_its_nodes(storage_class: dict[str, Any], domain: dict[str, str]) -> None:
    spec = volumes.volume(claim(), storage_class, LABELS if volumes.waits_for_consumer(storage_class) else {})["spec"]
    terms = spec.get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms", [{"matchExpressions": []}])
    assert {e["key"]: e["values"][0] for e in terms[0]["matchExpressions"]} == domain
    assert spec["capacity"] == {"storage": "3Gi"} and spec["claimRef"]["uid"] == "u"


def test_claims_of_other_drivers_or_with_a_volume_are_ignored() -> None:
    assert (
        claim().needs_volume
        and claim({PROVISIONER_ANNOTATION: PROVISIONER, SELECTED_NODE_ANNOTATION: "n"}).selected_node == "n"
    )
    assert (
        not claim({PROVISIONER_ANNOTATION: "example.com/disks"}).needs_volume
        and not claim({SELECTED_NODE_ANNOTATION: "n"}).needs_volume
    )
    assert not claim(volumeName="pvc-u").needs_volume


@pytest.mark.parametrize(
    ("change", "is_unused"),
    [
        ({}, True),
        ({"status": {"phase": "Bound"}}, False),
        ({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}, False),
        ({"metadata": {"name": "pvc-u"}}, False),
    ],
)
def test_released_volumes_of_the_driver_are_deleted_unless_they_are_retained(
    change: dict[str, Any], is_unused: bool
) -> None:
    created_volume = volumes.volume(claim(), DELAYED_CLASS, LABELS)
    assert msgspec.convert({**created_volume, "status": {"phase": "Released"}} | change, Volume).is_unused is is_unused
