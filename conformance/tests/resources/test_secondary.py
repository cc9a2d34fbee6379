"""Account, role, binding, token Secret and Service: put right when somebody meddles, and never taken from others."""

from __future__ import annotations

import contextlib

from conformance.grove import expected_secondary, labels, names
from conformance.grove.expected import expected
from conformance.grove.fields import Document, controller, mapping, name, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates

GROVE = "grove.io/v1alpha1"


@requirements("RES-007", "RES-008", "RES-009")
def test_what_somebody_deletes_or_changes_is_put_right(case: Case) -> None:
    workload = case.workload("frontend", setName="kept")
    wanted = expected(workload)
    secondary = expected_secondary.secondary_resources(workload)
    case.create(workload)
    case.until("RES-008", "all pods exist", predicates.all_exist(list(wanted.cliques.values())))
    case.until("RES-008", "the Service exists", observed.there("services", wanted.services))
    view = case.quiet(1)
    case.patch("services", "kept-0", {"spec": {"selector": {"app": "other"}}})
    uids = {(a.resource, a.name): text(view.get(a.resource, a.name), "metadata", "uid") for a in secondary}
    for resource, found in uids:
        if view.get(resource, found) is not None:
            case.delete(resource, found)
    case.patch("podcliquesets", "kept", trigger("1"))
    selector = dict(wanted.services["kept-0"].selector)
    case.eventually("RES-008", "the selector of the Service is right again", _selects("kept-0", selector))
    anew = observed.all_of(*(observed.replaced(resource, found, uid) for (resource, found), uid in uids.items()))
    case.eventually("RES-007", "the deleted objects are made anew", anew)

    uid = text(case.history.view().get("services", "kept-0"), "metadata", "uid")
    case.delete("services", "kept-0")
    case.patch("podcliquesets", "kept", trigger("2"))
    case.eventually("RES-008", "the deleted Service is made anew", observed.replaced("services", "kept-0", uid))
    case.patch("roles", names.role("kept"), {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]})
    case.patch("podcliquesets", "kept", trigger("3"))
    case.eventually("RES-009", "the widened Role is narrow again", _narrow(names.role("kept")))


def trigger(value: str) -> Object:
    """A patch that makes an operator look at a set again (OBJ-233)."""
    return {"metadata": {"annotations": {labels.TRIGGER: value}}}


def _selects(service: str, selector: dict[str, str]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = mapping(view.get("services", service), "spec", "selector")
        return found == selector or Unmet(f"services/{service} selects {found}")

    return seen


def _narrow(role: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = view.get("roles", role)
        return (found is not None and found.get("rules") == expected_secondary.rules()) or Unmet("it is still wide")

    return seen


@requirements("RES-010", "RES-011")
def test_a_secret_of_somebody_else_is_not_taken(case: Case) -> None:
    secret = names.token_secret("robbed")
    case.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": {"token": "mine"}})
    workload = case.workload("frontend", setName="robbed")
    wanted = expected(workload)
    case.create(workload)
    case.eventually("RES-010", "the set reports the conflict", _told("robbed", "ERR_SECRET_CONFLICT"))
    # A set that is complete later proves that the operator has gone on working.
    later = case.workload("frontend", setName="later")
    case.create(later)
    case.until("RES-010", "a later set gets its pods", predicates.all_exist(list(expected(later).cliques.values())))
    view = case.quiet(1)
    made = [found for found in view.names("podcliques") if found in wanted.cliques]
    case.expect("RES-010", "cliques of the set that lacks its Secret", [], made)

    case.delete("secrets", secret)
    case.patch("podcliquesets", "robbed", trigger("1"))
    case.eventually("RES-011", "the set gets its own Secret", _controlled(secret, "robbed"))
    case.eventually("RES-011", "and its pods", predicates.all_exist(list(wanted.cliques.values())))
    case.eventually("RES-011", "and reports no error any more", _told("robbed", ""))


@requirements("RES-093")
def test_a_conflict_is_reported_while_the_token_is_waited_for(case: Case) -> None:
    workload = case.workload("frontend", setName="tokenless", replicas=0)
    secret = names.token_secret("tokenless")
    uid = text(case.create(workload), "metadata", "uid")
    case.until("RES-093", "the token Secret exists", observed.there("secrets", [secret]))
    case.quiet(1)
    case.roles.stop("operator")
    # An authorizer that does not answer would refuse to have the Secret exchanged.
    guarded = "authorizer" in case.implementation.features
    with case.roles.without_hooks() if guarded else contextlib.nullcontext():
        case.delete("secrets", secret)
        case.until("RES-093", "the token Secret is gone", observed.gone("secrets", [secret]))
        # Kubernetes writes a token into Secrets of another type only.
        case.create(
            _owned("Secret", secret, {"kind": "PodCliqueSet", "apiVersion": GROVE, "name": "tokenless", "uid": uid})
        )
        somebody = case.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}})
        owner = {"kind": "ConfigMap", "apiVersion": "v1", "name": "somebody", "uid": text(somebody, "metadata", "uid")}
        case.create({**_owned("Service", names.service("tokenless", 0), owner), "spec": {"clusterIP": "None"}})
    case.roles.restart("operator")
    case.patch("podcliquesets", "tokenless", {"spec": {"replicas": 1}})
    case.eventually("RES-093", "the set reports an error", observed.complains("tokenless"))


