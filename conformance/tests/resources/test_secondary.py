"""Tests that the ServiceAccount, Role, RoleBinding, token Secret and Service of a set are restored after changes, and
that objects of other owners are never taken over."""

from __future__ import annotations

import contextlib

from conformance.grove import expected_secondary, labels, names
from conformance.grove.expected import expected
from conformance.grove.fields import Document, mapping, name, text
from conformance.grove.role_rules import permissions_of
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import observed, predicates
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.resources import judging
from conformance.tests.resources.manifests import trigger

GROVE_API_VERSION = "grove.io/v1alpha1"


class SecondaryResourcesOutOfOrder(Scene):
    """A small set at rest. Another client changes the selector of its Service, deletes the ServiceAccount, Role,
    RoleBinding and token Secret, then deletes the Service, and then widens the Role. After each of these changes the
    set is reconciled. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend", setName="kept")
        expected_set = expected(workload)
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(list(expected_set.cliques.values())))
        env.wait_for("Service exists", observed.are_present("services", expected_set.services))
        view = env.quiet(1)

        selector = mapping(view.get("services", "kept-0"), "spec", "selector")
        env.patch("services", "kept-0", {"spec": {"selector": {"app": "other"}}})
        uids = {
            (resource, object_name): text(item, "metadata", "uid")
            for resource in ("serviceaccounts", "roles", "rolebindings", "secrets")
            for object_name, item in judging.objects_of_set(view, resource, "kept").items()
        }
        for (resource, object_name), uid in uids.items():
            if uid:
                env.delete(resource, object_name)
        env.patch("podcliquesets", "kept", trigger("1"))
        env.settle("selector of the Service is restored", _has_selector("kept-0", selector), 60)
        recreated = (observed.is_recreated(resource, object_name, uid) for (resource, object_name), uid in uids.items())
        env.settle("deleted objects are recreated", observed.all_of(*recreated), 60)

        uid = _uid(env.history.view(), "services", "kept-0")
        env.delete("services", "kept-0")
        env.patch("podcliquesets", "kept", trigger("2"))
        env.settle("deleted Service is recreated", observed.is_recreated("services", "kept-0", uid), 60)
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]
        env.patch("roles", names.role("kept"), {"rules": rules})
        env.patch("podcliquesets", "kept", trigger("3"))
        env.settle("rules of the widened Role are restored", _has_narrow_rules(names.role("kept")), 60)


class ForeignTokenSecret(Scene):
    """A Secret of another client has the name of the set's token Secret, until it is deleted. There are no nodes, so no
    pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        secret = names.token_secret("robbed")
        data = {"token": "mine"}
        env.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": data})
        workload = env.workload("frontend", setName="robbed")
        self.expected = expected(workload)
        env.create(workload)
        env.settle("set reports the conflict", _reports_error_code("robbed", "ERR_SECRET_CONFLICT"), 60)
        # A later set that is complete proves that the operator is still working.
        later = env.workload("frontend", setName="later")
        env.create(later)
        env.wait_for("later set has its pods", predicates.all_exist(list(expected(later).cliques.values())))
        env.quiet(1)
        env.mark("foreign Secret is deleted")
        env.delete("secrets", secret)
        env.patch("podcliquesets", "robbed", trigger("1"))
        env.settle("set has its pods", predicates.all_exist(list(self.expected.cliques.values())), 60)
        env.settle("set reports no error any more", _reports_error_code("robbed", ""), 60)


