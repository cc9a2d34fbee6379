"""Features of Kubernetes that are disabled by default: named sets of features (`fixtures/features/`), feature gates,
and API versions.

Pure, except that the sets are read from files, and that `known_gates` asks a program which gates it knows.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, field

from conformance import documents, formats
from conformance.data import folder
from conformance.errors import HarnessError, UsageError
from conformance.formats import Format, Text

APISERVER, CONTROLLER_MANAGER, SCHEDULER = "kube-apiserver", "kube-controller-manager", "kube-scheduler"
COMPONENTS = (APISERVER, CONTROLLER_MANAGER, SCHEDULER)
"""The components that have feature gates."""
PRESET, GATES, RUNTIME_CONFIG = "--features", "--feature-gates", "--runtime-config"
_SWITCH = re.compile(r"(?:(?P<component>[a-z][a-z-]*):)?(?P<name>[A-Za-z0-9][\w./-]*)=(?P<value>true|false)")
_LISTED_GATE = re.compile(r"\b(?:kube:)?([A-Z]\w+)=true\|false")

GatesOf = Callable[[str], frozenset[str]]
"""Returns the feature gates that a component knows."""


@dataclass(frozen=True)
class FeatureRequest:
    """The features that a user requests, as on the command line: presets, gates such as `Gate=true` or
    `kube-scheduler:Gate=true`, and API versions such as `scheduling.k8s.io/v1beta1=true`."""

    presets: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    runtime_config: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.presets or self.gates or self.runtime_config)

    def options(self) -> list[str]:
        """Return the command options that request the same features."""
        groups = ((PRESET, self.presets), (GATES, self.gates), (RUNTIME_CONFIG, self.runtime_config))
        return [word for option, values in groups for value in values for word in (option, value)]


NO_FEATURES = FeatureRequest()
"""No features other than those that are enabled by default."""


@dataclass(frozen=True)
class Features:
    """The features of a cluster: gates by component and name, and API versions by name, each enabled or disabled."""

    gates: Mapping[str, Mapping[str, bool]] = dataclasses.field(default_factory=dict)
    runtime_config: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    def flags(self) -> dict[str, dict[str, str]]:
        """Map components to their flags, and the flags to their values."""
        flags = {component: {"feature-gates": _switch_list(gates)} for component, gates in self.gates.items() if gates}
        if self.runtime_config:
            flags.setdefault(APISERVER, {})["runtime-config"] = _switch_list(self.runtime_config)
        return flags

    def is_on(self, gate: str) -> bool:
        """Return whether the gate is enabled in any component, so that all components that need it must have it."""
        return any(gates.get(gate, False) for gates in self.gates.values())


class ReleaseFeatures(Format, frozen=True):
    """A set of features for a minor version of Kubernetes."""

    facts: Annotated[list[str], Meta(min_length=1, description="rows of the specification")]
    runtime_config: Annotated[
        dict[str, bool], Meta(description="API version of the API server: whether it is served")
    ] = field(default_factory=dict)
    feature_gates: Annotated[
        dict[str, dict[Annotated[str, Meta(pattern="^[A-Z][A-Za-z0-9]*$", description="the name of a gate")], bool]],
        Meta(description="gates of each component", extra_json_schema={"propertyNames": {"enum": COMPONENTS}}),
    ] = field(default_factory=dict)


class FeatureSet(Format, frozen=True):
    """A set of features, by minor version."""

    about: Annotated[Text, Meta(description="what is enabled")]
    kubernetes: Annotated[
        dict[Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$", description="MAJOR.MINOR")], ReleaseFeatures],
        Meta(min_length=1),
    ]


def resolve(requested: FeatureRequest, minor: str, gates_of: GatesOf | None = None) -> Features:
    """Return the requested features for a minor version of Kubernetes. Later settings override earlier ones, and
    individual settings override presets.

    A gate without a component applies to each component that knows the gate, or to all components if `gates_of` is not
    given. Raises UsageError if a preset, a component or a gate is unknown.
    """
    gates: dict[str, dict[str, bool]] = {}
    runtime_config: dict[str, bool] = {}
    for name in requested.presets:
        preset_features = preset(name, minor)
        for component, switches in preset_features.gates.items():
            gates.setdefault(component, {}).update(switches)
        runtime_config.update(preset_features.runtime_config)
    for text, component, name, is_enabled in _switches(requested.gates, GATES):
        for target in [component] if component else _components_with_gate(text, name, minor, gates_of):
            gates.setdefault(target, {})[name] = is_enabled
    for text, component, name, is_enabled in _switches(requested.runtime_config, RUNTIME_CONFIG):
        if component:
            raise UsageError(
                f"only {APISERVER} has it",
                where=f"{RUNTIME_CONFIG} {text}",
                hint=f"give {name}={str(is_enabled).lower()}",
            )
        runtime_config[name] = is_enabled
    return Features(gates, runtime_config)


def resolve_for_programs(requested: FeatureRequest, minor: str, program: Callable[[str], Path]) -> Features:
    """Return the requested features for programs, which are given by component. Raises UsageError like `resolve`."""
    return resolve(requested, minor, lambda component: known_gates(program(component)))


def preset(name: str, minor: str) -> Features:
    """Return a named set of features for a minor version. Raises UsageError if there is no such set, or none for this
    version."""
    files = {path.stem: path for path in (folder("fixtures") / "features").glob("*.yaml")}
    if name not in files:
        raise UsageError(f"unknown features {name!r}", where=PRESET, hint=documents.suggestion(name, files))
    minors = read(files[name])
    if minor not in minors:
        raise UsageError(
            f"Kubernetes {minor} does not have them", where=f"{PRESET} {name}", hint=f"it is for {', '.join(minors)}"
        )
    return minors[minor]


def read(path: Path) -> dict[str, Features]:
    """Return the features in a file by minor version. Raises UsageError if the file is invalid."""
    _, content = formats.read(path, FeatureSet)
    return {minor: Features(entry.feature_gates, entry.runtime_config) for minor, entry in content.kubernetes.items()}


def known_gates(program: Path) -> frozenset[str]:
    """Return the feature gates in the help of a component, which omits gates that are GA or deprecated."""
    try:
        completed_process = subprocess.run(
            [str(program), "--help"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(f"has no help that lists its feature gates: {error}", where=str(program)) from error
    return frozenset(_LISTED_GATE.findall(completed_process.stdout + completed_process.stderr))


def explanation(component: str, log: str) -> UsageError | None:
    """Return the mistake in the features that made a component exit, if the component's log shows one (WL37-E06)."""
    if match := re.search(r"unrecognized feature gate: (\w+)", log):
        problem = f"{component} does not know the feature gate {match[1]}"
        return UsageError(problem, where=GATES, hint="leave it out, or use the version of Kubernetes that has it")
    if match := re.search(r"(\w+) is enabled, but depends on features that are disabled: \[([\w ]+)\]", log):
        needed_gates = ",".join(f"{component}:{name}=true" for name in match[2].split())
        problem = f"the feature gate {match[1]} of {component} depends on {' and '.join(match[2].split())}"
        return UsageError(problem, where=GATES, hint=f"add {GATES} {needed_gates}")
    if match := re.search(r"cannot set feature gate (\w+) to (\w+), feature is locked to (\w+)", log):
        return UsageError(f"{component} has {match[1]} locked to {match[3]}", where=GATES, hint="leave it out")
    if match := re.search(r"unknown api (?:groups?|versions?) ?\[?([\w./ -]+)\]?", log):
        problem = f"{component} does not know the API {match[1].strip()}"
        return UsageError(problem, where=RUNTIME_CONFIG, hint="give one that this version of Kubernetes has")
    return None


