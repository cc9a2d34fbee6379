"""Paths of fields, as the API writes them."""

from __future__ import annotations

TEMPLATE = "spec.template"
CLIQUES = f"{TEMPLATE}.cliques"
GROUPS = f"{TEMPLATE}.podCliqueScalingGroups"


def clique(index: int) -> str:
    """The path of a clique template."""
    return f"{CLIQUES}[{index}]"


def group(index: int) -> str:
    """The path of a scaling group template."""
    return f"{GROUPS}[{index}]"
