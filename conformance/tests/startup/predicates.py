"""Helpers that delay the readiness of pods, and predicates of the startup tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.grove import pods
from conformance.grove.expected import ExpectedClique
from conformance.grove.fields import condition_is, name, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes import known_waits
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing import predicates

HOLD_ANNOTATION = "conformance.grove.io/hold-ready"
"""The annotation with which the fake cluster starts a pod but does not make it Ready."""


def with_held_pods(workload: dict[str, Any], *templates: str) -> dict[str, Any]:
    """Hold back the pods of these cliques. The pods are bound and started, but do not become Ready."""
    for clique in workload["spec"]["template"]["cliques"]:
        if clique["name"] in templates:
            clique["annotations"] = {**clique.get("annotations", {}), HOLD_ANNOTATION: "until the scene releases it"}
    return workload


def release(env: SceneEnvironment, pod: str) -> None:
    """Let a pod become Ready."""
    env.patch("pods", pod, {"metadata": {"annotations": {HOLD_ANNOTATION: None}}})


def make_unready(env: SceneEnvironment, pod: str) -> None:
    """Make a pod not Ready until it is released."""
    env.patch("pods", pod, {"metadata": {"annotations": {HOLD_ANNOTATION: "broken"}}})
    conditions = [
        {"type": condition_type, "status": "False", "reason": "ContainersNotReady"} for condition_type in _READINESS
    ]
    conditions += [{"type": condition_type, "status": "True"} for condition_type in ("PodScheduled", "Initialized")]
    env.patch("pods", pod, {"status": {"conditions": conditions}}, subresource="status")


_READINESS = ("ContainersReady", "Ready")


def require_premises(env: SceneEnvironment, *workloads: Mapping[str, Any]) -> None:
    """Raise Blocked if the operator makes pods wait in a way that this cluster cannot simulate, or if pods of these
    workloads are not held back. Copying the annotations of a template to pods is only a SHOULD (RES-115)."""
    current_pods = env.history.view().list("pods")
    known_waits.require(current_pods, template_names={"own"})
    held_cliques = [
        (name(workload), clique["name"])
        for workload in workloads
        for clique in workload["spec"]["template"]["cliques"]
        if HOLD_ANNOTATION in clique.get("annotations", {})
    ]
    for pod in current_pods:
        clique = pods.clique(pod)
        is_held = any(
            clique.startswith(f"{set_name}-") and clique.endswith(f"-{tail}") for set_name, tail in held_cliques
        )
        if is_held and not text(pod, "metadata", "annotations", HOLD_ANNOTATION):
            raise Blocked(f"{name(pod)} lacks the annotation of its template that would hold it back", "circumstances")


def pod_names(view: View, clique: str) -> list[str]:
    """Return the names of the pods of a clique."""
    return [name(pod) for pod in predicates.pods_of(view, clique)]


def ready_counts(view: View, cliques: Iterable[ExpectedClique]) -> dict[str, int]:
    """Return clique → number of Ready pods."""
    return {
        name: sum(map(pods.is_ready, members)) for name, members in predicates.pods_by_clique(view, cliques).items()
    }


@predicate
def are_ready(view: View, cliques: Sequence[ExpectedClique], minimum: int | None = None) -> bool | Unmet:
    """All pods of each clique, or at least `minimum` of them, are Ready."""
    shortfalls = [
        f"{count} of {minimum or predicates.sizes(cliques)[name]} pods of {name} are Ready"
        for name, count in ready_counts(view, cliques).items()
        if count < (minimum or predicates.sizes(cliques)[name])
    ]
    return not shortfalls or Unmet("; ".join(shortfalls))


@predicate
def none_are_ready(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """No pod of the cliques is Ready."""
    ready_pods = [f"{count} pods of {name}" for name, count in ready_counts(view, cliques).items() if count]
    return not ready_pods or Unmet(f"Ready: {', '.join(ready_pods)}")


@predicate
def are_waiting(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """Every pod of the cliques has started on its node. Its init containers may still be running."""
    waiting = [
        name(pod)
        for members in predicates.pods_by_clique(view, cliques).values()
        for pod in members
        if not condition_is(pod, "Initialized")
    ]
    return not waiting or Unmet(f"{waiting[0]} has not been started")
