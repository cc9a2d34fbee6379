"""Tests of scheduling gates that do not come from Grove. Other components may delay the scheduling of a pod as well."""

from __future__ import annotations

from conformance.errors import HarnessError
from conformance.grove.expected import expected
from conformance.grove.fields import items, name, text
from conformance.grove.restricted import restricted
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

FOREIGN_GATE = "example.com/quota"
MAX_ATTEMPTS = 300


class PodsWithAGateOfSomebodyElse(Scene):
    """A policy of the API server adds a gate to each new pod of the namespace, because Kubernetes does not allow adding
    a gate to an existing pod."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        policy, binding = _policy_and_binding(env.namespace)
        if not env.dry_run.ask(env.dry_run.create(policy)).accepted:
            reason = "the API server has no MutatingAdmissionPolicy, so that nothing can add a gate"
            raise Blocked(reason, "circumstances")
        for obj in (policy, binding):
            env.create(obj)
        try:
            _wait_for_policy(env)
            workload = env.workload("frontend", setName="held")
            self.cliques = list(expected(workload).cliques.values())
            env.create(workload)
            env.wait_for("Grove's gate removed", predicates.all_ungated(self.cliques))
            env.quiet(1)
            env.mark("nothing moves")
        finally:
            env.delete("mutatingadmissionpolicybindings", env.namespace)
            env.delete("mutatingadmissionpolicies", env.namespace)


@requirement("GANG-020")
def test_only_groves_own_gate_is_removed(run: Recorded[PodsWithAGateOfSomebodyElse]) -> None:
    """The scene goes on only if Grove's own gate is removed although the other gate stays."""
    run.given("Grove's gate removed")
    view = run.at("nothing moves")
    pods = [pod for clique in run.scene.cliques for pod in predicates.pods_of(view, clique.name)]
    gates = {name(pod): [text(gate, "name") for gate in items(pod, "spec", "schedulingGates")] for pod in pods}
    run.expect("gates that are left", {pod: [FOREIGN_GATE] for pod in gates}, gates)


test_invariants = invariants(PodsWithAGateOfSomebodyElse, "INV-001", "INV-004", "INV-005")


def _policy_and_binding(namespace: str) -> tuple[Object, Object]:
    """Return a policy that adds the gate to new pods of the namespace, and its binding. Both have the name of the
    namespace."""
    api, metadata = "admissionregistration.k8s.io/v1", {"name": namespace}
    namespace_selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    gate = f'Object{{spec: Object.spec{{schedulingGates: [Object.spec.schedulingGates{{name: "{FOREIGN_GATE}"}}]}}}}'
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": gate}}
    spec = {"matchConstraints": {**namespace_selector, "resourceRules": [rule]}, "mutations": [mutation]}
    spec |= {"failurePolicy": "Fail", "reinvocationPolicy": "Never"}
    policy = {"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": metadata, "spec": spec}
    binding_spec = {"policyName": namespace, "matchResources": namespace_selector}
    return policy, {
        "apiVersion": api,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": binding_spec,
    }


def _wait_for_policy(env: SceneEnvironment) -> None:
    """Wait until a new pod would get the gate. The API server takes about a second to apply a new policy, and does not
    report when the policy is in effect."""
    pod = restricted({"containers": [{"name": "main", "image": "registry.example/probe:1"}]})
    probe = env.dry_run.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": pod})
    for _ in range(MAX_ATTEMPTS):
        if items(env.dry_run.ask(probe).object, "spec", "schedulingGates"):
            return
        env.quiet(0.2, real=True)
    raise HarnessError("the API server does not heed the policy that adds a gate", where=env.namespace)