class ForeignServiceAndNoToken(Scene):
    """While the operator is stopped, the token Secret of a set without replicas is replaced by a Secret that never gets
    a token, and another client creates the Service that the set needs for its first replica."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend", setName="tokenless", replicas=0)
        secret = names.token_secret("tokenless")
        uid = text(env.create(workload), "metadata", "uid")
        env.wait_for("token Secret exists", observed.are_present("secrets", [secret]))
        env.quiet(1)
        env.roles.stop("operator")
        # An authorizer that does not respond would make the API server reject the replacement of the Secret.
        has_authorizer = "authorizer" in env.implementation.features
        with env.roles.without_hooks() if has_authorizer else contextlib.nullcontext():
            env.delete("secrets", secret)
            env.wait_for("token Secret is deleted", observed.are_absent("secrets", [secret]))
            # Kubernetes writes a token only into Secrets of another type.
            owner = {"kind": "PodCliqueSet", "apiVersion": GROVE_API_VERSION, "name": "tokenless", "uid": uid}
            env.create(_object_with_owner("Secret", secret, owner))
            other_owner = env.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}})
            uid = text(other_owner, "metadata", "uid")
            owner = {"kind": "ConfigMap", "apiVersion": "v1", "name": "somebody", "uid": uid}
            env.create(
                {**_object_with_owner("Service", names.service("tokenless", 0), owner), "spec": {"clusterIP": "None"}}
            )
        env.roles.restart("operator")
        env.patch("podcliquesets", "tokenless", {"spec": {"replicas": 1}})
        env.settle("set reports an error", observed.reports_error("tokenless"), 60)


class SetWithoutReplicas(Scene):
    """A small set with zero replicas, and later a set with a replica, which shows that the operator is working."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend", setName="idle", replicas=0)
        env.create(workload)
        secondary = expected_secondary.secondary_resources(workload)
        all_exist = observed.all_of(*(observed.are_present(entry.resource, [entry.name]) for entry in secondary))
        env.settle("account, role, binding and token Secret exist", all_exist, 60)
        env.quiet(1)
        env.mark("nothing moves")
        busy_set = env.workload("frontend", setName="busy")
        env.create(busy_set)
        env.settle("another set has its pods", predicates.all_exist(list(expected(busy_set).cliques.values())), 60)


