"""INV-005: a pod keeps Grove's gate until its gang is Initialized."""

from __future__ import annotations

from conformance.history.gangs import ObservedGang
from conformance.invariants.gates import GateUntilGang


class GateUntilInitialized(GateUntilGang):
    """INV-005. Separate from INV-001 because a known operator satisfies only INV-001 (OBJ-504)."""

    id = "INV-005"
    statement = "a pod of a set without the strategy Coherent keeps Grove's gate until its PodGang is Initialized"

    def lack(self, gang: ObservedGang, clique: str, pod: str) -> str:
        """Return a message if the gang is missing or not Initialized."""
        if not gang.exists:
            return "did not exist"
        return "" if gang.is_initialized else "was not Initialized"
