"""INV-005: a pod keeps Grove's gate until its gang is Initialized."""

from __future__ import annotations

from conformance.history.gangs import Gang
from conformance.invariants.gates import GateUntilGang


class GateUntilInitialized(GateUntilGang):
    """INV-005. Apart from INV-001, since an operator is known that keeps only that one (OBJ-504)."""

    id = "INV-005"
    what = "a pod keeps Grove's gate until its PodGang is Initialized"

    def lack(self, gang: Gang, clique: str, pod: str) -> str:
        if not gang.exists:
            return "did not exist"
        return "" if gang.initialized else "was not Initialized"
