"""Tests that the features of coherent updates are read from CRDs, and decide how an implementation is judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance import data
from conformance.errors import UsageError
from conformance.grove.coherent import served
from conformance.implementation import discovery, loading
from conformance.suite.session.worker import load_implementation
from conformance.suite.settings import RunSettings

BUDGET = {"items": {"properties": {"rollingUpdate": {"properties": {"maxUnavailable": {"type": "integer"}}}}}}


def crd(name: str, spec: Mapping[str, Any], **version: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": dict(spec)}}}}
    versions = [{"name": "v1alpha1", "served": True, "schema": schema, **version}]
    return {"metadata": {"name": name}, "spec": {"versions": versions}}


def sets(*strategies: str, default: str = "", budget: bool = True) -> dict[str, Any]:
    kind = {"type": "string", "enum": list(strategies), **({"default": default} if default else {})}
    parts = {"cliques": BUDGET if budget else {}, "podCliqueScalingGroups": BUDGET if budget else {}}
    return crd(
        served.SETS,
        {"updateStrategy": {"properties": {"type": kind}}, "template": {"properties": parts}},
    )


def maps(key: str, **version: Any) -> dict[str, Any]:
    return crd(served.MAPS, {"entries": {"type": "array", "x-kubernetes-list-map-keys": [key]}}, **version)


def test_the_crds_of_the_merged_proposal_are_recognized() -> None:
    result = served.read([maps("name"), sets("Coherent", "RollingRecreate", "OnDelete", default="Coherent")])
    assert result.features == {"coherent"}
    assert result.findings == {
        "podgangmaps.grove.io": "served, entries by name",
        "updateStrategy.type": "Coherent, RollingRecreate, OnDelete; default Coherent",
        "rollingUpdate.maxUnavailable": "served",
    }


def test_the_crds_of_the_first_proposal_are_recognized() -> None:
    result = served.read([maps("name"), sets("Coherent", default="Coherent", budget=False)])
    assert result.features == {"coherent", "coherent-first-text"}


def test_crds_with_epochs_are_recognized() -> None:
    result = served.read([maps("epoch"), sets("Coherent", "RollingRecreate")])
    assert result.key == "epoch" and result.features == {"coherent"}


@pytest.mark.parametrize(
    "crds",
    [
        [],
        [sets("RollingRecreate", "OnDelete", default="RollingRecreate", budget=False)],
        [sets("Coherent", budget=False)],
        [maps("name"), sets("RollingRecreate")],
        [maps("name", served=False), sets("Coherent")],
    ],
)
def test_incomplete_crds_do_not_serve_the_feature(crds: list[dict[str, Any]]) -> None:
    assert served.read(crds).features == frozenset()


def test_incomplete_crds_are_reported() -> None:
    assert served.read([sets("Coherent", budget=False)]).findings == {
        "podgangmaps.grove.io": "not served",
        "updateStrategy.type": "Coherent; default none",
        "rollingUpdate.maxUnavailable": "not served",
    }
    assert served.read([sets("RollingRecreate", budget=False)]).findings == {}


def test_an_implementation_is_judged_by_the_features_that_its_crds_serve() -> None:
    reference = loading.load("reference")
    assert "coherent" not in reference.features
    result = discovery.complete(reference)
    assert result.features == reference.features | {"coherent"}
    assert result.discovered["podgangmaps.grove.io"] == "served, entries by epoch"
    assert result.line == "maps"


def test_an_implementation_without_podgangmaps_has_the_line_names() -> None:
    operator = loading.load("reference-names")
    result = discovery.complete(operator)
    assert (result.line, result.discovered["podgangmaps.grove.io"]) == ("names", "not served")


def test_a_scheduler_has_the_release_line_of_the_supplied_operator() -> None:
    scheduler = loading.load("kube-scheduler")
    assert discovery.complete(scheduler) == scheduler
    judged_implementation, supplied_operator = load_implementation(
        RunSettings(run="r", directory="", implementation="kube-scheduler")
    )
    assert supplied_operator is not None
    assert (judged_implementation.line, supplied_operator.name) == ("maps", "reference")


def test_the_reference_without_the_podgangmaps_that_its_crds_serve_is_refused() -> None:
    """The contract `names` is only for the start of an upgrade; reference-names is judged by the line `names`."""
    with pytest.raises(UsageError, match=r"^--set contract: contract is names, but the CRDs serve PodGangMaps"):
        discovery.complete(loading.load("reference", {"contract": "names"}))


def test_a_contract_that_the_crds_contradict_is_refused(tmp_path: Path) -> None:
    text = (data.PROJECT / "fixtures" / "implementations" / "reference.yaml").read_text("utf-8")
    path = tmp_path / "mine.yaml"
    text = text.replace("contract: ${set.contract}", "contract: names")
    path.write_text(text.replace("${here}/../crds", str(data.PROJECT / "fixtures" / "crds")), "utf-8")
    with pytest.raises(UsageError, match="contract is names, but the CRDs serve PodGangMaps with entries by epoch"):
        discovery.complete(loading.load(str(path)))


def test_the_generated_crds_of_the_reference_have_epochs() -> None:
    path = data.PROJECT / "reference_impl" / "crds" / f"{served.MAPS}.yaml"
    assert served.read([yaml.safe_load(path.read_text("utf-8"))]).key == "epoch"
