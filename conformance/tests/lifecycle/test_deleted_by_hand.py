"""Cliques and groups that somebody deletes come again; sets go in whatever way and moment they are deleted."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import name, number, terminating, uid
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.comparison import same
from conformance.testing.deleted import all_gone, made_late, outlived
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.observed import all_of, gone
from conformance.testing.scaled import pods_are

ALL = ("hands", "last", "counts", "again")


@requirements("LIFE-005", "LIFE-006", "LIFE-007", "LIFE-008", "LIFE-009", "INV-001", "INV-004", "INV-005")
def test_what_is_deleted_by_hand_comes_again_and_sets_do_not(case: Case) -> None:
    case.nodes("tiny", 1)
    small = {"alone": 1, "aloneFloor": 1, "groups": 1, "groupsFloor": 1, "members": 1, "membersFloor": 1}
    shapes = {each: case.workload("kept", setName=each, **({} if each == "hands" else small)) for each in ALL}
    for workload in shapes.values():
        case.create(workload)
    case.until("LIFE-008", "the sets are available", all_of(*(predicates.available(each, 1) for each in ALL)))
    before = case.quiet(1)

    # Of one set cliques are deleted, one set goes in the foreground, one while it counts down; one is made again.
    disruption.become(case, "counts-0-a", disruption.CRASHED, 1)
    case.until("LIFE-006", "a clique counts down", disruption.breached(CLIQUES, ["counts-0-a"]))
    mine = ["hands-0-a", "hands-0-g-1-b"]
    former = incarnations.uids(before, CLIQUES)
    for clique in mine:
        case.delete(CLIQUES, clique)
    case.delete(SETS, "last", "Foreground")
    case.delete(SETS, "counts")
    case.delete(SETS, "again")
    case.until("LIFE-007", "the set that is to be made again goes", gone(SETS, ["again"]), 150)
    case.create(shapes["again"])

    case.eventually("LIFE-008", "the deleted cliques are made anew", incarnations.renewed(CLIQUES, mine, former))
    sizes = {clique.name: clique.template.replicas for clique in expected(shapes["hands"]).cliques.values()}
    case.eventually("LIFE-008", "with the pods of their template", pods_are(sizes, ready=True))
    kept = [clique for clique in sizes if clique not in mine]
    others = {name(pod): uid(pod) for clique in kept for pod in predicates.pods_of(before, clique)}
    now = {name(pod): uid(pod) for pod in case.history.view().list("pods") if not terminating(pod)}
    same(case, "LIFE-008", "pods of the other cliques", others, {each: now.get(each, "") for each in others})

    for id, each in (("LIFE-005", "last"), ("LIFE-006", "counts")):
        case.eventually(id, "all of the deleted set goes", all_gone(before, each), 150)
        case.expect(id, "what was made of the set after its deletion", [], made_late(case.history, each))
    case.expect("LIFE-005", "what outlived the set", [], outlived(case.history, "last"))

    members = {clique: size for clique, size in sizes.items() if clique.startswith("hands-0-g-")}
    again = incarnations.renewed(CLIQUES, members, incarnations.uids(case.history.view(), CLIQUES))
    case.delete(GROUPS, "hands-0-g")
    renewed = incarnations.renewed(GROUPS, ["hands-0-g"], incarnations.uids(before, GROUPS))
    case.eventually("LIFE-009", "the deleted group is made anew", renewed)
    case.eventually("LIFE-009", "with its cliques and their pods", all_of(again, pods_are(members, ready=True)))
    case.eventually("LIFE-009", "and the set is available", predicates.available("hands", 1))
    replicas = number(case.history.view().get(GROUPS, "hands-0-g"), "spec", "replicas")
    case.expect("LIFE-009", "replicas of the group", 2, replicas)
    case.until("LIFE-007", "the set that was made again is available", predicates.available("again", 1))
