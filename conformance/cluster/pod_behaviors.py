"""Scripted behaviors of fake pods, selected by annotations of the pod (`kwok-profiles/behaviors.yaml`).

The stages implement the behaviors. This module defines the behaviors and their parameters, and checks annotations. A
mistake that reaches the cluster appears as the state InvalidBehavior of the pod's containers (stage pod-starts).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from conformance import documents, formats
from conformance.cluster.pod_mixes import BYTE, Mix
from conformance.data import folder
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text

PREFIX = "conformance.grove.io/"
BEHAVIOR = PREFIX + "behavior"
IMPLIED_BEHAVIOR = "realistic"
"""The behavior of a pod that does not name a behavior but has one of the parameters of this one."""
JOB_BEHAVIOR = "exit"
"""The behavior of a Job's pod that does not name a behavior."""

_FORM_PATTERNS = {"seconds": "[0-9]{1,6}s", "count": "[0-9]{1,7}", "code": "[0-9]{1,3}"}
_FORM_DESCRIPTIONS = {"seconds": "whole seconds, as in 5s", "count": "a whole number", "code": "an exit code"}


Word = Annotated[str, Meta(pattern="^[a-z][a-z-]*[a-z]$", description="lower-case letters and hyphens")]


class Behavior(Format, frozen=True):
    """One behavior. `parameters` maps the name of an annotation, without its prefix, to the default value."""

    about: Text
    passes: Annotated[list[Text], Meta(min_length=1, description="the states, as kubectl calls them")]
    parameters: Annotated[
        dict[str, str], Meta(description="annotations that this behavior reads, with their defaults, as text")
    ]


class BehaviorParameter(Format, frozen=True):
    """An annotation in addition to the behavior."""

    type: Annotated[Literal["seconds", "count", "code"], Meta(description="form of the value")]
    about: Text

    def accepts(self, value: str) -> bool:
        """Return whether a value has the form of this parameter."""
        return re.fullmatch(_FORM_PATTERNS[self.type], value) is not None

    @property
    def hint(self) -> str:
        """Return how to write a value."""
        return f"give {_FORM_DESCRIPTIONS[self.type]}"


class Behaviors(Format, frozen=True):
    """Behaviors of fake pods, and the annotations that select them. `mixes`: behavior → the mix that replaces it for
    pods without a behavior annotation. `jobs`: the default parameters of `exit`, the behavior of Job pods without that
    annotation. `holds`: annotations that make the cluster leave a pod's status, readiness or deletion as it is."""

    behaviors: Annotated[
        dict[Word, Behavior], Meta(min_length=1, description="value of the annotation behavior: what it means")
    ]
    jobs: Annotated[
        dict[str, str],
        Meta(
            description="parameters of the behavior exit for pods of Jobs that name no behavior, where they differ "
            "from its defaults"
        ),
    ]
    parameters: Annotated[dict[Word, BehaviorParameter], Meta(description="annotations in addition to behavior")]
    holds: Annotated[dict[Word, Text], Meta(description="annotations that hold a pod back, whatever their value")]
    mixes: Annotated[
        dict[str, Mix],
        Meta(
            description="behavior that a cluster gives to pods that name none: how they differ from each other",
        ),
    ] = field(default_factory=dict)

    def job_parameters(self, default_behavior: str) -> dict[str, str] | None:
        """Return the parameters of `exit` for the pods of Jobs, on a cluster that gives pods the behavior
        `default_behavior`: the pods start as in that behavior. Return None if pods with that behavior do not end up
        Ready; in this case it also applies to the pods of Jobs."""
        start_parameters: Mapping[str, str] = {}
        if default_behavior:
            if self.behaviors[default_behavior].passes[-1] != "Ready":
                return None
            start_parameters = (
                self.mixes[default_behavior].parameters()
                if default_behavior in self.mixes
                else self.behaviors[default_behavior].parameters
            )
        return {**self.behaviors[JOB_BEHAVIOR].parameters, **self.jobs, **start_parameters}

    def patterns(self) -> dict[str, str]:
        """Return the annotations that a pod with a behavior may have: maps names without the prefix to regular
        expressions for the value."""
        patterns = {"behavior": f"^({'|'.join(self.behaviors)})$"}
        patterns |= {name: f"^{_FORM_PATTERNS[entry.type]}$" for name, entry in self.parameters.items()}
        return patterns | dict.fromkeys(self.holds, ".*")


@cache
def load() -> Behaviors:
    """Return all behaviors. Raises UsageError if their file is invalid."""
    return read(folder("kwok-profiles") / "behaviors.yaml")


