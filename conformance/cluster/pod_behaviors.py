"""Scripted behaviors of fake pods, selected by annotations of the pod (`kwok-profiles/behaviors.yaml`).

The stages implement the behaviors. This module defines the behaviors and their parameters, and checks annotations. A
mistake that reaches the cluster appears as the state InvalidBehavior of the pod's containers (stage pod-starts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from conformance import documents
from conformance.cluster import pod_mixes
from conformance.cluster.pod_mixes import Mix
from conformance.data import folder
from conformance.errors import UsageError

PREFIX = "conformance.grove.io/"
BEHAVIOR = PREFIX + "behavior"
IMPLIED_BEHAVIOR = "realistic"
"""The behavior of a pod that does not name a behavior but has one of the parameters of this one."""
JOB_BEHAVIOR = "exit"
"""The behavior of a Job's pod that does not name a behavior."""

_FORM_PATTERNS = {"seconds": "[0-9]{1,6}s", "count": "[0-9]{1,7}", "code": "[0-9]{1,3}"}
_FORM_DESCRIPTIONS = {"seconds": "whole seconds, as in 5s", "count": "a whole number", "code": "an exit code"}


@dataclass(frozen=True)
class Behavior:
    """One behavior. `parameters` maps the name of an annotation, without its prefix, to the default value."""

    name: str
    about: str
    passes: tuple[str, ...]
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Behaviors:
    """The content of `behaviors.yaml`. `forms` maps the name of a parameter to its type: seconds, count or code.
    `mixes`: behavior → the mix that replaces it for pods without a behavior annotation. `jobs`: the default parameters
    of `exit`, the behavior of Job pods without that annotation. `holds`: annotations that make the cluster leave a
    pod's status, readiness or deletion as it is."""

    behaviors: Mapping[str, Behavior]
    forms: Mapping[str, str]
    holds: tuple[str, ...]
    mixes: Mapping[str, Mix]
    jobs: Mapping[str, str]

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
        patterns |= {name: f"^{_FORM_PATTERNS[form]}$" for name, form in self.forms.items()}
        return patterns | dict.fromkeys(self.holds, ".*")


@cache
def load() -> Behaviors:
    """Return all behaviors. Raises UsageError if their file is invalid."""
    return read(folder("kwok-profiles") / "behaviors.yaml")


def read(path: Path) -> Behaviors:
    """Read and check a file of behaviors. If it is invalid, raises UsageError with the file, line and field."""
    document = documents.read(path, folder("kwok-profiles") / "behaviors.schema.json")
    data = document.value
    forms = {name: entry["type"] for name, entry in data["parameters"].items()}
    used_parameters = set()
    for behavior, entry in data["behaviors"].items():
        for name, default in entry["parameters"].items():
            location = document.location("behaviors", behavior, "parameters", name)
            used_parameters.add(name)
            if name not in forms:
                raise UsageError("unknown parameter", where=location, hint=documents.suggestion(name, forms))
            if not re.fullmatch(_FORM_PATTERNS[forms[name]], default):
                raise UsageError(
                    f"{default!r} is not a valid default",
                    where=location,
                    hint=f"give {_FORM_DESCRIPTIONS[forms[name]]}",
                )
    for name in forms:
        if name not in used_parameters:
            raise UsageError("no behavior reads it", where=document.location("parameters", name), hint="drop it")
    behaviors = {
        name: Behavior(name, entry["about"], tuple(entry["passes"]), entry["parameters"])
        for name, entry in data["behaviors"].items()
    }
    mixes = dict(pod_mixes.read(document, {name: parsed.parameters for name, parsed in behaviors.items()}))
    for name, mix in mixes.items():
        for number, failure in enumerate(mix.failures):
            for parameter, value in failure.parameters.items():
                if not re.fullmatch(_FORM_PATTERNS[forms[parameter]], value):
                    location = document.location("mixes", name, "failures", number, "parameters", parameter)
                    hint = f"give {_FORM_DESCRIPTIONS[forms[parameter]]}"
                    raise UsageError(f"{value!r} has the wrong form", where=location, hint=hint)
    for parameter, value in data["jobs"].items():
        location = document.location("jobs", parameter)
        if parameter not in behaviors[JOB_BEHAVIOR].parameters:
            hint = documents.suggestion(parameter, behaviors[JOB_BEHAVIOR].parameters)
            raise UsageError("unknown parameter", where=location, hint=hint)
        if not re.fullmatch(_FORM_PATTERNS[forms[parameter]], value):
            hint = f"give {_FORM_DESCRIPTIONS[forms[parameter]]}"
            raise UsageError(f"{value!r} has the wrong form", where=location, hint=hint)
    return Behaviors(behaviors, forms, tuple(data["holds"]), mixes, data["jobs"])


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
        if name not in behaviors.forms:
            hint = documents.suggestion(name, ("behavior", *behaviors.forms, *behaviors.holds))
            yield UsageError("unknown annotation", where=key, hint=hint)
        elif not re.fullmatch(_FORM_PATTERNS[behaviors.forms[name]], value):
            yield UsageError(
                f"{value!r} has the wrong form", where=key, hint=f"give {_FORM_DESCRIPTIONS[behaviors.forms[name]]}"
            )
        elif BEHAVIOR not in annotations and key not in implying_annotations():
            yield UsageError("has no effect without a behavior", where=key, hint=f"add {BEHAVIOR}")
        elif behavior is not None and name not in behavior.parameters:
            hint = documents.suggestion(name, behavior.parameters)
            yield UsageError(f"has no effect with the behavior {behavior.name}", where=key, hint=hint)


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
