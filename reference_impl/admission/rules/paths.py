"""Paths of fields, in the notation of the API."""

from __future__ import annotations

TEMPLATE = "spec.template"
CLIQUES = f"{TEMPLATE}.cliques"
GROUPS = f"{TEMPLATE}.podCliqueScalingGroups"


def clique(index: int) -> str:
    """Return the path of a clique template."""
    return f"{CLIQUES}[{index}]"


def group(index: int) -> str:
    """Return the path of a scaling group template."""
    return f"{GROUPS}[{index}]"
