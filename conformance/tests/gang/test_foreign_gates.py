"""Gates of others: something else than Grove may hold a pod back, too."""

from __future__ import annotations

from conformance.errors import HarnessError
from conformance.grove.expected import expected
from conformance.grove.fields import items, name, text
from conformance.history import predicates
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.checks import Blocked
from conformance.suite.requirement import requirements

GATE = "example.com/quota"
ATTEMPTS = 300


@requirements("GANG-020", "INV-001", "INV-004", "INV-005")
def test_the_gates_of_others_stay(case: Case) -> None:
    # Kubernetes lets nobody add a gate to a pod that exists: a policy of the API server puts it on each new pod.
    case.nodes("tiny", 1)
    policy, binding = _policy(case.namespace)
    if not case.dry_run.ask(case.dry_run.create(policy)).accepted:
        raise Blocked("the API server has no MutatingAdmissionPolicy, so that nothing can add a gate", "circumstances")
    for one in (policy, binding):
        case.create(one)
    try:
        _wait_for_policy(case)
        workload = case.workload("frontend", setName="held")
        cliques = list(expected(workload).cliques.values())
        case.create(workload)
        case.until("GANG-020", "Grove's gate goes", predicates.all_ungated(cliques))
        view = case.quiet(1)
        pods = [pod for clique in cliques for pod in predicates.pods_of(view, clique.name)]
        gates = {name(pod): [text(gate, "name") for gate in items(pod, "spec", "schedulingGates")] for pod in pods}
        case.expect("GANG-020", "gates that are left", {pod: [GATE] for pod in gates}, gates)
    finally:
        case.delete("mutatingadmissionpolicybindings", case.namespace)
        case.delete("mutatingadmissionpolicies", case.namespace)


def _policy(namespace: str) -> tuple[Object, Object]:
    """A policy that adds the gate to new pods of the namespace, and its binding, both named like the namespace."""
    api, metadata = "admissionregistration.k8s.io/v1", {"name": namespace}
    there = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    gate = f'Object{{spec: Object.spec{{schedulingGates: [Object.spec.schedulingGates{{name: "{GATE}"}}]}}}}'
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": gate}}
    spec = {"matchConstraints": {**there, "resourceRules": [rule]}, "mutations": [mutation]}
    spec |= {"failurePolicy": "Fail", "reinvocationPolicy": "Never"}
    policy = {"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": metadata, "spec": spec}
    bound = {"policyName": namespace, "matchResources": there}
    return policy, {"apiVersion": api, "kind": "MutatingAdmissionPolicyBinding", "metadata": metadata, "spec": bound}


def _wait_for_policy(case: Case) -> None:
    """Until a pod would get the gate; the API server takes a second to heed a policy, and says nowhere that it does."""
    pod = {"containers": [{"name": "main", "image": "registry.example/probe:1"}]}
    probe = case.dry_run.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": pod})
    for _ in range(ATTEMPTS):
        if items(case.dry_run.ask(probe).object, "spec", "schedulingGates"):
            return
        case.quiet(0.2, real=True)
    raise HarnessError("the API server does not heed the policy that adds a gate", where=case.namespace)
