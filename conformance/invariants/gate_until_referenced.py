"""INV-001: a pod keeps Grove's gate until its gang references it."""

from __future__ import annotations

from conformance.history.gangs import ObservedGang
from conformance.invariants.gates import GateUntilGang


class GateUntilReferenced(GateUntilGang):
    """INV-001."""

    id = "INV-001"
    statement = (
        "a pod of a set without the strategy Coherent keeps Grove's gate until its PodGang exists and references it"
    )

    def lack(self, gang: ObservedGang, clique: str, pod: str) -> str:
        """Return a message if the gang is missing or does not reference the pod."""
        if not gang.exists:
            return "did not exist"
        referenced = pod in gang.references.get(clique, ())
        return "" if referenced else f"did not reference it in the PodGroup {clique}"
