"""The rows of the specification that the table of gaps shows, and the places that show them. Pure except for reading
the data."""

from __future__ import annotations

from conformance.lab.gaps import instances
from conformance.lab.gaps.mappings import MAPPINGS


def rows() -> dict[str, tuple[str, ...]]:
    """Return each row with the names of the instances and mappings that show it."""
    by_row: dict[str, list[str]] = {}
    for gap in instances.load():
        for instance in gap.instances:
            for row in instance.rows:
                by_row.setdefault(row, []).append(instance.name)
    for mapping in MAPPINGS:
        by_row.setdefault(mapping.row, []).append(f"{mapping.shape}, {mapping.extra}")
    return {row: tuple(dict.fromkeys(names)) for row, names in by_row.items()}
