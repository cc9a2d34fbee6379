"""Sets that an earlier version has stored: with packDomain, and some without the name of a ClusterTopologyBinding.

The schema keeps packDomain where it is stored. The webhooks let nobody bring it back, so they are away meanwhile.
"""

from __future__ import annotations

from typing import Any

from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.checks import Blocked
from conformance.suite.dry_run import Reply
from conformance.suite.requirement import requirements
from conformance.testing.observed import gone
from conformance.tests.admission.judging import bound

SETS = "podcliquesets"
NAMELESS, NAMED = "nameless", "named"
RACK, HOST = {"packDomain": "rack"}, {"packDomain": "host"}
TOUCHED = "conformance.grove.io/touched"


@requirements("ADM-047", "ADM-048", "ADM-049", "ADM-050")
def test_sets_that_were_stored_with_pack_domain_can_be_changed_and_deleted(case: Case) -> None:
    with bound(case) as binding:
        for name in (NAMELESS, NAMED):
            case.create(packed(case, name, binding))
        case.quiet(1)  # the operator has done what it does to a new set
        with case.roles.without_hooks():
            store(case, NAMELESS, {"topologyName": None, **RACK})
            store(case, NAMED, {"topologyName": binding, **RACK})
        repair(case, binding)
        migration(case)
        touch(case)
        case.delete(SETS, NAMELESS)
        case.eventually("ADM-049", "the deleted set is gone", gone(SETS, [NAMELESS]), 30)


def packed(case: Case, name: str, binding: str) -> Object:
    """A set as it is written now. It has no replicas: the test is about the set alone."""
    workload = case.workload("frontend", setName=name, replicas=0)
    template = workload["spec"]["template"]
    template["topologyConstraint"] = {"topologyName": binding, "pack": {"required": "rack"}}
    template["cliques"][0]["topologyConstraint"] = {"pack": {"required": "host"}}
    return workload


def store(case: Case, name: str, constraint: dict[str, Any]) -> None:
    """Gives a set and its clique packDomain. Raises Blocked where the schema itself keeps such a set from being."""
    former = constrained(case, name, {"pack": None, **constraint}, HOST)
    reply = case.dry_run.ask(case.dry_run.patch(SETS, name, former))
    if not reply.accepted:
        raise Blocked(f"a set with packDomain cannot be stored even without webhooks: {reply}", "circumstances")
    case.patch(SETS, name, former)


def repair(case: Case, binding: str) -> None:
    """What may come with the binding name that is missing: nothing."""
    migrated = {"packDomain": None, "pack": {"required": "rack"}}
    for id, what, constraint, wanted in (
        ("ADM-047", "the binding name is added", {"topologyName": binding}, "accepted"),
        ("ADM-047", "the name of no binding is added", {"topologyName": f"no-{binding}"}, "refused"),
        ("ADM-047", "binding name and another domain", {"topologyName": binding, "packDomain": "zone"}, "refused"),
        ("ADM-047", "binding name and pack.required", {"topologyName": binding, **migrated}, "refused"),
        ("ADM-050", "binding name and a preferred domain", {"topologyName": binding, "pack": {"preferred": "host"}},
         "refused"),
    ):  # fmt: skip
        reply = ask(case, NAMELESS, constrained(case, NAMELESS, constraint, HOST))
        case.expect(id, what, wanted, verdict(reply, wanted))


def migration(case: Case) -> None:
    """From packDomain to pack.required, where the binding is named."""
    for domain, wanted in (("rack", "accepted"), ("zone", "refused")):
        constraint = {"packDomain": None, "pack": {"required": domain}}
        reply = ask(case, NAMED, constrained(case, NAMED, constraint, {"pack": {"required": "host"}}))
        case.expect("ADM-048", f"packDomain rack becomes pack.required {domain}", wanted, verdict(reply, wanted))
    warnings = ask(case, NAMED, {"metadata": {"labels": {TOUCHED: "yes"}}}).warnings
    warned = any("packDomain" in warning for warning in warnings)
    case.expect("ADM-048", "a label is changed with a warning of packDomain", True, warned)


def touch(case: Case) -> None:
    """What is not of the spec may change, whatever the spec lacks."""
    finalizers = [*stored(case, NAMELESS)["metadata"].get("finalizers", []), TOUCHED]
    for what, metadata in (("label", {"labels": {TOUCHED: "yes"}}), ("finalizer", {"finalizers": finalizers})):
        reply = ask(case, NAMELESS, {"metadata": metadata})
        case.expect("ADM-049", f"a {what} is added", "accepted", verdict(reply, "accepted"))


def constrained(case: Case, name: str, of_set: dict[str, Any], of_clique: dict[str, Any]) -> dict[str, Any]:
    """The patch that changes the constraint of a stored set, and gives its only clique this one."""
    [clique] = stored(case, name)["spec"]["template"]["cliques"]
    cliques = [{**clique, "topologyConstraint": of_clique}]
    return {"spec": {"template": {"topologyConstraint": of_set, "cliques": cliques}}}


def stored(case: Case, name: str) -> Object:
    return case.dry_run.ask(case.dry_run.get(SETS, name)).object


def ask(case: Case, name: str, patch: dict[str, Any]) -> Reply:
    return case.dry_run.ask(case.dry_run.patch(SETS, name, patch))


def verdict(reply: Reply, wanted: str) -> str:
    """The word that is wanted, if it is true of the reply; else what was answered."""
    return wanted if (reply.accepted if wanted == "accepted" else reply.refused) else str(reply)
