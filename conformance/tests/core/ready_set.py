"""A scene with a disaggregated inference set that becomes ready."""

from __future__ import annotations

from conformance.grove.expected import ExpectedObjects, expected
from conformance.grove.fields import name
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.testing import accepted_pods, composition, predicates
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.tests.core import gang_objects, statuses

SET_AVAILABLE = "set available"
PODS_READY = "all pods Ready"
"""The step from which statuses are judged. A scheduler or a node may keep pods from becoming Ready."""
STATUSES_AT_REST = "statuses at rest"
"""The step at which no object of the set changes any more."""


class ReadyDisaggregatedSet(Scene):
    """A disaggregated inference set and four nodes. The workers need 24 of the 32 GPUs, so there is room for them
    however a scheduler spreads them. `expected_names` has the expected objects with the names of the naming scheme,
    `expected` has the same objects with the names of their actual gangs, and `accepted_pods` has the pods that the API
    server would store for the templates."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        workload = env.workload("disaggregated")
        workload["spec"]["template"]["headlessServiceConfig"] = {"publishNotReadyAddresses": True}
        self.namespace, self.scheduler = env.namespace, env.implementation.scheduler_name
        self.expected_names, self.set_name = expected(workload), name(workload)
        self.expected = self.expected_names
        env.create(workload)
        # An operator that does not report availability is still judged by all other requirements.
        env.settle(SET_AVAILABLE, predicates.is_available(self.set_name, 1), 60)
        env.settle(PODS_READY, all_pods_ready(self.expected_names), 60)
        view = env.settle(STATUSES_AT_REST, has_caught_up(self.expected_names, self.set_name), 60)
        self.expected = composition.with_actual_gang_names(self.expected_names, view)
        self.accepted_pods = accepted_pods.request_pods(env, workload)


def all_pods_ready(expected_set: ExpectedObjects) -> Predicate:
    """All pods of a set exist and are Ready."""
    return pods_are({clique.name: clique.template.replicas for clique in expected_set.cliques.values()}, ready=True)


@predicate
def has_caught_up(view: View, expected_names: ExpectedObjects, set_name: str) -> bool | Unmet:
    """The statuses, and the pod references of gangs, are those of a ready set. A set is available as soon as its
    scaling group has minAvailable replicas, so these fields may be updated later."""
    expected_set = composition.with_actual_gang_names(expected_names, view)
    comparisons = [
        *statuses.all_comparisons(expected_set, view, set_name),
        gang_objects.compare_references(expected_set, view),
    ]
    equal = all(expected_values == observed_values for expected_values, observed_values in comparisons)
    return equal or Unmet("statuses or references are behind")
