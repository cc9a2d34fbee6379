"""Tests that a gang scheduler named `default-scheduler` is the only scheduler with that name."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from conformance.implementation import loading
from conformance.implementation.scheduler_names import SECOND_NAME, kube_scheduler_name

DEFAULT = "default-scheduler"


@pytest.mark.parametrize(
    ("implementation_name", "name", "expected"),
    [
        ("reference", "grove-gang-scheduler", DEFAULT),
        ("reference", DEFAULT, SECOND_NAME),
        ("reference-plain", "grove-gang-scheduler", DEFAULT),
        ("reference-plain", DEFAULT, SECOND_NAME),
        ("kube-scheduler", DEFAULT, DEFAULT),
    ],
)
def test_kube_scheduler_keeps_its_name_unless_another_scheduler_has_it(
    implementation_name: str, name: str, expected: str
) -> None:
    implementation = structs.replace(loading.load(implementation_name), scheduler_name=name)
    assert kube_scheduler_name(implementation, loading.load("reference")) == expected


def test_the_go_operator_is_judged_with_topology_and_multi_node_nvlink(tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").touch()
    implementation = loading.load("grove-operator", {"binary": "/bin/true", "crds": str(tmp_path)})
    assert implementation.features == {"mnnvl", "topology"}
    assert "computedomains.yaml" in [path.name for path in implementation.manifests("crds")]
    assert kube_scheduler_name(implementation, loading.load("reference")) == SECOND_NAME
