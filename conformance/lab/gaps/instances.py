"""The gaps and their instances, read from `fixtures/gaps/`, and the judgement of one outcome. Pure except for
`load`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from conformance import formats
from conformance.data import folder
from conformance.errors import UsageError
from conformance.formats import Format

MINIMUM, NOTHING = "minimum", "nothing"
"""Outcomes that an instance can expect: the minimum of each component is bound, or nothing is bound."""

Counts = Mapping[str, Sequence[int]]
"""Maps a component to the number of bound pods of each replica. A component whose replicas are single pods has one
number for all of them."""


Name = Annotated[str, Meta(pattern="^[a-z][a-z0-9-]*$")]
Count = Annotated[int, Meta(ge=1)]


class NodeGroup(Format, frozen=True):
    """Nodes with the same properties. If `taken` is set, a pod without a controller runs on each of them. Nodes with a
    `profile` have its capacity and offer its GPUs as devices, of which `faulty` have failed."""

    count: Count = 1
    gpus: Count = 1
    rack: str = ""
    block: str = ""
    taken: bool = False
    profile: str = ""
    faulty: Count = 0


class ServiceComponent(Format, frozen=True):
    """One role of a service. `minimum` of its replicas are required, each with all of its `pods`. `rack`: each replica
    must be in one rack. If `device` is set, each pod claims such a device instead of requesting GPUs, and needs `cpu`;
    `shared`: all pods of the service use one claim."""

    name: Name
    minimum: Count
    replicas: Count = 1
    pods: Count = 1
    gpus: Annotated[int, Meta(ge=0, description="of each pod; 0 for a pod with a device")] = 1
    rack: bool = False
    device: Annotated[
        str, Meta(pattern=r"^(gpu|[0-9]+g\.[0-9]+gb)$", description="a whole GPU, or a partition by its profile")
    ] = ""
    shared: bool = False
    cpu: Count = 1

    @property
    def is_single_pod(self) -> bool:
        """Return whether a replica is a single pod."""
        return self.pods == 1

    def count_complete(self, bound: Sequence[int]) -> int:
        """Return the number of replicas whose pods are all bound."""
        return bound[0] if self.is_single_pod else sum(count >= self.pods for count in bound)


class GapInstance(Format, frozen=True):
    """Nodes, a service, and the outcome that the instance must have. `rows` are the rows of the specification that
    describe it, starting with the one that says most. `block`: the whole service must be in one block. `lost`:
    components that lose a pod once all pods run; the pod is recreated after the node of the first lost pod has been
    taken."""

    name: Name
    rows: Annotated[
        tuple[Annotated[str, Meta(pattern="^(WL|DRA)")], ...],
        Meta(min_length=1, extra_json_schema={"uniqueItems": True}),
    ]
    nodes: Annotated[tuple[NodeGroup, ...], Meta(min_length=1)]
    components: Annotated[
        tuple[Annotated[ServiceComponent, Meta(extra_json_schema={"dependentRequired": {"device": ["gpus"]}})], ...],
        Meta(min_length=1),
    ]
    """In the order of their names and their creation."""
    expect: Annotated[
        str,
        Meta(
            pattern="^(minimum|nothing|[a-z][a-z0-9-]* again)$",
            description="what must be bound: the minimum of each component, nothing, or the pods of a component again",
        ),
    ]
    block: bool = False
    lost: tuple[Name, ...] = ()

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


class Gap(Format, frozen=True):
    """Something that inference needs, and why, with its instances. `expressed_by` are the APIs that can express
    it; what another one does is luck."""

    name: Name
    title: Annotated[str, Meta(min_length=5)]
    needs: Annotated[str, Meta(min_length=10)]
    expressed_by: Annotated[
        tuple[Literal["plain", "groups", "trees", "sets", "podgangs"], ...],
        Meta(extra_json_schema={"uniqueItems": True}),
    ]
    instances: tuple[GapInstance, ...]

    def closure(self, api: str, correct_outcomes: Sequence[bool]) -> str:
        """Return the degree to which the API closes the gap: `closed`, `partly` or `not`. A gap that the API cannot
        express is not closed, even if the outcomes happen to be right."""
        if api not in self.expressed_by or not any(correct_outcomes):
            return "not"
        return "closed" if all(correct_outcomes) else "partly"


class GapList(Format, frozen=True):
    """The format of a file of gaps."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["Gaps"]
    gaps: Annotated[tuple[Gap, ...], Meta(min_length=1)]


def load(path: Path | None = None) -> tuple[Gap, ...]:
    """Read the gaps. If the file is invalid, raises UsageError with the file, line and field."""
    document, file = formats.read(path or folder("fixtures") / "gaps" / "inference.yaml", GapList)
    names = set[str]()
    for number, gap in enumerate(file.gaps):
        for index, instance in enumerate(gap.instances):
            if instance.name in names:
                location = document.location("gaps", number, "instances", index, "name")
                raise UsageError(f"{instance.name} is defined twice", where=location, hint="give it another name")
            names.add(instance.name)
    return file.gaps
