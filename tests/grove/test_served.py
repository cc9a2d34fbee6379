"""Tests of how kinds must be served: the data, the reading of a CRD, and the reference's own CRDs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance import data
from conformance.errors import UsageError
from conformance.grove import served
from conformance.suite.registry import requirement

KINDS = {kind.name: kind for kind in served.kinds()}


def crd(name: str) -> dict[str, Any]:
    text = (data.PROJECT / "reference_impl" / "crds" / f"{name}.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    definition: dict[str, Any] = yaml.load(text, Loader=loader)
    return definition


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_reference_serves_its_kinds_as_documented(name: str) -> None:
    kind, definition = KINDS[name], crd(name)
    assert served.observed_names(definition, kind) == kind.expected_names
    assert served.columns(definition, kind) == kind.columns
    assert {f.path: served.observed_properties(definition, f) for f in kind.fields} == {
        f.path: f.expected_properties for f in kind.fields
    }


def test_requirements_rest_on_the_facts_that_the_data_hold() -> None:
    registry = requirement.load().requirements
    claimed_facts = {fact for id in registry if id.startswith("CRD-") for fact in registry[id].source}
    assert served.facts(list(KINDS.values())) - claimed_facts == set()
    rows = {fact for fact in claimed_facts if fact.startswith(("API-", "COL-", "POD-"))}
    assert rows - served.facts(list(KINDS.values())) == set()


def test_an_unknown_shape_is_reported_with_its_line(tmp_path: Path) -> None:
    text = (data.folder("fixtures") / "api" / "kinds.yaml").read_text("utf-8")
    (tmp_path / "kinds.yaml").write_text(text.replace("\n  packConstraint:\n", "\n  packConstrain:\n"), "utf-8")
    with pytest.raises(UsageError, match=r"kinds.yaml:\d+: .*shape: unknown shape 'packConstraint' — did you mean"):
        served.read(tmp_path / "kinds.yaml")


def test_wrong_crds_are_detected() -> None:
    kind, definition = KINDS["podcliquescalinggroups.grove.io"], copy.deepcopy(crd("podcliquescalinggroups.grove.io"))
    version = definition["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["minAvailable"]["default"]
    spec["required"].remove("cliqueNames")
    del spec["properties"]["replicas"]
    wrong = {f.path for f in kind.fields if served.observed_properties(definition, f) != f.expected_properties}
    assert wrong == {"spec.minAvailable", "spec.cliqueNames", "spec.replicas"}
    version["served"] = False
    assert served.columns(definition, kind) == []
    assert served.observed_names({}, kind)["scope"] == "" and served.observed_properties({}, kind.fields[0])["is"] == ""


def test_undocumented_additions_are_permitted() -> None:
    kind, definition = KINDS["clustertopologybindings.grove.io"], copy.deepcopy(crd("clustertopologybindings.grove.io"))
    version = definition["spec"]["versions"][0]
    definition["spec"]["names"]["shortNames"].insert(0, "ctb")
    version["additionalPrinterColumns"].insert(1, {"name": "Ready", "type": "string", "jsonPath": ".status.ready"})
    levels = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["levels"]
    key, says = levels["items"]["properties"]["key"], next(f for f in kind.fields if f.path == "spec.levels[].key")
    for longest in (63, 317, None):
        key["maxLength"] = longest
        assert served.observed_properties(definition, says) == says.expected_properties, longest
    assert (
        served.observed_names(definition, kind) == kind.expected_names
        and served.columns(definition, kind) == kind.columns
    )
    key["maxLength"] = 62
    version["additionalPrinterColumns"].reverse()
    definition["spec"]["names"]["shortNames"] = ["ctb"]
    assert served.observed_properties(definition, says) != says.expected_properties
    assert (
        served.observed_names(definition, kind) != kind.expected_names
        and served.columns(definition, kind) != kind.columns
    )


@pytest.mark.parametrize(
    ("enum", "default", "right"),
    [
        (["RollingRecreate", "OnDelete"], "RollingRecreate", True),
        (["RollingRecreate", "OnDelete", "Coherent"], "RollingRecreate", True),
        (["RollingRecreate", "OnDelete", "Coherent"], "Coherent", True),
        (["RollingRecreate", "OnDelete"], "Coherent", False),
        (["RollingRecreate", "OnDelete", "Coherent"], "OnDelete", False),
        (["RollingRecreate", "Coherent"], "Coherent", False),
        (["RollingRecreate", "OnDelete", "Sideways"], "RollingRecreate", False),
    ],
)
def test_coherent_may_be_a_strategy_and_then_the_default(enum: list[str], default: str, right: bool) -> None:
    kind, definition = KINDS["podcliquesets.grove.io"], copy.deepcopy(crd("podcliquesets.grove.io"))
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["updateStrategy"]["properties"]["type"] |= {"enum": enum, "default": default}
    field = next(field for field in kind.fields if field.fact == "API-004")
    assert (served.observed_properties(definition, field) == field.expected_properties) is right
