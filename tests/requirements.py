"""Requirements for tests, with a value in each field that needs one."""

from __future__ import annotations

from typing import Any

from conformance.suite.registry.basis import BasisKind
from conformance.suite.registry.requirement import Level, Requirement


def entry(id: str = "AA-001", level: Level = Level.MUST, **fields: Any) -> Requirement:
    """Return a requirement with these fields."""
    defaults = {"profile": "core", "text": f"Text of {id}.", "source": ("X-1",), "since": "v0", "roles": ("operator",)}
    return Requirement(**{"id": id, "level": level, "basis": BasisKind.DECISION, **defaults, **fields})
