"""Scenarios: acts of users on a set, as data (fixtures/nemesis/). A fault strikes in one step of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance import data, documents
from conformance.errors import UsageError
from conformance.grove import workloads

SCHEMA = "scenario.schema.json"
DEFAULT_REST = 1.5
"""Seconds without a change after which a step is at rest, unless the step sets another value."""


@dataclass(frozen=True)
class ScenarioStep:
    """One act. `quiet`: the step only prepares other steps, so no fault strikes in it. `rest`: seconds without a change
    after which the step has ended; it must exceed every delay within the step."""

    name: str
    act: str
    arguments: Any
    quiet: bool = False
    rest: float = DEFAULT_REST


@dataclass(frozen=True)
class FaultScenario:
    """A set and its steps. `requires` are the features without which the scenario cannot be run.
    `starts_with_earlier_version`: the scenario starts with an earlier version of the operator, which a step
    upgrades."""

    name: str
    text: str
    manifest: Mapping[str, Any]
    steps: Sequence[ScenarioStep]
    requires: frozenset[str] = field(default_factory=frozenset)
    starts_with_earlier_version: bool = False

    @property
    def set_name(self) -> str:
        """Return the name of the set."""
        return str(self.manifest["metadata"]["name"])


ACTS = ("create", "patch", "image", "crash", "upgrade", "delete")


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
    value = documents.read(folder() / f"{name}.yaml", folder() / SCHEMA).value
    manifest = workloads.load(value["workload"], value.get("values"))
    if "strategy" in value:
        manifest["spec"]["updateStrategy"] = value["strategy"]
    steps = [_step(step) for step in value["steps"]]
    has_upgrade = any(step.act == "upgrade" for step in steps)
    return FaultScenario(name, value["text"], manifest, steps, frozenset(value.get("requires", ())), has_upgrade)


def _step(value: Mapping[str, Any]) -> ScenarioStep:
    [act] = [act for act in ACTS if act in value]
    return ScenarioStep(value["name"], act, value[act], value.get("quiet", False), value.get("rest", DEFAULT_REST))
