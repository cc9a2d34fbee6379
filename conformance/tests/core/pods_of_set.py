"""The pods of a ready set, each with its expected values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.grove import expected_pods
from conformance.grove.expected import ExpectedClique
from conformance.grove.fields import Document, text
from conformance.suite.outcomes.checks import ABSENT
from conformance.testing import predicates
from conformance.testing.scene import Recorded
from conformance.tests.core.every_pod_field import SetWithEveryPodField
from conformance.tests.core.published_sets import PublishedSet
from conformance.tests.core.ready_set import STATUSES_AT_REST, ReadyDisaggregatedSet


@dataclass(frozen=True)
class JudgedPod:
    """An observed pod, its clique, and the expected values of a pod with its index."""

    clique: ExpectedClique
    observed_pod: Document
    template_pod: expected_pods.ExpectedPod

    @property
    def containers(self) -> list[Document]:
        """The containers and init containers that come from the pod's template. The operator may add other
        containers."""
        template_containers = expected_pods.containers(self.clique.template.pod_spec)
        template_names = {text(container, "name") for container in template_containers}
        pod_containers = expected_pods.containers(self.observed_pod.get("spec"))
        return [container for container in pod_containers if text(container, "name") in template_names]


def judged_pods(
    run: Recorded[ReadyDisaggregatedSet | PublishedSet | SetWithEveryPodField], step: str = STATUSES_AT_REST
) -> Iterator[JudgedPod]:
    """Yield the pods of all cliques. A clique without pods blocks the test, because another test judges the number of
    pods of a clique."""
    view = run.at(step)
    for clique in run.scene.expected.cliques.values():
        pods = predicates.pods_of(view, clique.name)
        if not pods:
            run.expect(f"pods of {clique.name}", clique.template.replicas, ABSENT)
        for pod in pods:
            index = expected_pods.index(pod)
            number = -1 if index is None else index
            yield JudgedPod(clique, pod, expected_pods.pod(clique, run.scene.set_name, run.scene.namespace, number))
