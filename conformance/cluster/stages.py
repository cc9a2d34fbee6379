"""Lifecycles of fake nodes and pods: the Stage documents in `kwok-profiles/stages/<name>/`.

This module also checks for errors that KWOK itself reports unclearly or does not survive (docs/spec/fake-cluster.md,
section 2). The documents extend the syntax of KWOK: a list of behaviors in `matchAnnotations` creates a stage for each
of them, and `${…}` stands for values from `kwok-profiles/behaviors.yaml`: `behavior`, the default of a parameter,
`patterns`, and the annotations that select a behavior (`asked` in jq: the first one that the pod has; `asking` in
templates: all of them). `unnamed` is the behavior of pods that do not name one; it is empty if such pods become Ready
immediately. `job` is the jq expression that is true for the pods of Jobs.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from msgspec import Meta, field

from conformance import documents, formats
from conformance.cluster import pod_behaviors
from conformance.data import folder
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text

Stage = dict[str, Any]

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
IS_JOB_POD = (
    'any(.metadata.ownerReferences[]?; .controller and .kind == "Job" and (.apiVersion | startswith("batch/")))'
)
"""The jq expression that is true for a pod that a Job controls."""
_TAKES_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
Milliseconds = Annotated[int, Meta(ge=0)]


class JqExpression(Format, frozen=True):
    """A jq expression for a value."""

    expression: Text


class ValueSource(Format, frozen=True):
    """The source of a value."""

    jq: JqExpression


class JqCondition(Format, frozen=True):
    """A jq expression, and what its value must be. A number never matches: compare inside jq (FC-042)."""

    key: Text
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = field(default_factory=list)


class MatchExpression(Format, frozen=True):
    """A condition of a selector. It is jq only: KWOK crashes on cel (FC-043)."""

    jq: JqCondition


class StageSelector(Format, frozen=True):
    """The objects of a stage. An annotation can have a list of behaviors."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_annotations: dict[
        str, str | Annotated[list[str], Meta(min_length=1, extra_json_schema={"uniqueItems": True})]
    ] = field(default_factory=dict)
    match_expressions: list[MatchExpression] = field(default_factory=list)


class StageDelay(Format, frozen=True):
    """The time between the match and the steps."""

    duration_milliseconds: Milliseconds = 0
    duration_from: ValueSource | None = None
    jitter_duration_milliseconds: Milliseconds = 0


class TemplatePatch(Format, frozen=True):
    """A patch of the object, or of its status."""

    template: Text
    subresource: Literal["status"] | None = None


class StageStep(Format, frozen=True):
    """A deletion or a patch."""

    delete: Annotated[bool, Meta(extra_json_schema={"const": True})] = False
    patch: TemplatePatch | None = None


class ResourceRef(Format, frozen=True):
    """The kind of the objects."""

    api_group: str
    kind: str


class StageMetadata(Format, frozen=True):
    """The name of a stage."""

    name: Annotated[str, Meta(pattern="^[a-z][a-z-]*$", description="lower-case letters and hyphens")]


class StageSpec(Format, frozen=True):
    """The objects of a Stage, and the changes that it makes to them."""

    resource_ref: ResourceRef
    selector: StageSelector
    steps: Annotated[
        list[Annotated[StageStep, Meta(extra_json_schema={"minProperties": 1, "maxProperties": 1})]], Meta(min_length=1)
    ]
    weight: Annotated[int, Meta(ge=0)] = 0
    delay: StageDelay = StageDelay()


class StageFormat(Format, frozen=True):
    """The parts of a KWOK Stage that our stages use."""

    api_version: Literal["kwok.x-k8s.io/v1alpha1"]
    kind: Literal["Stage"]
    metadata: StageMetadata
    spec: StageSpec


def load(name: str, unnamed: str = "") -> list[Stage]:
    """Return all stages of the set `name`, in the order of file names. Pods that do not name a behavior have the
    behavior `unnamed`; if it is empty, they become Ready immediately. Raises UsageError if there is no such set, or if
    a file is invalid."""
    sets = folder("kwok-profiles") / "stages"
    files = sorted((sets / name).glob("*.yaml"))
    if not files:
        names = (entry.name for entry in sets.iterdir() if entry.is_dir())
        raise UsageError(f"unknown set of stages {name!r}", hint=documents.suggestion(name, names))
    return [stage for path in files for stage in load_file(path, unnamed)]


def load_file(path: Path, unnamed: str = "") -> list[Stage]:
    """Return the expanded stages of one file. If the file is invalid, raises UsageError with the file, the line of the
    document, and the field."""
    text = path.read_text("utf-8")
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
        contents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        location = f"{path}:{mark.line + 1}" if mark else str(path)
        raise UsageError(f"is not YAML: {getattr(error, 'problem', None) or error}", where=location) from None
    stages: list[Stage] = []
    for node, content in zip(nodes, contents, strict=True):
        line = node.start_mark.line + 1
        document = Document(path, content, {(): line})
        documents.check(document, formats.schema(StageFormat))
        _check(formats.convert(document, StageFormat).spec, f"{path}:{line}")
        stages += _expansions(content, unnamed, f"{path}:{line}")
    return stages


