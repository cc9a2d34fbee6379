"""What is wrong with a set, by the rule that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Violation:
    """A broken rule, and where a refusal has to point: the end of the field's path."""

    rule: str
    leaf: str


@dataclass(frozen=True)
class Facts:
    """What decides about a set apart from the set itself."""

    topology: bool = False
    """Whether topology-aware scheduling is on."""
    mnnvl: bool = False
    schedulers: Sequence[str] = ()
    """Names that an enabled scheduler certainly has; the empty name always means one."""
    bindings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """ClusterTopologyBindings with their domains, broadest first."""


def cliques(pcs: Document) -> list[Document]:
    found: list[Document] = pcs["spec"]["template"].get("cliques") or []
    return found


def groups(pcs: Document) -> list[Document]:
    found: list[Document] = pcs["spec"]["template"].get("podCliqueScalingGroups") or []
    return found
