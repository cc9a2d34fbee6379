"""Tests of the pods of a set: their number, names and environment variables, and whether they follow their template."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from conformance.grove import expected_pods, pod_specs, pods, variables
from conformance.grove.fields import Document, items, name, text
from conformance.testing import predicates
from conformance.testing.scene import Recorded, requirement
from conformance.tests.core.every_pod_field import PODS_EXIST, SetWithEveryPodField
from conformance.tests.core.pods_of_set import JudgedPod, judged_pods
from conformance.tests.core.published_sets import Published, PublishedSet
from conformance.tests.core.ready_set import STATUSES_AT_REST, ReadyDisaggregatedSet


@requirement("CORE-007")
def test_cliques_have_their_pods_with_index_and_subdomain(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """Any name suffix that differs from the index counts as random; its length is up to the API server. Pods of a set
    without a headlessServiceConfig need no subdomain."""
    run.judge_violation()
    view, cliques = run.at(STATUSES_AT_REST), run.scene.expected.cliques
    for clique in cliques.values():
        indices = [expected_pods.index(pod) for pod in predicates.pods_of(view, clique.name)]
        observed = sorted(index for index in indices if index is not None)
        run.expect(f"pod indices of {clique.name}", list(range(clique.template.replicas)), observed)
    has_subdomain = expected_pods.has_subdomain(view.get("podcliquesets", run.scene.set_name))
    fields = ("hostname", "subdomain") if has_subdomain else ("hostname",)
    for pod in judged_pods(run):
        length = len(pod.template_pod.prefix)
        prefix, suffix = name(pod.observed_pod)[:length], name(pod.observed_pod)[length:]
        host = {"hostname": pod.template_pod.hostname, "subdomain": pod.template_pod.subdomain}
        expected = {"prefix": pod.template_pod.prefix, "random": True, **{field: host[field] for field in fields}}
        random = suffix not in ("", str(expected_pods.index(pod.observed_pod)))
        host = {field: text(pod.observed_pod, "spec", field) for field in fields}
        run.same(f"name and host of {name(pod.observed_pod)}", expected, {"prefix": prefix, "random": random, **host})
    stray_pods = [name(pod) for pod in view.list("pods") if pods.clique(pod) not in cliques]
    run.expect("pods of no clique of the set", [], stray_pods)


@requirement("CORE-008")
def test_containers_have_groves_variables(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """A variable may have a literal value or reference a field of the pod."""
    for pod in judged_pods(run):
        for container in pod.containers:
            environment = variables.environment(container, pod.observed_pod)
            observed = {key: environment.get(key) for key in pod.template_pod.environment}
            run.same(
                f"variables of {name(pod.observed_pod)}/{text(container, 'name')}",
                pod.template_pod.environment,
                observed,
            )


@requirement("CORE-009")
def test_groves_variables_come_first(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """Grove's variables may be in any order, because they do not reference each other. Additional variables of the
    operator are not judged."""
    for pod in judged_pods(run):
        for container in pod.containers:
            first = pod.template_pod.environment.keys() & set(_before_template(pod, container))
            subject = f"variables of {name(pod.observed_pod)}/{text(container, 'name')} before those of the template"
            run.expect(subject, sorted(pod.template_pod.environment), sorted(first))


@requirement("CORE-014")
def test_pods_follow_their_template(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """The whole template is compared, in order. Grove replaces a template variable that has the name of one of its own
    variables (OBJ-254)."""
    _compare_specs(run, STATUSES_AT_REST)


@requirement("CORE-014")
def test_pods_have_every_field_of_their_template(run: Recorded[SetWithEveryPodField]) -> None:
    """All fields that the API server serves are judged, whatever the version of Kubernetes."""
    _compare_specs(run, PODS_EXIST)


def _before_template(pod: JudgedPod, container: Document) -> list[str]:
    """Return the variables of a container that precede the first variable that only the template sets."""
    template_environment = {
        text(variable, "name")
        for template_container in expected_pods.containers(pod.clique.template.pod_spec)
        if template_container["name"] == container["name"]
        for variable in items(template_container, "env")
    }
    template_variables = template_environment - pod.template_pod.environment.keys()
    environment = variables.environment(container, pod.observed_pod)
    return list(takewhile(lambda variable: variable not in template_variables, environment))


def _compare_specs(run: Recorded[ReadyDisaggregatedSet | PublishedSet | SetWithEveryPodField], step: str) -> None:
    for pod in judged_pods(run, step):
        template = pod.clique.template
        accepted = run.scene.accepted_pods.spec(template.name)
        spec = pod.observed_pod.get("spec")
        observed = pod_specs.of_pod(spec if isinstance(spec, Mapping) else {}, accepted, template.pod_spec)
        run.same(f"spec of {name(pod.observed_pod)}", pod_specs.of_pod(accepted, accepted, template.pod_spec), observed)
