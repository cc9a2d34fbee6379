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
def pods_are(view: View, sizes: Mapping[str, int], *, ready: bool = False, but: str = "") -> bool | Unmet:
    """Each of these cliques has this number of pods, all of them Ready if `ready`, and no pod has the UID `but`."""
    current = {clique: predicates.pods_of(view, clique) for clique in sizes}
    counts = {clique: len(clique_pods) for clique, clique_pods in current.items()}
    if counts != dict(sizes):
        return Unmet(f"pods: {counts}, wanted: {dict(sizes)}")
    unready = [clique for clique, clique_pods in current.items() if ready and not all(map(pods.is_ready, clique_pods))]
    if any(uid(pod) == but for clique_pods in current.values() for pod in clique_pods):
        return Unmet("the pod is still there")
    return not unready or Unmet(f"not all pods are Ready: {', '.join(unready)}")
