"""Tests of pod specs in which every field is set, with schemas that no version of Kubernetes has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.grove import pod_fields
from conformance.grove.pod_fields import Template

CORE = "io.k8s.api.core.v1."
TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
PLAIN = Template("plain", {}, {}, {}, {})


def reference(kind: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{CORE}{kind}"}], "default": {}}


def items(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def schemas(**types: dict[str, Any]) -> dict[str, Any]:
    kinds = {
        "PodSpec": {"containers": items(reference("Container")), "volumes": items(reference("Volume")), "flag": FLAG},
        "Container": {"name": TEXT, "args": items(TEXT), "probe": reference("Probe")},
        "Probe": {"exec": reference("Exec"), "grpc": reference("Grpc"), "seconds": NUMBER},
        "Exec": {"command": items(TEXT)},
        "Grpc": {"port": NUMBER},
        "Volume": {"name": TEXT, "secret": reference("Secret"), "disk": reference("Disk")},
        "Secret": {"mode": NUMBER},
        "Disk": {"kind": {"type": "string", "enum": ["", "Fast", "Slow"]}},
    }
    return {
        f"{CORE}{kind}": {"properties": {**kinds.get(kind, {}), **types.get(kind, {})}} for kind in {**kinds, **types}
    }


def spec(template: Template = PLAIN, **types: dict[str, Any]) -> dict[str, Any]:
    return pod_fields.pod_spec(schemas(**types), template, "named")


UNIONS = replace(PLAIN, alternatives={"Probe": "objects", "Volume": "objects"})


def test_values_follow_the_types() -> None:
    pod_spec = spec()
    assert pod_spec["flag"] is True
    assert [c["name"] for c in pod_spec["containers"]] == ["name-0", "name-1"]
    assert pod_spec["containers"][0]["args"] == ["args-0", "args-1"]
    assert [volume["disk"]["kind"] for volume in pod_spec["volumes"]] == ["Fast", "Slow"]


def test_a_field_of_a_later_version_is_set_at_any_position() -> None:
    new = {"invented": TEXT}
    pod_spec = spec(UNIONS, PodSpec=new, Container=new, Probe=new, Exec=new, Grpc=new, Secret=new, Volume=new)
    holders = [pod_spec, *pod_spec["containers"], *pod_spec["volumes"]]
    holders += [
        holder
        for c in pod_spec["containers"]
        for holder in (c["probe"], c["probe"].get("exec"), c["probe"].get("grpc"))
    ]
    holders += [volume.get("secret") for volume in pod_spec["volumes"]]
    assert {bool(holder.get("invented")) for holder in holders if holder} == {True}


def test_a_type_of_a_later_version_is_set_as_a_whole() -> None:
    pod_spec = spec(PodSpec={"invented": items(reference("Invented"))}, Invented={"a": TEXT, "b": reference("Grpc")})
    assert [value.keys() for value in pod_spec["invented"]] == [{"a", "b"}, {"a", "b"}]
    assert pod_spec["invented"][1]["b"] == {"port": 2}


def test_an_alternative_of_a_later_version_has_its_own_item() -> None:
    pod_spec = spec(UNIONS, Volume={"invented": reference("Secret")}, Probe={"invented": reference("Secret")})
    assert [sorted(volume.keys() - {"name"}) for volume in pod_spec["volumes"]] == [["secret"], ["disk"], ["invented"]]
    assert [sorted(c["probe"].keys() - {"seconds"}) for c in pod_spec["containers"]] == [
        ["exec"],
        ["grpc"],
        ["invented"],
    ]


def test_a_template_may_have_some_of_the_alternatives_only() -> None:
    pod_spec = spec(replace(UNIONS, permitted={"Volume": ["secret"]}), Volume={"invented": reference("Secret")})
    assert [sorted(volume) for volume in pod_spec["volumes"]] == [["name", "secret"], ["name", "secret"]]


def test_the_table_replaces_and_excludes_values() -> None:
    values = {
        "Container.name": "${list}-${n}",
        "Volume.name": "${alternative}",
        "PodSpec.flag": {"byItem": [None]},
        "probe.seconds": {"byItem": [7, None]},
        "Grpc.port": 80,
        "Exec.command": ["${name}"],
    }
    pod_spec = spec(replace(UNIONS, values=values, excluded={"Container.args": "no reason"}))
    assert "flag" not in pod_spec
    assert [c["name"] for c in pod_spec["containers"]] == ["containers-0", "containers-1"]
    assert [c["probe"] for c in pod_spec["containers"]] == [
        {"exec": {"command": ["named"]}, "seconds": 7},
        {"grpc": {"port": 80}},
    ]
    assert [volume["name"] for volume in pod_spec["volumes"]] == ["secret", "disk"]
    assert not any("args" in c for c in pod_spec["containers"])


def test_the_rules_are_read() -> None:
    templates = pod_fields.templates()
    assert len(templates) == len({template.name for template in templates}) >= 2