class EarlierTokenSecrets(Scene):
    """Two sets and two token Secrets of an earlier version. `used` belongs to its set and is mounted by the set's pods
    until the pods are deleted. `loose` has no controller. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.used_secret, self.uncontrolled_secret = (
            names.legacy_token_secret("used"),
            names.legacy_token_secret("loose"),
        )
        workload = env.workload("frontend", setName="used")
        for clique in workload["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"]["volumes"] = [{"name": "token", "secret": {"secretName": self.used_secret}}]
        for manifest in (workload, env.workload("frontend", setName="loose", replicas=0)):
            env.create(manifest)
        env.wait_for("all pods exist", predicates.all_exist(list(expected(workload).cliques.values())))
        current = [names.token_secret(set_name) for set_name in ("used", "loose")]
        env.wait_for("current Secrets exist", observed.are_present("secrets", current))
        owner = env.history.view().get("podcliquesets", "used")
        env.create(_legacy_secret("used", self.used_secret, [_owner_reference(owner)]))
        env.create(_legacy_secret("loose", self.uncontrolled_secret, []))
        for set_name in ("used", "loose"):
            env.patch("podcliquesets", set_name, trigger("1"))
        env.quiet(1)
        env.mark("nothing moves while pods mount the Secret")

        env.patch("podcliquesets", "used", {"spec": {"replicas": 0}})
        env.wait_for("pods that mount the Secret are deleted", lambda view: not view.list("pods"), 150)
        env.patch("podcliquesets", "used", trigger("2"))
        env.settle("earlier Secret is deleted", observed.are_absent("secrets", [self.used_secret]), 60)
        env.quiet(1)
        env.mark("nothing moves")


@requirement("RES-007", reaches="deleted objects are recreated")
def test_deleted_secondary_resources_are_recreated(run: Recorded[SecondaryResourcesOutOfOrder]) -> None:
    """All four objects are deleted at the same time."""


@requirement("RES-008", reaches=("selector of the Service is restored", "deleted Service is recreated"))
def test_the_service_is_restored(run: Recorded[SecondaryResourcesOutOfOrder]) -> None:
    """The former selector is restored."""
    run.given("all pods exist", "Service exists")


@requirement("RES-009", reaches="rules of the widened Role are restored")
def test_a_widened_role_is_restored(run: Recorded[SecondaryResourcesOutOfOrder]) -> None:
    """Until then, the Role allows every verb on Pods."""


@requirement("RES-010", reaches="set reports the conflict")
def test_a_secret_of_another_owner_is_not_adopted(run: Recorded[ForeignTokenSecret]) -> None:
    """A later set is completed in the meantime, which shows that the operator is working."""
    run.given("later set has its pods")
    no_cliques = observed.are_absent("podcliques", run.scene.expected.cliques)
    run.always("no clique of the set that lacks its Secret exists", no_cliques, until="foreign Secret is deleted")


@requirement("RES-011", reaches="set has its pods")
def test_a_set_is_completed_once_a_conflict_is_resolved(run: Recorded[ForeignTokenSecret]) -> None:
    """No document requires the Secret, so only the pods of the set show that it was created."""


@requirement("CORE-040", reaches="set reports no error any more")
def test_a_conflict_is_no_longer_reported_once_it_is_resolved(run: Recorded[ForeignTokenSecret]) -> None:
    """A remaining error would look like a current error."""


@requirement("RES-093", reaches="set reports an error")
def test_a_conflict_is_reported_while_the_token_is_missing(run: Recorded[ForeignServiceAndNoToken]) -> None:
    """The Secret never gets a token."""
    run.given("token Secret exists", "token Secret is deleted")


@requirement("RES-094", reaches="account, role, binding and token Secret exist")
def test_a_set_without_replicas_has_its_account_and_role(run: Recorded[SetWithoutReplicas]) -> None:
    """The objects exist before any pod needs them."""


@requirement("RES-012")
def test_a_set_without_replicas_has_no_objects_of_replicas(run: Recorded[SetWithoutReplicas]) -> None:
    """No such object exists at any time while the operator is running."""
    run.given("another set has its pods")
    run.always("there are no objects of replicas", _no_objects_of_replicas, until="nothing moves")


@requirement("RES-013", reaches="earlier Secret is deleted")
def test_the_token_secret_of_an_earlier_version_is_deleted(run: Recorded[EarlierTokenSecrets]) -> None:
    """The Secret without a controller has the name for another set."""
    run.given("all pods exist", "current Secrets exist")
    used, uncontrolled = run.scene.used_secret, run.scene.uncontrolled_secret
    view_with_mounts = run.at("nothing moves while pods mount the Secret")
    run.expect(
        "the earlier Secret exists while a pod mounts it", True, view_with_mounts.get("secrets", used) is not None
    )
    run.given("pods that mount the Secret are deleted")
    remaining = run.at("nothing moves").get("secrets", uncontrolled)
    run.expect("the earlier Secret that the set does not control exists", True, remaining is not None)


def _uid(view: View, resource: str, object_name: str) -> str:
    return text(view.get(resource, object_name), "metadata", "uid")


@predicate
def _has_selector(view: View, service: str, selector: dict[str, str]) -> bool | Unmet:
    current = mapping(view.get("services", service), "spec", "selector")
    return current == selector or Unmet(f"services/{service} selects {current}")


@predicate
def _has_narrow_rules(view: View, role: str) -> bool | Unmet:
    rules = permissions_of(view.get("roles", role))
    return rules == expected_secondary.PERMISSIONS or Unmet(f"roles/{role} allows {', '.join(rules) or 'nothing'}")


def _object_with_owner(kind: str, of_name: str, owner: Document) -> Object:
    reference = {**owner, "controller": True}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": of_name, "ownerReferences": [reference]}}


@predicate
def _reports_error_code(view: View, set_name: str, code: str) -> bool | Unmet:
    """The set reports an error with this code or, if the code is empty, no error at all."""
    codes = observed.error_codes(view.get("podcliquesets", set_name))
    return (code in codes if code else not codes) or Unmet(f"lastErrors has {codes or 'no code'}")


def _no_objects_of_replicas(view: View) -> bool | Unmet:
    kinds = ("services", "podcliques", "podcliquescalinggroups", "podgangs", "pods")
    existing = [f"{resource}/{object_name}" for resource in kinds for object_name in view.names(resource)]
    return not existing or Unmet(f"there is {', '.join(existing)}")


def _legacy_secret(set_name: str, secret: str, owners: list[Object]) -> Object:
    tags = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: set_name, labels.COMPONENT: labels.ComponentLabel.TOKEN}
    metadata = {"name": secret, "labels": {**tags, labels.NAME: secret}, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "old"}}


def _owner_reference(owner: Document | None) -> Object:
    uid = text(owner, "metadata", "uid")
    return {
        "apiVersion": GROVE_API_VERSION,
        "kind": "PodCliqueSet",
        "name": name(owner),
        "uid": uid,
        "controller": True,
    }
