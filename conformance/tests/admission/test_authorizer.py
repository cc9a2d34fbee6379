"""Tests of users' changes to managed objects. All requests come from an administrator who is not the operator."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove.admission.manifests import ACCEPTED
from conformance.grove.expected import expected
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.scenes.dry_run import Reply, Request
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.admission.judging import is_refused

ALICE = "alice"
MANAGED_BY_LABEL = {"app.kubernetes.io/managed-by": "grove-operator"}
PART_OF = "app.kubernetes.io/part-of"
LABEL_CHANGE = {"metadata": {"labels": {"example.com/changed": "yes"}}}
PROTECTION = "grove.io/disable-managed-resource-protection"
MAX_ATTEMPTS = 10
"""Maximum number of times that a request is repeated after the protection is switched off. An authorizer learns about
the change through a watch."""

Replies = Mapping[str, Reply]
"""The reply to each request, keyed by the description of the request."""


class RequestsOfAnAdministrator(Scene):
    """A small set with its objects, whose update strategy lets users replace pods by deleting them. An administrator
    requests changes to these objects as dry runs. Then the protection of the set is switched off."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend")
        workload["spec"]["updateStrategy"] = {"type": "OnDelete"}
        self.set_name = workload["metadata"]["name"]
        cliques = list(expected(workload).cliques.values())
        env.create(workload)
        env.wait_for("the operator's own writes pass: its pods exist", predicates.all_exist(cliques))
        clique, gang, pod, service = env.wait_for("a clique, a gang, a pod and a Service exist", _first_names)
        self.operator_replies = _dry_run(
            env,
            {
                "create a clique": _create(env, {**MANAGED_BY_LABEL, PART_OF: self.set_name}),
                "change a clique": env.dry_run.patch("podcliques", clique, LABEL_CHANGE, user=ALICE),
                "take a clique's label": env.dry_run.patch("podcliques", clique, _label_removal(), user=ALICE),
                "delete a clique": env.dry_run.delete("podcliques", clique, user=ALICE),
                "change a gang": env.dry_run.patch("podgangs", gang, LABEL_CHANGE, user=ALICE),
                "delete a gang": env.dry_run.delete("podgangs", gang, user=ALICE),
                "change a service": env.dry_run.patch("services", service, LABEL_CHANGE, user=ALICE),
                "change a pod": env.dry_run.patch("pods", pod, LABEL_CHANGE, user=ALICE),
            },
        )
        scale_patch = {"spec": {"replicas": 2}}
        self.user_replies = _dry_run(
            env,
            {
                "change the set itself": env.dry_run.patch("podcliquesets", self.set_name, LABEL_CHANGE, user=ALICE),
                "scale a clique": env.dry_run.patch("podcliques", clique, scale_patch, "scale", user=ALICE),
                "delete a pod": env.dry_run.delete("pods", pod, user=ALICE),
            },
        )
        self.replies_without_set = _dry_run(
            env,
            {
                "no set": _create(env, MANAGED_BY_LABEL),
                "a set that does not exist": _create(env, {**MANAGED_BY_LABEL, PART_OF: "nobody"}),
                "a set, but managed by nobody": _create(env, {PART_OF: self.set_name}),
            },
        )
        env.patch("podcliquesets", self.set_name, {"metadata": {"annotations": {PROTECTION: "true"}}})
        self.unprotected_replies = _ask_until_accepted(
            env, env.dry_run.patch("podcliques", clique, LABEL_CHANGE, user=ALICE)
        )


@requirement("ADM-038")
def test_managed_objects_are_protected(run: Recorded[RequestsOfAnAdministrator]) -> None:
    """Either a webhook or a policy of the API server may reject the request."""
    for action, reply in run.scene.operator_replies.items():
        run.expect(f"{ALICE}: {action}", "refused", "refused" if is_refused(reply) else str(reply))


@requirement("ADM-039")
def test_users_may_do_what_is_theirs(run: Recorded[RequestsOfAnAdministrator]) -> None:
    """The operator itself would not make any of these requests."""
    run.given("the operator's own writes pass: its pods exist", "a clique, a gang, a pod and a Service exist")
    for action, reply in run.scene.user_replies.items():
        run.expect(f"{ALICE}: {action}", ACCEPTED, str(reply))
    run.expect("change a clique of a set without protection", ACCEPTED, run.scene.unprotected_replies)


@requirement("ADM-058")
def test_objects_of_no_set_are_not_protected(run: Recorded[RequestsOfAnAdministrator]) -> None:
    """Such a clique may be a leftover or belong to another controller."""
    for owner, reply in run.scene.replies_without_set.items():
        run.expect(f"create a clique of {owner}", ACCEPTED, str(reply))


def _first_names(view: View) -> tuple[str, ...] | Unmet:
    """Return the names of the first PodClique, PodGang, pod and Service."""
    names = [view.names(resource)[:1] for resource in ("podcliques", "podgangs", "pods", "services")]
    return tuple(first for [first] in names) if all(names) else Unmet("one of them is missing")


def _dry_run(env: SceneEnvironment, requests: Mapping[str, Request]) -> Replies:
    return dict(zip(requests, env.dry_run.all(list(requests.values())), strict=True))


def _ask_until_accepted(env: SceneEnvironment, request: Request) -> str:
    """Repeat the request until it is accepted, up to a limit. Return the last reply as text."""
    answer = str(env.dry_run.ask(request))
    for _ in range(MAX_ATTEMPTS):
        if answer != ACCEPTED:
            env.quiet(1, 2, real=True)
            answer = str(env.dry_run.ask(request))
    return answer


def _create(env: SceneEnvironment, labels: dict[str, str]) -> Request:
    pod = {"containers": [{"name": "main", "image": "registry.example/app:1"}]}
    clique = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": "smuggled", "labels": labels},
        "spec": {"roleName": "x", "replicas": 1, "podSpec": pod},
    }
    return env.dry_run.create(clique, user=ALICE)


def _label_removal() -> dict[str, object]:
    return {"metadata": {"labels": dict.fromkeys(MANAGED_BY_LABEL)}}
