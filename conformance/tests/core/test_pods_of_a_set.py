"""The Pods of a set: number, names, environment variables, and that they follow their template."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from conformance.grove import expected_pods, pod_specs, pods, variables
from conformance.grove.fields import Document, items, name, text
from conformance.testing import predicates
from conformance.testing.scene import Recorded, requirement
from conformance.tests.core.every_pod_field import EXIST, SetWithEveryPodField
from conformance.tests.core.pods_of_set import Judged, each_pod
from conformance.tests.core.published_sets import Published, PublishedSet
from conformance.tests.core.ready_set import READY, ReadyDisaggregatedSet


@requirement("CORE-007")
def test_cliques_have_their_pods_with_index_and_subdomain(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """Any suffix of a name is random that is not the index; its length is the API server's affair. Pods of a set
    without a headlessServiceConfig need no subdomain."""
    run.unbroken()
    view, cliques = run.at(READY), run.scene.wanted.cliques
    for clique in cliques.values():
        indices = [expected_pods.index(pod) for pod in predicates.pods_of(view, clique.name)]
        seen = sorted(index for index in indices if index is not None)
        run.expect(f"pod indices of {clique.name}", list(range(clique.template.replicas)), seen)
    served = expected_pods.has_subdomain(view.get("podcliquesets", run.scene.set_name))
    fields = ("hostname", "subdomain") if served else ("hostname",)
    for pod in each_pod(run):
        prefix, suffix = name(pod.seen)[: len(pod.right.prefix)], name(pod.seen)[len(pod.right.prefix) :]
        host = {"hostname": pod.right.hostname, "subdomain": pod.right.subdomain}
        right = {"prefix": pod.right.prefix, "random": True, **{field: host[field] for field in fields}}
        random = suffix not in ("", str(expected_pods.index(pod.seen)))
        found = {"prefix": prefix, "random": random, **{field: text(pod.seen, "spec", field) for field in fields}}
        run.same(f"name and host of {name(pod.seen)}", right, found)
    stray = [name(pod) for pod in view.list("pods") if pods.clique(pod) not in cliques]
    run.expect("pods of no clique of the set", [], stray)


@requirement("CORE-008")
def test_containers_have_groves_variables(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """Literal values and references to fields are alike."""
    for pod in each_pod(run):
        for container in pod.containers:
            seen = variables.environment(container, pod.seen)
            have = {key: seen.get(key) for key in pod.right.environment}
            run.same(f"variables of {name(pod.seen)}/{text(container, 'name')}", pod.right.environment, have)


@requirement("CORE-009")
def test_groves_variables_come_first(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """In any order among themselves: none refers to another. Further variables of the operator are not judged."""
    for pod in each_pod(run):
        for container in pod.containers:
            first = pod.right.environment.keys() & set(_before_template(pod, container))
            what = f"variables of {name(pod.seen)}/{text(container, 'name')} before those of the template"
            run.expect(what, sorted(pod.right.environment), sorted(first))


@requirement("CORE-014")
def test_pods_follow_their_template(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """All of it, in order. Grove replaces a variable of the template that has the name of one of its own (OBJ-254)."""
    _compare_specs(run, READY)


@requirement("CORE-014")
def test_pods_have_every_field_of_their_template(run: Recorded[SetWithEveryPodField]) -> None:
    """Every field that the API server serves, whichever version of Kubernetes it is of."""
    _compare_specs(run, EXIST)


def _before_template(pod: Judged, container: Document) -> list[str]:
    """Return the variables of a container before the first one that its template has and Grove has not."""
    same = [
        each for each in expected_pods.containers(pod.clique.template.pod_spec) if each["name"] == container["name"]
    ]
    own = {text(variable, "name") for each in same for variable in items(each, "env")} - pod.right.environment.keys()
    return list(takewhile(lambda variable: variable not in own, variables.environment(container, pod.seen)))


def _compare_specs(run: Recorded[ReadyDisaggregatedSet | PublishedSet | SetWithEveryPodField], step: str) -> None:
    for pod in each_pod(run, step):
        template = pod.clique.template
        accepted = run.scene.accepted.spec(template.name)
        seen = pod.seen.get("spec")
        have = pod_specs.of_pod(seen if isinstance(seen, Mapping) else {}, accepted, template.pod_spec)
        run.same(f"spec of {name(pod.seen)}", pod_specs.of_pod(accepted, accepted, template.pod_spec), have)