def _switches(option_values: Iterable[str], option: str) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the text, the component (may be empty), the name and the value of each switch."""
    for text in (part.strip() for option_value in option_values for part in option_value.split(",")):
        match = _SWITCH.fullmatch(text)
        if match is None:
            form = "NAME=true, or COMPONENT:NAME=true" if option == GATES else "GROUP/VERSION=true"
            raise UsageError(f"{text!r} is not a switch", where=option, hint=f"give {form}, or =false")
        component = match["component"] or ""
        if component and component not in COMPONENTS:
            hint = documents.suggestion(component, COMPONENTS)
            raise UsageError(f"unknown component {component!r}", where=f"{option} {text}", hint=hint)
        yield text, component, match["name"], match["value"] == "true"


def _components_with_gate(text: str, name: str, minor: str, gates_of: GatesOf | None) -> Iterable[str]:
    if gates_of is None:
        return COMPONENTS
    gates = {component: gates_of(component) for component in COMPONENTS}
    if components := [component for component in COMPONENTS if name in gates[component]]:
        return components
    raise UsageError(
        f"no component of Kubernetes {minor} lists the feature gate {name}",
        where=f"{GATES} {text}",
        hint=documents.suggestion(name, frozenset().union(*gates.values())) + "; name the component to set it anyway",
    )


def _switch_list(switches: Mapping[str, bool]) -> str:
    return ",".join(f"{name}={str(is_enabled).lower()}" for name, is_enabled in switches.items())
