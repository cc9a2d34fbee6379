"""The Pods of a ready set, each with what is expected of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.grove import expected_pods
from conformance.grove.expected import Clique
from conformance.grove.fields import Document, text
from conformance.suite.outcomes.checks import ABSENT
from conformance.testing import predicates
from conformance.testing.scene import Recorded
from conformance.tests.core.every_pod_field import SetWithEveryPodField
from conformance.tests.core.published_sets import PublishedSet
from conformance.tests.core.ready_set import READY, ReadyDisaggregatedSet


@dataclass(frozen=True)
class Judged:
    """A pod as it is seen, with its clique and what is expected of a pod of its index."""

    clique: Clique
    seen: Document
    right: expected_pods.Pod

    @property
    def containers(self) -> list[Document]:
        """The containers and init containers that the pod has from its template. The operator may have added more."""
        own = {text(container, "name") for container in expected_pods.containers(self.clique.template.pod_spec)}
        return [each for each in expected_pods.containers(self.seen.get("spec")) if text(each, "name") in own]


def each_pod(
    run: Recorded[ReadyDisaggregatedSet | PublishedSet | SetWithEveryPodField], step: str = READY
) -> Iterator[Judged]:
    """The pods of all cliques. A clique without pods blocks the test: that it has to have pods is for another."""
    view = run.at(step)
    for clique in run.scene.wanted.cliques.values():
        own = predicates.pods_of(view, clique.name)
        if not own:
            run.expect(f"pods of {clique.name}", clique.template.replicas, ABSENT)
        for pod in own:
            index = expected_pods.index(pod)
            number = -1 if index is None else index
            yield Judged(clique, pod, expected_pods.pod(clique, run.scene.set_name, run.scene.namespace, number))
