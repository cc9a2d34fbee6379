"""A miniature API server that processes a set or a binding from the request to the verdict (spec ADM-04) with the
reference's CRDs and hooks. It does not evaluate CEL."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

import jsonschema
import msgspec
import yaml

from conformance.grove.refusals import FieldError, field_errors
from conformance.suite.scenes.dry_run import Reply
from reference_impl.admission import podcliqueset, topologybinding
from reference_impl.admission.result import AdmissionResult
from reference_impl.api import crds
from reference_impl.plan import defaults
from reference_impl.runtime.configuration import Configuration, Network, Profile, Scheduler, Topology

SCHEDULER_NAME = "own-scheduler"
LEVELS = {"top": ["zone", "rack", "host"]}
SETTINGS = Configuration(
    topology_aware_scheduling=Topology(enabled=True),
    network=Network(auto_mnnvl_enabled=True),
    scheduler=Scheduler(
        profiles=(Profile(name=SCHEDULER_NAME), Profile(name="kai-scheduler")), default_profile_name=SCHEDULER_NAME
    ),
)
FEATURES_OFF = msgspec.structs.replace(
    SETTINGS,
    topology_aware_scheduling=Topology(),
    network=Network(),
    scheduler=Scheduler(profiles=(Profile(name=SCHEDULER_NAME),), default_profile_name=SCHEDULER_NAME),
)
_FILES = {"PodCliqueSet": "podcliquesets", "ClusterTopologyBinding": "clustertopologybindings"}
_REASONS = {"required": "Required", "enum": "NotSupported"}


@functools.cache
def schema(kind: str) -> dict[str, Any]:
    text = (crds.FOLDER / f"{_FILES[kind]}.grove.io.yaml").read_text()
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))["spec"]["versions"][0]["schema"][
        "openAPIV3Schema"
    ]


@functools.cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(kind))


def stored(obj: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return an object as it is stored after defaulting, when it is created or replaces `before`."""
    return _defaulted(obj, before)


def ask(obj: Mapping[str, Any], before: Mapping[str, Any] | None = None, settings: Configuration = SETTINGS) -> Reply:
    """Return the response to creating `obj`, or to replacing `before` with `obj`."""
    kind = obj["kind"]
    old = None if before is None else _defaulted(before)
    new = _defaulted(obj, old)
    if breaches := [*_breaches(kind, new), *_duplicate_keys(new, schema(kind), "")]:
        return Reply(422, errors=tuple(breaches), message=str([str(error) for error in breaches]))
    if kind == "PodCliqueSet":
        verdict = podcliqueset.judge(new, old, settings, LEVELS)
    else:
        verdict = topologybinding.judge(new, settings)
    return _reply(verdict, new)


def _reply(verdict: AdmissionResult, obj: dict[str, Any]) -> Reply:
    response = verdict.response("")["response"]
    warnings = tuple(response.get("warnings", ()))
    if verdict.allowed:
        return Reply(201, obj, warnings=warnings)
    status = response["status"]
    errors = tuple(field_errors(status["message"], {}))
    return Reply(status["code"], message=status["message"], errors=errors, warnings=warnings)


def _defaulted(obj: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    result = _schema_defaults(copy.deepcopy(dict(obj)), schema(obj["kind"]))
    if obj["kind"] == "PodCliqueSet":
        for operation in defaults.patch(result, before):
            *path_steps, last_step = (
                step.replace("~1", "/").replace("~0", "~") for step in operation["path"][1:].split("/")
            )
            parent: Any = result
            for step in path_steps:
                parent = parent[int(step)] if isinstance(parent, list) else parent[step]
            if operation["op"] == "remove":
                del parent[last_step]
            else:
                parent[last_step] = copy.deepcopy(operation["value"])
    return _schema_defaults(result, schema(obj["kind"]))


def _schema_defaults(value: Any, rules: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        for name, field in rules.get("properties", {}).items():
            if "default" in field and value.get(name) is None:
                value[name] = copy.deepcopy(field["default"])
            if name in value:
                value[name] = _schema_defaults(value[name], field)
    elif isinstance(value, list) and "items" in rules:
        return [_schema_defaults(item, rules["items"]) for item in value]
    return value


def _breaches(kind: str, obj: dict[str, Any]) -> list[FieldError]:
    if (obj["spec"].get("replicas") if isinstance(obj.get("spec"), dict) else None) in (-1,):
        return [FieldError("spec.replicas", "Invalid")]
    errors = []
    for error in _validator(kind).iter_errors(obj):
        steps = [step for step in error.absolute_path if isinstance(step, str)]
        if error.validator == "required":
            steps.append(error.message.split("'")[1])
        errors.append(FieldError(".".join(steps), _REASONS.get(str(error.validator), "Invalid")))
    return errors


def _duplicate_keys(value: Any, rules: Mapping[str, Any], path: str) -> list[FieldError]:
    """Return errors for keys that occur twice in a list map."""
    if isinstance(value, dict):
        fields = rules.get("properties", {}).items()
        return [
            error
            for name, field in fields
            if name in value
            for error in _duplicate_keys(value[name], field, f"{path}.{name}")
        ]
    if not isinstance(value, list) or "items" not in rules:
        return []
    errors = [error for item in value for error in _duplicate_keys(item, rules["items"], path)]
    if keys := rules.get("x-kubernetes-list-map-keys"):
        values = [str([item.get(key) for key in keys]) for item in value if isinstance(item, dict)]
        errors += [FieldError(path.lstrip("."), "Duplicate")] if len(set(values)) < len(values) else []
    return errors
