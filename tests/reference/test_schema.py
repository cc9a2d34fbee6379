"""Tests of the CRD schemas that are generated from the models."""

from __future__ import annotations

import yaml

from reference_impl.api import crds
from reference_impl.api.schema import QUANTITY_PATTERN


def load(name):
    return yaml.safe_load((crds.FOLDER / f"{name}.yaml").read_text())["spec"]["versions"][0]


def properties(schema, *path):
    for step in path:
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


def test_defaults_enums_and_list_maps_are_in_the_generated_files():
    schema = load("podcliquesets.grove.io")["schema"]["openAPIV3Schema"]
    template = properties(schema, "spec", "template")
    assert properties(schema, "spec", "replicas")["default"] == 0
    assert properties(template, "cliqueStartupType")["default"] == "CliqueStartupTypeAnyOrder"
    assert properties(template, "cliques")["x-kubernetes-list-map-keys"] == ["name"]
    assert properties(template, "cliques", "[]", "spec")["required"] == ["podSpec", "replicas", "roleName"]
    assert properties(template, "podCliqueScalingGroups", "[]", "minAvailable")["default"] == 1


def test_the_pod_spec_is_complete_and_structural():
    spec = properties(load("podcliques.grove.io")["schema"]["openAPIV3Schema"], "spec", "podSpec")
    container = properties(spec, "containers", "[]")
    assert spec["required"] == ["containers"]
    assert container["properties"]["ports"]["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert properties(container, "ports", "[]", "protocol")["default"] == "TCP"
    limits = properties(container, "resources", "limits")["additionalProperties"]
    assert limits["x-kubernetes-int-or-string"] and limits["pattern"] == QUANTITY_PATTERN
    assert properties(container, "livenessProbe", "httpGet", "port")["x-kubernetes-int-or-string"]


def test_every_array_and_object_declares_its_contents():
    """With an incomplete schema, the API server would drop the fields that the schema does not contain."""

    def check(schema, path):
        kind = schema.get("type")
        if kind == "array":
            check(schema["items"], f"{path}[]")
        elif kind == "object" and "metadata" not in path:
            assert schema.get("properties") or schema.get("additionalProperties") or path, path
        for name, inner in schema.get("properties", {}).items():
            check(inner, f"{path}.{name}")

    for definition in crds._DEFINITIONS:
        name = f"{definition.resource.plural}.{definition.resource.group}"
        check(load(name)["schema"]["openAPIV3Schema"], "")
