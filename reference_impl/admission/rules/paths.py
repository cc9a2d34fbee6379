"""Paths of fields, as the API writes them."""

from __future__ import annotations

TEMPLATE = "spec.template"
CLIQUES = f"{TEMPLATE}.cliques"
GROUPS = f"{TEMPLATE}.podCliqueScalingGroups"


def clique(index: int) -> str:
    return f"{CLIQUES}[{index}]"


def group(index: int) -> str:
    return f"{GROUPS}[{index}]"
