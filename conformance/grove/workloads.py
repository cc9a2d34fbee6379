"""Load PodCliqueSets by name from fixtures/workloads/<name>.yaml, with named parameters.

A file has `parameters` (type, default, description) and a `manifest` in which `${name}` stands for a parameter. If
`${name}` is the whole value, the parameter's type is kept; inside a longer text, its value is inserted as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from conformance import data, documents, formats
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.grove import template
from conformance.grove.kinds import PODCLIQUESETS
from conformance.grove.restricted import restricted

TYPES: Mapping[str, type] = {"integer": int, "text": str, "quantity": int}
"""The types of parameter values. A quantity is an amount of a resource; it is inserted as text, as Kubernetes itself
writes it."""

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


class WorkloadParameter(Format, frozen=True):
    """A parameter of a workload."""

    type: Annotated[
        Literal["integer", "text", "quantity"],
        Meta(description="integer, text, or quantity (an integer amount of a resource)"),
    ]
    default: Annotated[int | str, Meta(description="the value if none is given")]
    about: Annotated[Text, Meta(description="what it means")]


class SetMetadata(Format, frozen=True):
    """SetMetadata of a PodCliqueSet whose namespace is the test's."""

    name: Annotated[Text, Meta(description="name of the set")]
    labels: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, Any] = field(default_factory=dict)


class ManifestTemplate(msgspec.Struct, frozen=True):
    """The part of a template that each workload has."""

    cliques: Annotated[list[Any], Meta(min_length=1, description="at least one clique")]


class ManifestSpec(msgspec.Struct, frozen=True):
    """The part of a spec that each workload has."""

    replicas: Any
    template: ManifestTemplate


class SetManifest(Format, frozen=True):
    """A PodCliqueSet; `${name}` stands for a parameter."""

    metadata: SetMetadata
    spec: ManifestSpec


class WorkloadFile(Format, frozen=True):
    """The format of a workload."""

    about: Annotated[Text, Meta(description="what the workload is for, in a sentence")]
    parameters: Annotated[
        dict[Annotated[str, Meta(pattern="^[a-z][A-Za-z0-9]*$", description="camelCase")], WorkloadParameter],
        Meta(description="parameter name (camelCase) to its type, default and meaning"),
    ]
    manifest: Annotated[SetManifest, Meta(description="metadata and spec of the PodCliqueSet")]


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
    document, workload = formats.read(place / f"{name}.yaml", WorkloadFile)
    for key, value in (values or {}).items():
        _check_value(name, workload, key, value)
    manifest = _manifest(document, workload, values or {})
    try:
        for clique in manifest["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"] = restricted(clique["spec"]["podSpec"])
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"a clique of the manifest has no pod spec with containers: {error}"
        raise UsageError(problem, where=document.location("manifest", "spec", "template")) from error
    return {"apiVersion": PODCLIQUESETS.api_version, "kind": PODCLIQUESETS.kind, **manifest}


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
    document, workload = formats.read(path, WorkloadFile)
    parameters = workload.parameters
    for name, parameter in parameters.items():
        if type(parameter.default) is not TYPES[parameter.type]:
            raise UsageError(
                f"the default is not of type {parameter.type}",
                where=document.location("parameters", name, "default"),
                hint="change one of them",
            )
    used_names = set()
    for path_of_text, words in document.strings("manifest"):
        for name in _PLACEHOLDER.findall(words):
            used_names.add(name)
            if name not in parameters:
                hint = documents.suggestion(name, parameters)
                raise UsageError(f"unknown parameter {name!r}", where=document.location(*path_of_text), hint=hint)
    for name in parameters:
        if name not in used_names:
            place = document.location("parameters", name)
            raise UsageError("is used nowhere in the manifest", where=place, hint=f"use ${{{name}}} or drop it")
    set_template = template.read(_manifest(document, workload, {}))
    for index, group in enumerate(set_template.groups):
        for member in group.cliques:
            if member not in {clique.name for clique in set_template.cliques}:
                place = document.location(
                    "manifest", "spec", "template", "podCliqueScalingGroups", index, "cliqueNames"
                )
                hint = documents.suggestion(member, [clique.name for clique in set_template.cliques])
                raise UsageError(f"no clique is called {member!r}", where=place, hint=hint)


def _manifest(document: Document, workload: WorkloadFile, values: Mapping[str, object]) -> dict[str, Any]:
    """Return the manifest with its parameters filled in, from `values` or the defaults."""
    arguments = {}
    for name, parameter in workload.parameters.items():
        value = values.get(name, parameter.default)
        arguments[name] = str(value) if parameter.type == "quantity" else value
    manifest: dict[str, Any] = _filled(document.value["manifest"], arguments)
    return manifest


def _check_value(name: str, workload: WorkloadFile, key: str, value: object) -> None:
    parameters = workload.parameters
    if key not in parameters:
        raise UsageError(f"workload {name} has no parameter {key!r}", hint=documents.suggestion(key, parameters))
    if type(value) is not TYPES[parameters[key].type]:
        raise UsageError(f"parameter {key} of workload {name} got {value!r}", hint=f"give {parameters[key].type}")


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
