"""What is expected of the pods of a set: their number, names, labels, variables, and that they follow the template."""

from __future__ import annotations

import re

from conformance.grove import expected_pods, variables
from conformance.grove.expected import Clique, Expected
from conformance.grove.fields import Document, controller, labels, name, text
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.testing import predicates
from conformance.testing.comparison import same, same_labels


def check_pods(case: Case, wanted: Expected, view: View, set_name: str) -> None:
    """CORE-002, CORE-003, CORE-007, CORE-008, CORE-009, CORE-014."""
    for clique in wanted.cliques.values():
        pods = predicates.pods_of(view, clique.name)
        indices = [expected_pods.index(pod) for pod in pods]
        seen = sorted(index for index in indices if index is not None)
        case.expect("CORE-007", f"pod indices of {clique.name}", list(range(clique.template.replicas)), seen)
        for pod, index in zip(pods, indices, strict=True):
            right = expected_pods.pod(clique, set_name, case.namespace, -1 if index is None else index)
            _check_place(case, right, pod)
            _check_template(case, clique, right, pod)
            for container in expected_pods.containers(pod.get("spec")):
                _check_environment(case, right, pod, container)
    stray = [name(pod) for pod in view.list("pods") if text(controller(pod), "name") not in wanted.cliques]
    case.expect("CORE-007", "pods of no clique of the set", [], stray)


def _check_place(case: Case, right: expected_pods.Pod, pod: Document) -> None:
    wanted = {"prefix": right.prefix, "random": True, "hostname": right.hostname, "subdomain": right.subdomain}
    seen = {
        "prefix": name(pod)[: len(right.prefix)],
        "random": re.fullmatch("[a-z0-9]{5}", name(pod)[len(right.prefix) :]) is not None,
        "hostname": text(pod, "spec", "hostname"),
        "subdomain": text(pod, "spec", "subdomain"),
    }
    same(case, "CORE-007", f"name and host of {name(pod)}", wanted, seen)
    same_labels(case, "labels of a pod", {name(pod): right.labels}, {name(pod): labels(pod)})


def _check_template(case: Case, clique: Clique, right: expected_pods.Pod, pod: Document) -> None:
    # A variable of the template that is called like one of Grove's is dropped (OBJ-254).
    template = expected_pods.without_variables(clique.template.pod_spec, right.environment)
    wanted = {**template, "schedulerName": case.implementation.scheduler_name}
    kept = expected_pods.kept(template, pod.get("spec"))
    seen = {**(kept if isinstance(kept, dict) else {}), "schedulerName": text(pod, "spec", "schedulerName")}
    same(case, "CORE-014", f"spec of {name(pod)}", wanted, seen)


def _check_environment(case: Case, right: expected_pods.Pod, pod: Document, container: Document) -> None:
    what = f"variables of {name(pod)}/{text(container, 'name')}"
    seen = variables.environment(container, pod)
    same(case, "CORE-008", what, right.environment, {key: seen.get(key) for key in right.environment})
    case.expect("CORE-009", f"first {what}", list(right.environment), list(seen)[: len(right.environment)])
