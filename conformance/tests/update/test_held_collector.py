"""Tests of updates while the garbage collector does not delete pods, so that only the operator itself makes room for
new pods."""

from __future__ import annotations

from conformance.errors import HarnessError
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import Scene, SceneEnvironment, invariants
from conformance.tests.update import changes

COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
SIZES = {
    "alone": 1,
    "aloneMinAvailable": 1,
    "groups": 2,
    "groupsMinAvailable": 1,
    "members": 1,
    "membersMinAvailable": 1,
}
MAX_ATTEMPTS = 300
HELD_SECONDS = 20.0
"""The maximum time, in seconds, for which the garbage collector is held."""


class CollectorIsHeld(Scene):
    """A set whose scaling group is changed, with ample capacity. A policy of the API server keeps the garbage collector
    from deleting pods of the namespace until the update has ended or, if the update waits for the garbage collector,
    until the time limit. If the garbage collector does not run as the usual user, it is not held, and the scene detects
    less."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        policy, binding = _policy_and_binding(env.namespace)
        if not env.dry_run.ask(env.dry_run.create(policy)).accepted:
            reason = "the API server has no ValidatingAdmissionPolicy, so that nothing can hold the garbage collector"
            raise Blocked(reason, "circumstances")
        workload = env.workload("kept", setName="s", **SIZES)
        env.create(workload)
        env.wait_for("set available", predicates.is_available("s", 1))
        pod = env.wait_for("a pod exists", _find_pod)
        try:
            for manifest in (policy, binding):
                env.create(manifest)
            _wait_for_policy(env, pod)
            before = changes.change_image(env, workload, "b", tag="2")
            env.settle("updated while the garbage collector was held", changes.has_ended("s", before), HELD_SECONDS)
            env.quiet(0.7)
        finally:
            env.delete("validatingadmissionpolicybindings", env.namespace)
            env.delete("validatingadmissionpolicies", env.namespace)
        env.wait_for("updated", changes.has_ended("s", before))
        env.quiet(0.7)
        env.mark("end")


test_invariants = invariants(CollectorIsHeld, "INV-001", "INV-004", "INV-005", "INV-024")


def _policy_and_binding(namespace: str) -> tuple[Object, Object]:
    """Return a policy that rejects deletions of pods by the garbage collector, and its binding. Both have the name of
    the namespace."""
    api, metadata = "admissionregistration.k8s.io/v1", {"name": namespace}
    in_namespace = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}
    validation = {"expression": f'request.userInfo.username != "{COLLECTOR}"', "message": "the collector is held"}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {**in_namespace, "resourceRules": [rule]},
        "validations": [validation],
    }
    policy = {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec}
    bound = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": in_namespace}
    return policy, {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": bound}


def _find_pod(view: View) -> str | Unmet:
    return next(iter(view.names("pods")), "") or Unmet("there is no pod")


def _wait_for_policy(env: SceneEnvironment, pod: str) -> None:
    """Wait until deletions by the garbage collector are rejected. The API server takes about a second to apply a new
    policy."""
    probe = env.dry_run.delete("pods", pod, user=COLLECTOR)
    for _ in range(MAX_ATTEMPTS):
        if env.dry_run.ask(probe).refused:
            return
        env.quiet(0.2, real=True)
    raise HarnessError("the API server does not heed the policy that holds the garbage collector", where=env.namespace)
