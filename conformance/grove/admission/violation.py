"""Violations of admission rules, and the facts on which the rules depend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Violation:
    """A broken rule, and the end of the field path that a rejection must name."""

    rule: str
    leaf: str


@dataclass(frozen=True)
class AdmissionFacts:
    """The facts, in addition to the set itself, on which the verdict depends."""

    topology: bool = False
    """Whether topology-aware scheduling is enabled."""
    mnnvl: bool = False
    schedulers: Sequence[str] = ()
    """Names of schedulers that are known to be enabled. The empty name is always valid."""
    bindings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """ClusterTopologyBinding → its domains, broadest first."""


def cliques(pcs: Document) -> list[Document]:
    """Return the clique templates of a set."""
    templates: list[Document] = pcs["spec"]["template"].get("cliques") or []
    return templates


def groups(pcs: Document) -> list[Document]:
    """Return the scaling group templates of a set."""
    templates: list[Document] = pcs["spec"]["template"].get("podCliqueScalingGroups") or []
    return templates
