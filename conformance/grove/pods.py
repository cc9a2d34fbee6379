"""Read the properties of a clique's pod that tests need."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import Document, condition_is, controller, items, label, terminating, text
from conformance.grove.kinds import PODCLIQUES


def gates(pod: Document) -> set[str]:
    """Return the names of the pod's scheduling gates."""
    return {text(gate, "name") for gate in items(pod, "spec", "schedulingGates")}


def is_gated(pod: Document) -> bool:
    """Return whether the pod has a gate other than the suite's foreign ones: no document specifies the name of the
    operator's gate (GANG-026)."""
    return any(not gate.startswith(labels.FOREIGN_PREFIX) for gate in gates(pod))


def node(pod: Document) -> str:
    """Return the node that the pod is bound to; empty while it is not bound."""
    return text(pod, "spec", "nodeName")


def is_bound(pod: Document) -> bool:
    """Return whether the pod is bound to a node."""
    return node(pod) != ""


def has_ended(pod: Document) -> bool:
    """Return whether the pod is Succeeded or Failed."""
    return text(pod, "status", "phase") in ("Failed", "Succeeded")


def is_ready(pod: Document) -> bool:
    """Return whether the pod is Ready. A pod that has ended is not Ready, even if its conditions say so."""
    return condition_is(pod, "Ready") == "True" and not has_ended(pod)


def owner(pod: Document) -> Document:
    """Return the owner reference to the pod's clique: the controller reference or, without one, an owner reference of
    kind PodClique (CORE-045)."""
    references = items(pod, "metadata", "ownerReferences")
    cliques = (reference for reference in references if text(reference, "kind") == PODCLIQUES.kind)
    return controller(pod) or next(cliques, {})


def clique(pod: Document) -> str:
    """Return the name of the pod's clique: from its owner reference, or from its label if it has none (CORE-045)."""
    return text(owner(pod), "name") or label(pod, labels.CLIQUE)


def is_of_grove(pod: Document) -> bool:
    """Return whether the labels of the pod mark it as a pod of a Grove operator."""
    return (
        bool(label(pod, labels.CLIQUE) or label(pod, labels.GANG)) or label(pod, labels.MANAGED_BY) == labels.OPERATOR
    )


def phase(pod: Document) -> str:
    """Return the pod's state as one word: terminating, gated, waiting, bound, ready, or the phase in lower case."""
    if terminating(pod):
        return "terminating"
    if is_gated(pod):
        return "gated"
    if not is_bound(pod):
        return "waiting"
    if is_ready(pod):
        return "ready"
    phase_word = text(pod, "status", "phase").lower()
    return "bound" if phase_word in ("", "pending", "running") else phase_word
