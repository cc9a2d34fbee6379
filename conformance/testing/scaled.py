"""Scaling of objects, and predicates about the number of pods."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import pods
from conformance.grove.fields import uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing import predicates


def scale(env: SceneEnvironment, resource: str, name: str, replicas: int) -> None:
    """Set the replicas through the scale subresource, as `kubectl scale` and autoscalers do."""
    env.patch(resource, name, {"spec": {"replicas": replicas}}, subresource="scale")


@predicate
def pods_are(view: View, sizes: Mapping[str, int], *, ready: bool = False, excluded_uid: str = "") -> bool | Unmet:
    """Each of these cliques has this number of pods, and no pod has the UID `excluded_uid`. With `ready`, all these
    pods are Ready."""
    pods_by_clique = {clique: predicates.pods_of(view, clique) for clique in sizes}
    counts = {clique: len(clique_pods) for clique, clique_pods in pods_by_clique.items()}
    if counts != dict(sizes):
        return Unmet(f"pods: {counts}, wanted: {dict(sizes)}")
    unready_cliques = [
        clique for clique, clique_pods in pods_by_clique.items() if ready and not all(map(pods.is_ready, clique_pods))
    ]
    if any(uid(pod) == excluded_uid for clique_pods in pods_by_clique.values() for pod in clique_pods):
        return Unmet("the pod is still there")
    return not unready_cliques or Unmet(f"not all pods are Ready: {', '.join(unready_cliques)}")