def _expansions(stage: Stage, unnamed: str, location: str) -> Iterator[Stage]:
    """Yield the expansions of a stage, with `${…}` replaced: a stage for each behavior that the stage lists, additional
    stages for pods that do not name a behavior, or the stage itself if it lists no behaviors."""
    behaviors = pod_behaviors.load()
    patterns = " ".join(f"{json.dumps(name)} {json.dumps(form)}" for name, form in behaviors.patterns().items())
    listed_behaviors = stage["spec"]["selector"].get("matchAnnotations", {}).get(pod_behaviors.BEHAVIOR)
    if not isinstance(listed_behaviors, list):
        annotations = (pod_behaviors.BEHAVIOR, *pod_behaviors.implying_annotations())
        values = {
            "patterns": patterns,
            "unnamed": unnamed,
            "job": IS_JOB_POD,
            "asked": _first_annotation(annotations),
            "asking": " ".join(map(json.dumps, annotations)),
        }
        yield _fill(stage, values, location)
        return
    mix, job = behaviors.mixes.get(unnamed), behaviors.job_parameters(unnamed)
    no_jobs = f"select({IS_JOB_POD} | not) | " if job is not None else ""
    for name in listed_behaviors:
        if name not in behaviors.behaviors:
            hint = documents.suggestion(name, behaviors.behaviors)
            raise UsageError(f"spec.selector.matchAnnotations: unknown behavior {name!r}", where=location, hint=hint)
        behavior = _behavior_stage(stage, name, behaviors.behaviors[name].parameters, location)
        yield behavior
        if name == (unnamed or pod_behaviors.IMPLIED_BEHAVIOR):
            random_variant = _behavior_stage(stage, name, mix.parameters(), location) if mix is not None else behavior
            choice = (
                '"every"'
                if unnamed
                else f".metadata.annotations | {_first_annotation(pod_behaviors.implying_annotations())}"
            )
            yield _unnamed_stage(random_variant, no_jobs + choice)
        if name == pod_behaviors.JOB_BEHAVIOR and job is not None:
            yield _unnamed_stage(_behavior_stage(stage, name, job, location), f"select({IS_JOB_POD})", suffix="-job")
    if mix is not None and unnamed not in listed_behaviors:
        for failure, condition in mix.conditions():
            if failure.behavior in listed_behaviors:
                parameters = {**behaviors.behaviors[failure.behavior].parameters, **failure.parameters}
                failure_stage = _behavior_stage(stage, failure.behavior, parameters, location)
                yield _unnamed_stage(failure_stage, f'{no_jobs}"every"', condition)


def _behavior_stage(stage: Stage, name: str, parameters: Mapping[str, str], location: str) -> Stage:
    """Return the variant of a stage for one behavior."""
    expanded: Stage = _fill(stage, {"behavior": name, **parameters}, location)
    expanded["metadata"] = {**expanded["metadata"], "name": f"{stage['metadata']['name']}-{name}"}
    expanded["spec"]["selector"]["matchAnnotations"][pod_behaviors.BEHAVIOR] = name
    return expanded


def _unnamed_stage(stage: Stage, condition: str, random_condition: str = "", suffix: str = "-unnamed") -> Stage:
    """Return the stage of a behavior for pods that do not name it: for pods for which `condition` (jq) returns a value
    and `random_condition` (jq), unless it is empty, is true."""
    expanded = copy.deepcopy(stage)
    expanded["metadata"]["name"] += suffix
    selector = expanded["spec"]["selector"]
    del selector["matchAnnotations"]
    key = f'select(.metadata.annotations["{pod_behaviors.BEHAVIOR}"] == null) | {condition}'
    expressions: list[dict[str, Any]] = [{"jq": {"key": key, "operator": "Exists"}}]
    expressions += (
        [{"jq": {"key": f"{random_condition} | tostring", "operator": "In", "values": ["true"]}}]
        if random_condition
        else []
    )
    selector["matchExpressions"] = [*expressions, *selector["matchExpressions"]]
    return expanded


def _first_annotation(annotations: Iterable[str]) -> str:
    """Return the jq expression for the first of these annotations that a pod has. The input of the expression is the
    mapping of all annotations."""
    return " // ".join(f'.["{key}"]' for key in annotations)


def _fill(value: Any, values: Mapping[str, str], location: str) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, values, location) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, values, location) for item in value]
    if not isinstance(value, str):
        return value
    for name in _PLACEHOLDER.findall(value):
        if name not in values:
            of_behavior = f" for the behavior {values['behavior']}" if "behavior" in values else ""
            raise UsageError(
                f"${{{name}}} is not defined{of_behavior}", where=location, hint=documents.suggestion(name, values)
            )
    return _PLACEHOLDER.sub(lambda match: values[match[1]], value)


def _check(spec: StageSpec, location: str) -> None:
    """Raise UsageError for values that the schema permits but KWOK does not survive."""
    if spec.selector == StageSelector():
        raise UsageError("spec.selector: is empty, and KWOK would ignore the stage", where=location)
    for number, expression in enumerate(spec.selector.match_expressions):
        operator = expression.jq.operator
        if bool(expression.jq.values) != _TAKES_VALUES[operator]:
            rule = "needs values" if _TAKES_VALUES[operator] else "takes no values"
            raise UsageError(f"spec.selector.matchExpressions[{number}].jq.values: {operator} {rule}", where=location)
