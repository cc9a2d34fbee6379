"""The format of files of scenarios (`fixtures/scheduling/*.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from conformance.formats import Format, Text

RESOURCES = ("gpus", "cpu", "memory")
PAIR_DEMANDS = ("hostPorts", "apart", "together", "spread")
"""The demands of a group that depend on other pods."""
DEMANDS = ("nodeSelector", "tolerations", "nodeAffinity", "claim", "requestedBy", *PAIR_DEMANDS)
"""The fields of a group that its pods demand of nodes and of other pods."""

Name = Annotated[str, Meta(pattern="^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]
Names = tuple[Name, ...]
Key = Annotated[Text, Meta(description="a key of the nodes' labels")]
Labels = Annotated[dict[str, str], Meta(description="label keys and values, both as text")]
Amount = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]


class Resources(Format, frozen=True, kw_only=True):
    """Amounts of resources: whole GPUs, whole CPUs, GiB of memory."""

    gpus: Amount | None = None
    cpu: Amount | None = None
    memory: Amount | None = None

    @property
    def amounts(self) -> dict[str, int]:
        """Return the given amounts by resource."""
        return {name: amount for name in RESOURCES if (amount := getattr(self, name)) is not None}


class NodeTaint(Format, frozen=True, omit_defaults=True):
    """A taint of a node."""

    key: str
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"]
    value: str | None = None


class NodeEntry(Resources, frozen=True, kw_only=True):
    """A node, or `count` nodes, named name-0, name-1 …. CPU and memory are unlimited by default."""

    name: Name
    gpus: Amount
    count: Count | None = None
    labels: Labels = field(default_factory=dict)
    taints: tuple[NodeTaint, ...] = ()
    schedulable: Annotated[bool, Meta(description="false: cordoned or not Ready")] = True


class RunningEntry(Resources, frozen=True, kw_only=True):
    """A pod that runs at the start. Resources and a priority are those of a pod without a gang."""

    name: Name
    node: Name
    gang: Name = ""
    group: Name = ""
    priority: int = 0
    state: Literal["running", "terminating", "finished"] = "running"


class Term(Format, frozen=True, omit_defaults=True):
    """A term of a required affinity or anti-affinity. By default, it selects the pods of its own group."""

    key: Key
    groups: (
        Annotated[
            list[Annotated[str, Meta(pattern="^[-a-zA-Z0-9]+/[-a-zA-Z0-9]+$", description="gang/group")]],
            Meta(min_length=1),
        ]
        | None
    ) = None


class SpreadConstraint(Format, frozen=True):
    """A topology spread constraint with DoNotSchedule over the pods of the group."""

    key: Key
    max_skew: Count


class GroupEntry(Resources, frozen=True, kw_only=True, omit_defaults=True):
    """A pod group. Each pod requests one GPU by default."""

    name: Name
    min: Amount
    desired: Amount
    required: Key = ""
    preferred: Key = ""
    node_selector: Labels | None = None
    tolerations: list[dict[str, str]] | None = None
    node_affinity: list[dict[str, Any]] | None = None
    """The terms of the required node affinity."""
    claim: Annotated[Name, Meta(description="a PersistentVolumeClaim that does not exist")] | None = None
    requested_by: Literal["containers", "pod", "sidecar", "init"] | None = None
    """The part of the pod that requests CPU and memory; the containers by default."""
    host_ports: Annotated[list[Annotated[int, Meta(ge=1, le=65535)]], Meta(min_length=1)] | None = None
    apart: Annotated[list[Term], Meta(min_length=1, description="required anti-affinity")] | None = None
    together: Annotated[list[Term], Meta(min_length=1, description="required affinity")] | None = None
    spread: Annotated[list[SpreadConstraint], Meta(min_length=1)] | None = None
    gated: Amount | None = None
    """Additional pods with a foreign scheduling gate; min may then be more than desired."""
    missing: Amount | None = None
    """Pods that the gang references but that do not exist; min may then be more than desired."""

    @property
    def demands(self) -> dict[str, Any]:
        """Return the demands of the pods, by the names of the fields."""
        return {key: value for key, value in msgspec.to_builtins(self).items() if key in DEMANDS}


class Scope(Format, frozen=True):
    """A topology constraint of some groups of a gang. The keys are node label keys; empty for no constraint."""

    groups: Annotated[Names, Meta(min_length=1)]
    required: Key = ""
    preferred: Key = ""


class GangEntry(Format, frozen=True, kw_only=True):
    """A gang. `base` is the base gang of a scaled gang, `configs` are constraints over some of the groups."""

    name: Name
    priority: int = 0
    base: Name = ""
    required: Key = ""
    preferred: Key = ""
    configs: tuple[Scope, ...] = ()
    groups: Annotated[tuple[GroupEntry, ...], Meta(min_length=1)]


class RestExpectation(Format, frozen=True, kw_only=True):
    """The expected outcomes when an instance is at rest; None or empty if nothing is expected. `always` are gangs that
    are placed in every permitted outcome, `never` those that are placed in none; `admitted` is the number of gangs that
    are placed in every permitted outcome; `victims` are the sets of running pods that may be evicted, in outcomes
    without needless evictions."""

    always: Names = ()
    never: Names = ()
    admitted: Amount | None = None
    victims: Annotated[tuple[frozenset[Name], ...], Meta(min_length=1)] = ()


class Expectation(RestExpectation, frozen=True, kw_only=True):
    """The expected outcomes of an instance. `must` is the number of permitted outcomes, and `should` that of
    recommended ones, if not all permitted ones are; `forbidden` are outcomes of wrong schedulers: gang → group → node →
    number of pods bound there."""

    must: Count | None = None
    should: Count | None = None
    forbidden: tuple[Mapping[str, Mapping[str, Mapping[str, Count]]], ...] = ()

    @property
    def recommended(self) -> int | None:
        """Return the number of recommended outcomes."""
        return self.must if self.should is None else self.should


class ChangeEntry(RestExpectation, frozen=True, kw_only=True):
    """The change once the instance is at rest, and what is expected at the next rest."""

    nodes: tuple[NodeEntry, ...] = ()
    deleted: Names = ()
    gangs: tuple[GangEntry, ...] = ()


class ScenarioEntry(Expectation, frozen=True, kw_only=True):
    """An instance with what is expected of it. `enumerable` is false if there are too many outcomes to list; a given
    one can still be judged."""

    id: Annotated[
        Name,
        Meta(
            max_length=30,
            description="GS-S… of the specification, or the origin of a counterexample; part of the names and labels of"
            " nodes",
        ),
    ]
    about: Annotated[str, Meta(description="what it shows")] = ""
    checks: Annotated[
        tuple[Annotated[str, Meta(pattern="^[A-Z]+-[0-9]{3}$")], ...],
        Meta(min_length=1, description="the requirements that a forbidden outcome breaks"),
    ] = ()
    nodes: Annotated[tuple[NodeEntry, ...], Meta(min_length=1)]
    running: tuple[RunningEntry, ...] = ()
    gangs: tuple[GangEntry, ...]
    enumerable: bool = True
    then: ChangeEntry | None = None


class ScenarioFile(Format, frozen=True):
    """A file of scenarios."""

    scenarios: Annotated[tuple[ScenarioEntry, ...], Meta(min_length=1)]
