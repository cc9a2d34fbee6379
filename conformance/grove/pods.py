"""What can be read off a pod of a clique."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import Document, condition_is, items, label, terminating, text


def gates(pod: Document) -> set[str]:
    """The names of its scheduling gates."""
    return {text(gate, "name") for gate in items(pod, "spec", "schedulingGates")}


def gated(pod: Document) -> bool:
    """Whether Grove's own gate still holds it (OBJ-501)."""
    return labels.GATE in gates(pod)


def node(pod: Document) -> str:
    """The node that it is bound to, empty while it is bound to none."""
    return text(pod, "spec", "nodeName")


def bound(pod: Document) -> bool:
    return node(pod) != ""


def ended(pod: Document) -> bool:
    """Whether its containers have run to an end."""
    return text(pod, "status", "phase") in ("Failed", "Succeeded")


def ready(pod: Document) -> bool:
    """Whether it serves. A pod that has ended does not, whatever condition somebody has left on it."""
    return condition_is(pod, "Ready") == "True" and not ended(pod)


def of_grove(pod: Document) -> bool:
    """Whether a Grove operator made it, as far as its labels tell."""
    return (
        bool(label(pod, labels.CLIQUE) or label(pod, labels.GANG)) or label(pod, labels.MANAGED_BY) == labels.OPERATOR
    )


def phase(pod: Document) -> str:
    """One word for people: terminating, gated, waiting, bound, ready, or the phase in lower case."""
    if terminating(pod):
        return "terminating"
    if gated(pod):
        return "gated"
    if not bound(pod):
        return "waiting"
    if ready(pod):
        return "ready"
    seen = text(pod, "status", "phase").lower()
    return "bound" if seen in ("", "pending", "running") else seen