def read(path: Path) -> Behaviors:
    """Read and check a file of behaviors. If it is invalid, raises UsageError with the file, line and field."""
    document, content = formats.read(path, Behaviors)

    def check(values: Mapping[str, str], parameters: Collection[str], *place: str | int, problem: str) -> None:
        for name, value in values.items():
            location = document.location(*place, name)
            if name not in parameters:
                raise UsageError("unknown parameter", where=location, hint=documents.suggestion(name, parameters))
            if not content.parameters[name].accepts(value):
                raise UsageError(f"{value!r} {problem}", where=location, hint=content.parameters[name].hint)

    for name, behavior in content.behaviors.items():
        place = ("behaviors", name, "parameters")
        check(behavior.parameters, content.parameters, *place, problem="is not a valid default")
    for name in content.parameters:
        if all(name not in behavior.parameters for behavior in content.behaviors.values()):
            raise UsageError("no behavior reads it", where=document.location("parameters", name), hint="drop it")
    for name, mix in content.mixes.items():
        _check_times(mix, _parameters(content, name, document, "mixes", name), document, "mixes", name, "times")
        for number, (failure, first_bytes) in enumerate(mix.shares()):
            entry = ("mixes", name, "failures", number)
            parameters = _parameters(content, failure.behavior, document, *entry, "behavior")
            check(failure.parameters, parameters, *entry, "parameters", problem="has the wrong form")
            if first_bytes.stop > BYTE:
                location = document.location(*entry, "oneOf")
                raise UsageError("more pods fail than there are", where=location, hint="raise it")
    check(content.jobs, content.behaviors[JOB_BEHAVIOR].parameters, "jobs", problem="has the wrong form")
    return content


def _parameters(content: Behaviors, name: str, document: Document, *place: str | int) -> Mapping[str, str]:
    """Return the parameters of a behavior that a file names somewhere."""
    if name not in content.behaviors:
        hint = documents.suggestion(name, content.behaviors)
        raise UsageError(f"unknown behavior {name!r}", where=document.location(*place), hint=hint)
    return content.behaviors[name].parameters


def _check_times(mix: Mix, parameters: Collection[str], document: Document, *place: str) -> None:
    for name, (low, high) in mix.times.items():
        location = document.location(*place, name)
        if name not in parameters:
            raise UsageError("unknown parameter", where=location, hint=documents.suggestion(name, parameters))
        if low > high:
            raise UsageError(f"{low} is more than {high}", where=location, hint="give the least first")


def implying_annotations() -> tuple[str, ...]:
    """Return the annotations that imply a behavior."""
    return tuple(PREFIX + name for name in load().behaviors[IMPLIED_BEHAVIOR].parameters)


def behavior_annotations(behavior: str, **parameters: str | int) -> dict[str, str]:
    """Return the annotations that give a pod a behavior, e.g. `annotated("crash-loop", restart_after="2s",
    restarts=3)`.

    Raises UsageError for an unknown behavior or parameter, or for a value of the wrong form.
    """
    annotations = {BEHAVIOR: behavior} | {
        PREFIX + name.replace("_", "-"): str(value) for name, value in parameters.items()
    }
    for mistake in mistakes(annotations):
        raise mistake
    return annotations


def mistakes(annotations: Mapping[str, str]) -> Iterator[UsageError]:
    """Yield the mistakes in the annotations of a pod that belong to the suite."""
    behaviors = load()
    behavior = behaviors.behaviors.get(annotations.get(BEHAVIOR, ""))
    if BEHAVIOR in annotations and behavior is None:
        yield UsageError(
            f"unknown behavior {annotations[BEHAVIOR]!r}",
            where=BEHAVIOR,
            hint=documents.suggestion(annotations[BEHAVIOR], behaviors.behaviors),
        )
    for key, value in annotations.items():
        name = key.removeprefix(PREFIX)
        if name == key or key == BEHAVIOR or name in behaviors.holds:
            continue
        if name not in behaviors.parameters:
            hint = documents.suggestion(name, ("behavior", *behaviors.parameters, *behaviors.holds))
            yield UsageError("unknown annotation", where=key, hint=hint)
        elif not behaviors.parameters[name].accepts(value):
            yield UsageError(f"{value!r} has the wrong form", where=key, hint=behaviors.parameters[name].hint)
        elif BEHAVIOR not in annotations and key not in implying_annotations():
            yield UsageError("has no effect without a behavior", where=key, hint=f"add {BEHAVIOR}")
        elif behavior is not None and name not in behavior.parameters:
            hint = documents.suggestion(name, behavior.parameters)
            yield UsageError(f"has no effect with the behavior {annotations[BEHAVIOR]}", where=key, hint=hint)


def mistakes_of_set(manifest: Mapping[str, Any]) -> Iterator[UsageError]:
    """Yield the mistakes in the annotations that a PodCliqueSet gives its pods.

    Parts of a wrong type are ignored, because it is up to the API server to reject them.
    """
    cliques: Any = manifest
    for key in ("spec", "template", "cliques"):
        cliques = cliques.get(key) if isinstance(cliques, Mapping) else None
    for clique in cliques if isinstance(cliques, list) else ():
        annotations = clique.get("annotations") if isinstance(clique, Mapping) else None
        pairs = annotations.items() if isinstance(annotations, Mapping) else ()
        for mistake in mistakes({key: value for key, value in pairs if isinstance(value, str)}):
            yield UsageError(mistake.what, where=f"clique {clique.get('name')}: {mistake.where}", hint=mistake.hint)
