"""Violations of rules by a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Violation:
    """A broken rule, and where a refusal must point: the end of the field's path."""

    rule: str
    leaf: str


@dataclass(frozen=True)
class AdmissionFacts:
    """The facts that the verdict depends on besides the set itself."""

    topology: bool = False
    """Whether topology-aware scheduling is enabled."""
    mnnvl: bool = False
    schedulers: Sequence[str] = ()
    """Names of schedulers that are certainly enabled. The empty name is always valid."""
    bindings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """ClusterTopologyBindings with their domains, broadest first."""


def cliques(pcs: Document) -> list[Document]:
    """Return the clique templates of a set."""
    templates: list[Document] = pcs["spec"]["template"].get("cliques") or []
    return templates


def groups(pcs: Document) -> list[Document]:
    """Return the scaling group templates of a set."""
    templates: list[Document] = pcs["spec"]["template"].get("podCliqueScalingGroups") or []
    return templates
