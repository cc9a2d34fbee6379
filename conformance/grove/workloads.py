"""Load PodCliqueSets by name from fixtures/workloads/<name>.yaml, with named parameters.

A file has `parameters` (type, default, description) and a `manifest` in which `${name}` stands for a parameter. If
`${name}` is the whole value, the parameter's type is kept; inside a longer text, its value is inserted as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance import data, documents
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.grove import template
from conformance.grove.kinds import PODCLIQUESETS
from conformance.grove.restricted import restricted

SCHEMA = "workload.schema.json"
TYPES: Mapping[str, type] = {"integer": int, "text": str, "quantity": int}
"""The types of parameter values. A quantity is an amount of a resource; it is inserted as text, as Kubernetes itself
writes it."""

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


def folder() -> Path:
    """Return the folder of the workloads."""
    return data.folder("fixtures") / "workloads"


def names(place: Path | None = None) -> list[str]:
    """Return the names of all workloads."""
    return sorted(path.stem for path in (place or folder()).glob("*.yaml"))


def load(name: str, values: Mapping[str, object] | None = None, place: Path | None = None) -> dict[str, Any]:
    """Return the PodCliqueSet of a workload, without a namespace, and with pods that restricted namespaces admit.
    Raises UsageError for an unknown workload or parameter, or a value of the wrong type."""
    place = place or folder()
    if name not in names(place):
        raise UsageError(f"unknown workload {name!r}", hint=documents.suggestion(name, names(place)))
    document = documents.read(place / f"{name}.yaml", folder() / SCHEMA)
    for key, value in (values or {}).items():
        _check_value(name, document, key, value)
    manifest = _manifest(document, values or {})
    try:
        for clique in manifest["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"] = restricted(clique["spec"]["podSpec"])
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"a clique of the manifest has no pod spec with containers: {error}"
        raise UsageError(problem, where=document.location("manifest", "spec", "template")) from error
    return {"apiVersion": PODCLIQUESETS.api_version, "kind": PODCLIQUESETS.kind, **manifest}


def parameters(name: str, place: Path | None = None) -> Mapping[str, Mapping[str, Any]]:
    """Return the parameters of a workload: name → its type, default and description."""
    document = documents.read((place or folder()) / f"{name}.yaml", folder() / SCHEMA)
    declared: Mapping[str, Mapping[str, Any]] = document.value["parameters"]
    return declared


def validate(place: Path | None = None) -> list[str]:
    """Return the first error of each workload file, one line each."""
    errors = []
    for path in sorted((place or folder()).glob("*.yaml")):
        try:
            check(path)
        except UsageError as error:
            errors.append(str(error))
    return errors


def check(path: Path) -> None:
    """Read a workload file and check what its schema cannot express: types of defaults, unknown placeholders, unused
    parameters, and cliques of groups. Raises UsageError if a check fails."""
    document = documents.read(path, folder() / SCHEMA)
    parameters = document.value["parameters"]
    for name, entry in parameters.items():
        if type(entry["default"]) is not TYPES[entry["type"]]:
            raise UsageError(
                f"the default is not of type {entry['type']}",
                where=document.location("parameters", name, "default"),
                hint="change one of them",
            )
    used_names = set()
    for field, words in document.strings("manifest"):
        for name in _PLACEHOLDER.findall(words):
            used_names.add(name)
            if name not in parameters:
                hint = documents.suggestion(name, parameters)
                raise UsageError(f"unknown parameter {name!r}", where=document.location(*field), hint=hint)
    for name in parameters:
        if name not in used_names:
            place = document.location("parameters", name)
            raise UsageError("is used nowhere in the manifest", where=place, hint=f"use ${{{name}}} or drop it")
    set_template = template.read(_manifest(document, {}))
    for index, group in enumerate(set_template.groups):
        for member in group.cliques:
            if member not in {clique.name for clique in set_template.cliques}:
                place = document.location(
                    "manifest", "spec", "template", "podCliqueScalingGroups", index, "cliqueNames"
                )
                hint = documents.suggestion(member, [clique.name for clique in set_template.cliques])
                raise UsageError(f"no clique is called {member!r}", where=place, hint=hint)


def _manifest(document: Document, values: Mapping[str, object]) -> dict[str, Any]:
    """Return the manifest with its parameters filled in, from `values` or the defaults."""
    arguments = {}
    for key, entry in document.value["parameters"].items():
        value = values.get(key, entry["default"])
        arguments[key] = str(value) if entry["type"] == "quantity" else value
    manifest: dict[str, Any] = _filled(document.value["manifest"], arguments)
    return manifest


def _check_value(name: str, document: Document, key: str, value: object) -> None:
    parameters = document.value["parameters"]
    if key not in parameters:
        raise UsageError(f"workload {name} has no parameter {key!r}", hint=documents.suggestion(key, parameters))
    if type(value) is not TYPES[parameters[key]["type"]]:
        raise UsageError(f"parameter {key} of workload {name} got {value!r}", hint=f"give {parameters[key]['type']}")


def _filled(value: Any, arguments: Mapping[str, object]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(item, arguments) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, arguments) for item in value]
    if not isinstance(value, str):
        return value
    placeholder = _PLACEHOLDER.fullmatch(value)
    if placeholder is not None:
        return arguments[placeholder[1]]
    return _PLACEHOLDER.sub(lambda match: str(arguments[match[1]]), value)
