"""The gaps and their instances, read from `fixtures/gaps/`, and the judgement of one outcome. Pure except for
`load`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import documents
from conformance.data import folder
from conformance.errors import UsageError

MINIMUM, NOTHING = "minimum", "nothing"
"""Outcomes that an instance can expect: the minimum of each component is bound, or nothing is bound."""

Counts = Mapping[str, Sequence[int]]
"""Maps a component to the number of bound pods of each replica. A component whose replicas are single pods has one
number for all of them."""


@dataclass(frozen=True)
class NodeGroup:
    """Nodes with the same properties. If `taken` is set, a pod without a controller runs on each of them. Nodes with a
    `profile` have its capacity and offer its GPUs as devices, of which `faulty` have failed."""

    count: int = 1
    gpus: int = 1
    rack: str = ""
    block: str = ""
    taken: bool = False
    profile: str = ""
    faulty: int = 0


@dataclass(frozen=True)
class ServiceComponent:
    """One role of a service. `minimum` of its replicas are required, each with all of its `pods`. `rack`: each replica
    must be in one rack. If `device` is set, each pod claims such a device instead of requesting GPUs, and needs `cpu`;
    `shared`: all pods of the service use one claim."""

    name: str
    minimum: int
    replicas: int = 1
    pods: int = 1
    gpus: int = 1
    rack: bool = False
    device: str = ""
    shared: bool = False
    cpu: int = 1

    @property
    def is_single_pod(self) -> bool:
        """Return whether a replica is a single pod."""
        return self.pods == 1

    def count_complete(self, bound: Sequence[int]) -> int:
        """Return the number of replicas whose pods are all bound."""
        return bound[0] if self.is_single_pod else sum(count >= self.pods for count in bound)


@dataclass(frozen=True)
class GapInstance:
    """Nodes, a service, and the outcome that the instance must have. `rows` are the rows of the specification that
    describe it. `block`: the whole service must be in one block. `lost`: components that lose a pod once all pods run;
    the pod is recreated after the node of the first lost pod has been taken."""

    name: str
    rows: tuple[str, ...]
    nodes: tuple[NodeGroup, ...]
    components: tuple[ServiceComponent, ...]
    expect: str
    block: bool = False
    lost: tuple[str, ...] = ()

    @property
    def claims_devices(self) -> bool:
        """Return whether pods claim devices."""
        return any(component.device for component in self.components)

    def bound_part(self, bound: Counts) -> str:
        """Return the part of the service that is bound: the minimum of each component, nothing, or something else
        (`part`)."""
        if not any(sum(bound[component.name]) for component in self.components):
            return NOTHING
        all_minimal = all(
            component.count_complete(bound[component.name]) >= component.minimum for component in self.components
        )
        return MINIMUM if all_minimal else "part"

    def matches_expectation(self, bound: Counts) -> bool:
        """Return whether an outcome is the expected one."""
        if self.expect.endswith(" again"):
            [component] = [match for match in self.components if match.name == self.expect.removesuffix(" again")]
            return component.count_complete(bound[component.name]) >= component.minimum
        return self.bound_part(bound) == self.expect


@dataclass(frozen=True)
class Gap:
    """Something that inference needs, with its instances. `expressed_by` are the APIs that can express it."""

    name: str
    title: str
    needs: str
    expressed_by: tuple[str, ...]
    instances: tuple[GapInstance, ...]

    def closure(self, api: str, correct_outcomes: Sequence[bool]) -> str:
        """Return the degree to which the API closes the gap: `closed`, `partly` or `not`. A gap that the API cannot
        express is not closed, even if the outcomes happen to be right."""
        if api not in self.expressed_by or not any(correct_outcomes):
            return "not"
        return "closed" if all(correct_outcomes) else "partly"


def load(path: Path | None = None) -> tuple[Gap, ...]:
    """Read the gaps. If the file is invalid, raises UsageError with the file, line and field."""
    directory = folder("fixtures") / "gaps"
    document = documents.read(path or directory / "inference.yaml", directory / "gaps.schema.json")
    gaps, names = tuple(_gap(entry) for entry in document.value["gaps"]), set[str]()
    for number, gap in enumerate(gaps):
        for index, instance in enumerate(gap.instances):
            if instance.name in names:
                location = document.location("gaps", number, "instances", index, "name")
                raise UsageError(f"{instance.name} is defined twice", where=location, hint="give it another name")
            names.add(instance.name)
    return gaps


def _gap(entry: Mapping[str, Any]) -> Gap:
    instances = tuple(_instance(child) for child in entry["instances"])
    return Gap(entry["name"], entry["title"], entry["needs"], tuple(entry["saidBy"]), instances)


def _instance(entry: Mapping[str, Any]) -> GapInstance:
    return GapInstance(
        name=entry["name"],
        rows=tuple(entry["rows"]),
        nodes=tuple(NodeGroup(**group) for group in entry["nodes"]),
        components=tuple(_component(component) for component in entry["components"]),
        expect=entry["expect"],
        block=entry.get("block", False),
        lost=tuple(entry.get("lost", ())),
    )


def _component(entry: Mapping[str, Any]) -> ServiceComponent:
    return ServiceComponent(**{"gpus": 0, **entry} if "device" in entry else entry)