def _owned(kind: str, of_name: str, owner: Document) -> Object:
    reference = {**owner, "controller": True}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": of_name, "ownerReferences": [reference]}}


def _told(set_name: str, code: str) -> predicates.Predicate:
    """The set reports an error of this code, or none at all where none is given."""

    def seen(view: View) -> bool | Unmet:
        found = observed.errors(view.get("podcliquesets", set_name))
        return (code in found if code else not found) or Unmet(f"lastErrors has {found or 'no code'}")

    return seen


def _controlled(secret: str, set_name: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = view.get("secrets", secret)
        owner = controller(found)
        return text(owner, "name") == set_name or Unmet(
            f"secrets/{secret} is controlled by {name({'metadata': owner})}"
        )

    return seen


@requirements("RES-012")
def test_a_set_without_replicas_has_its_account_and_role(case: Case) -> None:
    workload = case.workload("frontend", setName="idle", replicas=0)
    case.create(workload)
    wanted = expected_secondary.secondary_resources(workload)
    there = observed.all_of(*(observed.there(one.resource, [one.name]) for one in wanted))
    case.eventually("RES-012", "account, role, binding and token Secret exist", there)
    view = case.quiet(1)
    others = ("services", "podcliques", "podcliquescalinggroups", "podgangs", "pods")
    found = [f"{resource}/{one}" for resource in others for one in view.names(resource)]
    case.expect("RES-012", "other objects of a set without replicas", [], found)


@requirements("RES-013")
def test_the_token_secret_of_an_earlier_version_goes_with_its_last_user(case: Case) -> None:
    used, loose = names.legacy_token_secret("used"), names.legacy_token_secret("loose")
    workload = case.workload("frontend", setName="used")
    for clique in workload["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["volumes"] = [{"name": "token", "secret": {"secretName": used}}]
    for one in (workload, case.workload("frontend", setName="loose", replicas=0)):
        case.create(one)
    case.until("RES-013", "all pods exist", predicates.all_exist(list(expected(workload).cliques.values())))
    fresh = [names.token_secret(one) for one in ("used", "loose")]
    case.until("RES-013", "the present Secrets exist", observed.there("secrets", fresh))
    owner = case.history.view().get("podcliquesets", "used")
    case.create(_legacy("used", used, [_reference(owner)]))
    case.create(_legacy("loose", loose, []))
    for found in ("used", "loose"):
        case.patch("podcliquesets", found, trigger("1"))
    case.until("RES-013", "the earlier Secrets exist", observed.there("secrets", [used, loose]))
    view = case.quiet(1)
    case.expect("RES-013", "the earlier Secret while a pod mounts it", True, view.get("secrets", used) is not None)

    case.patch("podcliquesets", "used", {"spec": {"replicas": 0}})
    case.until("RES-013", "the pods that mount it go", lambda view: not view.list("pods"), timeout=150)
    case.patch("podcliquesets", "used", trigger("2"))
    case.eventually("RES-013", "and with them the earlier Secret", observed.gone("secrets", [used]))
    view = case.quiet(1)
    case.expect("RES-013", "one that the set doesn't control", True, view.get("secrets", loose) is not None)


def _legacy(set_name: str, secret: str, owners: list[Object]) -> Object:
    tags = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: set_name, labels.COMPONENT: labels.Component.TOKEN}
    metadata = {"name": secret, "labels": {**tags, labels.NAME: secret}, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "old"}}


def _reference(owner: Document | None) -> Object:
    uid = text(owner, "metadata", "uid")
    kind, api = "PodCliqueSet", "grove.io/v1alpha1"
    return {"apiVersion": api, "kind": kind, "name": name(owner), "uid": uid, "controller": True}
