"""Scenarios: acts of users on a set, as data (fixtures/nemesis/). A fault strikes in one step of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from conformance import data, documents, formats
from conformance.errors import UsageError
from conformance.formats import Format
from conformance.grove import workloads

ACTS = ("create", "patch", "image", "crash", "upgrade", "delete")

NoArguments = Annotated[dict[str, Any], Meta(max_length=0)]


class ObjectPatch(Format, frozen=True):
    """A merge patch of an object."""

    resource: str
    name: str
    body: dict[str, Any]
    subresource: str | None = None


class ScenarioStep(Format, frozen=True):
    """One act, with its arguments. `quiet`: the step only prepares other steps, so no fault strikes in it. `rest`:
    seconds without a change after which the step has ended; it must exceed every delay within the step."""

    name: Annotated[str, Meta(pattern="^[a-z][a-z0-9-]*$")]
    quiet: bool = False
    rest: Annotated[float, Meta(gt=0)] = 1.5
    create: NoArguments | None = None
    patch: Annotated[list[ObjectPatch], Meta(min_length=1)] | None = None
    image: Annotated[dict[str, str], Meta(min_length=1)] | None = None
    """Maps cliques to their new images."""
    crash: str | None = None
    """The clique whose pods crash."""
    upgrade: NoArguments | None = None
    delete: NoArguments | None = None

    @property
    def act(self) -> str:
        """Return the name of the act."""
        return next(act for act in ACTS if getattr(self, act) is not None)


class FaultScenarioFormat(Format, frozen=True):
    """A set and its steps. `requires` are the features without which the scenario cannot be run."""

    text: str
    workload: str
    steps: Annotated[
        list[Annotated[ScenarioStep, Meta(extra_json_schema={"oneOf": [{"required": [act]} for act in ACTS]})]],
        Meta(min_length=1),
    ]
    values: dict[str, Any] = field(default_factory=dict)
    """Parameters of the workload."""
    strategy: dict[str, Any] | None = None
    requires: frozenset[str] = frozenset()


class FaultScenario(FaultScenarioFormat, frozen=True, kw_only=True):
    """A scenario with its name and its set."""

    name: str
    manifest: Mapping[str, Any]

    @property
    def set_name(self) -> str:
        """Return the name of the set."""
        return str(self.manifest["metadata"]["name"])

    @property
    def starts_with_earlier_version(self) -> bool:
        """Return whether the scenario starts with an earlier version of the operator, which a step upgrades."""
        return any(step.upgrade is not None for step in self.steps)


def folder() -> Path:
    """Return the folder with the scenarios."""
    return data.folder("fixtures") / "nemesis"


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def load(name: str) -> FaultScenario:
    """Return a scenario. Raises UsageError for an unknown name."""
    if name not in names():
        raise UsageError(f"unknown scenario {name!r}", hint=documents.suggestion(name, names()))
    _, content = formats.read(folder() / f"{name}.yaml", FaultScenarioFormat)
    manifest = workloads.load(content.workload, content.values)
    if content.strategy is not None:
        manifest["spec"]["updateStrategy"] = content.strategy
    return FaultScenario(name=name, manifest=manifest, **msgspec.structs.asdict(content))
