"""The inputs of the laboratory of coherent updates: gang layouts, workloads, and disturbances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from conformance.documents import suggestion
from conformance.errors import UsageError

Sizes = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class GangLayout:
    """One way to form gangs in an update. `annotation` is the gang layout that the set requests, or empty for the
    default. `parameters` are the parameters with which the implementation is started."""

    name: str
    description: str
    annotation: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """A set with one replica: its standalone cliques and scaling groups with their replicas and minAvailable. `budgets`
    has the values of maxUnavailable that differ from minAvailable."""

    name: str
    description: str
    cliques: Sizes
    groups: Sizes
    budgets: Mapping[str, int] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the replicas and minAvailable of each component."""
        return {**self.cliques, **self.groups}


@dataclass(frozen=True)
class Disturbance:
    """A disturbance that happens while the set is updated."""

    name: str
    description: str


LAYOUTS = (
    GangLayout("PerStep", "an anchor for each step, the others in gangs of their own"),
    GangLayout("SingleAnchor", "one anchor, all others in gangs of their own", annotation="SingleAnchor"),
    GangLayout(
        "FirstText",
        "the proposal's first text: anchors one by one, then everything else at once",
        parameters={"mutant": "first-text"},
    ),
)
WORKLOADS = (
    Workload("sample", "f 5/2, p 4/1, d 3/1", {"f": (5, 2)}, {"p": (4, 1), "d": (3, 1)}),
    Workload("wide", "f 3/2, p 9/1", {"f": (3, 2)}, {"p": (9, 1)}),
    Workload(
        "table",
        "f 10/2, p 10/3, d 20/3 with maxUnavailable 4",
        {"f": (10, 2)},
        {"p": (10, 3), "d": (20, 3)},
        {"d": 4},
    ),
)
QUIET, PREEMPTION, NODE_FAILURE = "quiet", "preemption", "node failure"
COURSES = (
    Disturbance(
        QUIET, "nothing else; after the update, the last of several scaling groups is scaled in to its minimum"
    ),
    Disturbance(
        PREEMPTION,
        "a pod of higher priority takes the node of a new replica of p above the minimum for 3 seconds: of the first "
        "one that shares its gang, or of any once more than half of p is new",
    ),
    Disturbance(
        NODE_FAILURE, "once the first new replica of p is available, the node of an old one fails, for 3 seconds"
    ),
)


class Selectable(Protocol):
    """A part of an experiment that users select by its name."""

    @property
    def name(self) -> str:
        """Return the name."""


SelectableT = TypeVar("SelectableT", bound=Selectable)


def select(names: Sequence[str], items: Sequence[SelectableT], option: str) -> list[SelectableT]:
    """Return the items with these names, in the order of `items`; if `names` is empty, return all items. Raises
    UsageError for an unknown name."""
    by_name = {item.name: item for item in items}
    for name in names:
        if name not in by_name:
            raise UsageError(f"unknown value {name!r}", where=option, hint=suggestion(name, by_name))
    return [entry for entry in items if not names or entry.name in names]


@dataclass(frozen=True)
class Trial:
    """One update to be measured: a layout, a workload, a disturbance, and the number of the run."""

    layout: GangLayout
    workload: Workload
    course: Disturbance
    run: int

    @property
    def key(self) -> str:
        """Return a name of the trial for logs and namespaces."""
        return "-".join([self.workload.name, self.layout.name, self.course.name.replace(" ", "-"), str(self.run)])
