"""Who may touch what the operator manages. Asked in the name of an administrator who is not the operator."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.dry_run import Request
from conformance.suite.requirement import requirements
from conformance.testing import predicates

ALICE = "alice"
MANAGED = {"app.kubernetes.io/managed-by": "grove-operator"}
PART_OF = "app.kubernetes.io/part-of"
CHANGE = {"metadata": {"labels": {"example.com/changed": "yes"}}}


@requirements("ADM-038", "ADM-039")
def test_managed_objects_are_protected(case: Case) -> None:
    workload = case.workload("frontend")
    name = workload["metadata"]["name"]
    wanted = expected(workload)
    case.create(workload)
    case.until(
        "ADM-039", "the operator's own writes pass: its pods exist", predicates.all_exist([*wanted.cliques.values()])
    )
    what = "there is a clique, a gang, a pod and a Service"
    clique, gang, pod, service = case.until("ADM-039", what, _one_of_each)

    _all(
        case,
        "ADM-038",
        403,
        {
            "create a clique": _create(case, {**MANAGED, PART_OF: name}),
            "change a clique": case.dry_run.patch("podcliques", clique, CHANGE, user=ALICE),
            "take a clique's label": case.dry_run.patch("podcliques", clique, _without_label(), user=ALICE),
            "delete a clique": case.dry_run.delete("podcliques", clique, user=ALICE),
            "change a gang": case.dry_run.patch("podgangs", gang, CHANGE, user=ALICE),
            "delete a gang": case.dry_run.delete("podgangs", gang, user=ALICE),
            "change a service": case.dry_run.patch("services", service, CHANGE, user=ALICE),
            "change a pod": case.dry_run.patch("pods", pod, CHANGE, user=ALICE),
        },
    )
    _all(
        case,
        "ADM-039",
        200,
        {
            "change the set itself": case.dry_run.patch("podcliquesets", name, CHANGE, user=ALICE),
            "scale a clique": case.dry_run.patch("podcliques", clique, {"spec": {"replicas": 2}}, "scale", user=ALICE),
            "delete a pod": case.dry_run.delete("pods", pod, user=ALICE),
            "create a clique that nobody manages": _create(case, {PART_OF: name}),
        },
    )
    for what, labels in (("no set", MANAGED), ("a set that is not there", {**MANAGED, PART_OF: "nobody"})):
        reply = case.dry_run.ask(_create(case, labels))
        seen = [reply.status, bool(reply.warnings)]
        case.expect("ADM-039", f"create a clique of {what}: accepted with a warning", [201, True], seen)

    for value, status in (("TRUE", 403), ("true", 200)):
        switch = {"metadata": {"annotations": {"grove.io/disable-managed-resource-protection": value}}}
        case.patch("podcliquesets", name, switch)
        change = case.dry_run.patch("podcliques", clique, CHANGE, user=ALICE)
        case.expect(
            "ADM-039" if status == 200 else "ADM-038",
            f"change a clique of a set with protection switched to {value}",
            status,
            case.dry_run.ask(change).status,
        )


def _one_of_each(view: View) -> tuple[str, ...] | Unmet:
    found = [view.names(kind)[:1] for kind in ("podcliques", "podgangs", "pods", "services")]
    return tuple(names[0] for names in found) if all(found) else Unmet("one of them is missing")


def _all(case: Case, id: str, status: int, requests: dict[str, Request]) -> None:
    replies = case.dry_run.all(list(requests.values()))
    for what, reply in zip(requests, replies, strict=True):
        accepted = status < 400
        right = reply.accepted if accepted else reply.status == status
        want = "accepted" if accepted else f"{status}"
        case.expect(id, f"{ALICE}: {what}", want, want if right else str(reply))


def _create(case: Case, labels: dict[str, str]) -> Request:
    pod = {"containers": [{"name": "main", "image": "registry.example/app:1"}]}
    clique = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": "smuggled", "labels": labels},
        "spec": {"roleName": "x", "replicas": 1, "podSpec": pod},
    }
    return case.dry_run.create(clique, user=ALICE)


def _without_label() -> dict[str, object]:
    return {"metadata": {"labels": dict.fromkeys(MANAGED)}}
