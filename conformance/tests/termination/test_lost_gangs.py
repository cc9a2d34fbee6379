"""What has lost pods and cannot have them again is made anew, once, and as much of it as has to be.

Sets of several shapes lose pods while no node takes any; nothing can come of it before their delay, an hour, is
shortened. So nothing here depends on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove import labels
from conformance.grove.expected import expected
from conformance.grove.fields import condition_is, label, number, text
from conformance.history.record import Record
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.comparison import same
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.tests.termination import delays

LATER, SECONDS, PAIR = "1h0m0s", 6, 2
LOOSE = {"aloneFloor": 1, "groupsFloor": 1, "membersFloor": 1, "delay": LATER}
SHAPES: dict[str, dict[str, object]] = {
    "pair": {"replicas": PAIR, "groups": 1, "groupsFloor": 1, "members": 1, "membersFloor": 1, "delay": LATER},
    "strict": {"delay": LATER},
    "loose": LOOSE,
    "torn": LOOSE,
    "never": {"delay": "1s"},
}
LAST = [f"{group}-{clique}" for group in ("torn-0-g-2", "pair-0-g-1") for clique in "bc"]
"""Cliques of replicas that do not run: they are asked for when no node takes pods."""


@requirements(
    *("TERM-001", "TERM-002", "TERM-003", "TERM-004", "TERM-005", "TERM-006", "TERM-007", "TERM-008", "TERM-009"),
    *("TERM-010", "TERM-011", "TERM-012", "TERM-013", "TERM-014", "TERM-015"),
    *("INV-001", "INV-004", "INV-005"),
)
def test_what_falls_apart_is_made_anew(case: Case) -> None:
    nodes = case.nodes("tiny", 1)
    shapes = {each: case.workload("kept", setName=each, **values) for each, values in SHAPES.items()}
    never = shapes.pop("never")
    started(case, shapes)
    before = case.history.view()
    disruption.cordon(case, nodes)
    case.create(never)
    since = case.history.now()
    torn_apart(case)

    # Nothing has come of it so far. From now on the delay is short, but for the time that has passed already.
    everything = [clique for set in shapes.values() for clique in expected(set).cliques]
    gone = [name for name in incarnations.ends(case.history, CLIQUES) if name in everything]
    case.expect("TERM-002", "cliques deleted within the hour", [], gone)
    uids = incarnations.uids(case.history.view(), CLIQUES)
    causes = {name: delays.breaches(case.history, name, LAST) for name in uids}
    disruption.delay(case, shapes, f"{SECONDS}s")
    pair = [f"pair-1-{rest}" for rest in ("a", "g-0-b", "g-0-c")]
    strict = ["strict-0-a", *(f"strict-0-g-{j}-{clique}" for j in range(3) for clique in "bc")]
    torn = ["torn-0-a", *(f"torn-0-g-{j}-{clique}" for j in range(3) for clique in "bc")]
    one = [f"loose-0-g-0-{clique}" for clique in "bc"]
    case.eventually("TERM-001", "all of a replica that lost a pod is made anew", anew([*pair, *strict], uids), 120)
    case.eventually("TERM-008", "the replica of the scaling group is made anew", anew(one, uids), 120)
    case.eventually("TERM-011", "all of a replica whose group is breached is made anew", anew(torn, uids), 120)
    ends = incarnations.ends(case.history, CLIQUES)
    deleted = {name: ends[name] for name in (*pair, *strict, *one, *torn) if name in ends}
    case.expect(
        "TERM-002", f"cliques deleted before {SECONDS} s were over", [], delays.early(causes, deleted, SECONDS, since)
    )

    # As long as no node takes pods it stays at that, however short the delay.
    groups = ["pair-1-g", "strict-0-g", "torn-0-g"]
    case.eventually("TERM-005", "the scaling groups say that they are being made anew", disruption.flagged(groups))
    disruption.delay(case, shapes, "1s")
    case.quiet(6, real=True)
    known = [*everything, *(n for n in (*strict, *LAST) if n not in everything)]
    found = disruption.counts(case.history, known)
    once = dict.fromkeys((*pair, *strict), 2)
    same(case, "TERM-004", "cliques that each name has had", once, {name: found[name] for name in once})
    same(case, "TERM-011", "cliques that each name has had", dict.fromkeys(torn, 2), {n: found[n] for n in torn})
    same(case, "TERM-009", "cliques that each name has had", {"loose-0-a": 1}, {"loose-0-a": found["loose-0-a"]})
    loose = [name for name in everything if name.startswith("loose-")]
    right = {name: 2 if name in one else 1 for name in loose}
    same(case, "TERM-008", "cliques that each name has had", right, {name: found[name] for name in loose})
    other = {name: 1 for name in everything if name.startswith("pair-0-")}
    same(case, "TERM-003", "cliques of the other replica", other, {name: found[name] for name in other})
    view = case.history.view()
    judge_surroundings(case, before, view)
    judge_flags(case, groups, ["pair-0-g", "loose-0-g"], view)

    judge_never(case, never)

    disruption.cordon(case, nodes, off=True)
    recovered(case, [*shapes, "never"])
    judge_sizes(case)
    judge_never(case, never)

    # Armed again: three more losses, and two that are none.
    found = disruption.counts(case.history, known)
    disruption.become(case, "pair-1-g-0-c", disruption.CRASHED, 1)
    disruption.become(case, "strict-0-a", disruption.UNHEARD_OF, 1)
    disruption.become(case, "loose-0-a", disruption.STARTING, 2)
    disruption.become(case, "torn-0-a", disruption.RECOVERED, 2)
    again = {name: found[name] + 1 for name in pair}
    lost = {name: found[name] + 1 for name in strict}
    anew_again = {
        "pair": case.eventually(
            ("TERM-006", "TERM-013"), "what crashes is made anew, again", has_had(case, again), 120
        ),
        "strict": case.eventually("TERM-014", "what nobody hears of is made anew", has_had(case, lost), 120),
    }
    case.quiet(3, real=True)
    recovered(case, [each for each, seen in anew_again.items() if seen])  # pods of the others stay as they are
    kept = {name: found[name] for name in known if name.startswith(("loose-", "torn-"))}
    same(
        case,
        "TERM-015",
        "cliques whose pods are on their way or have recovered",
        kept,
        disruption.counts(case.history, kept),
    )


def started(case: Case, shapes: dict[str, Object]) -> None:
    for workload in shapes.values():
        case.create(workload)
    case.until("TERM-007", "every set is available", available(shapes))
    cliques = [clique for workload in shapes.values() for clique in expected(workload).cliques.values()]
    case.until("TERM-007", "all their pods are Ready", pods_are(predicates.sizes(cliques), ready=True))
    scale(case, GROUPS, "strict-0-g", 3)
    scale(case, CLIQUES, "strict-0-g-1-b", 2)
    sizes = {"strict-0-g-1-b": 2, "strict-0-g-2-b": 1, "strict-0-g-2-c": 2}
    case.until("TERM-012", "the scaled group and clique have their pods", all_of(pods_are(sizes, ready=True)))
    # A pod of a scaled gang that can be replaced is nobody's loss.
    lost = disruption.by_index(case, "loose-0-g-1-c")[0]
    case.delete("pods", text(lost, "metadata", "name"))
    what = "the one pod that was lost is replaced"
    case.until("TERM-009", what, pods_are({"loose-0-g-1-c": 2}, ready=True, but=text(lost, "metadata", "uid")))


def torn_apart(case: Case) -> None:
    """Takes pods away, and waits until the cliques and groups say so."""
    scale(case, GROUPS, "torn-0-g", 3)
    scale(case, GROUPS, "pair-0-g", 2)
    disruption.fail_node(case, "pair-1-a", 1)
    disruption.fail_node(case, "strict-0-g-0-c", 1)
    disruption.fail_node(case, "strict-0-g-2-c", 1)
    disruption.fail_node(case, "loose-0-a", 1)
    disruption.fail_node(case, "loose-0-g-0-c", 2)
    disruption.fail_node(case, "torn-0-g-1-c", 2)
    cliques = ["pair-1-a", "strict-0-g-0-c", "strict-0-g-2-c", "loose-0-g-0-c", "torn-0-g-1-c", *LAST]
    case.until("TERM-001", "the cliques say that they have lost pods", disruption.breached(CLIQUES, cliques))
    case.until(
        "TERM-001", "the group that lost two of three replicas says so", disruption.breached(GROUPS, ["strict-0-g"])
    )
    still = disruption.breached(GROUPS, ["pair-1-g", "loose-0-g", "torn-0-g"], "False")
    case.until("TERM-008", "groups with enough other replicas say so", still)
    fine = disruption.breached(CLIQUES, ["loose-0-a"], "False")
    case.eventually("TERM-009", "a clique with as many pods as it needs says so", fine)
    # Two seconds apart, so that the replica and its group do not count down together.
    case.quiet(2, real=True)
    disruption.fail_node(case, "torn-0-g-0-c", 2)
    case.until("TERM-011", "no replica of the group is left", disruption.breached(GROUPS, ["torn-0-g"]))


def anew(names: Iterable[str], before: dict[str, str]) -> predicates.Predicate:
    return incarnations.renewed(CLIQUES, names, before)


def has_had(case: Case, wanted: dict[str, int]) -> predicates.Predicate:
    def seen(view: View) -> bool:
        return disruption.counts(case.history, wanted) == wanted

    return seen


def judge_surroundings(case: Case, before: View, view: View) -> None:
    """Scaling groups, gangs and Services outlive the cliques."""
    for resource in (GROUPS, GANGS, "services"):
        right = incarnations.uids(before, resource)
        now = incarnations.uids(view, resource)
        same(case, "TERM-003", f"uids of {resource}", right, {name: now.get(name, "") for name in right})


def judge_flags(case: Case, groups: list[str], others: list[str], view: View) -> None:
    told = {each: disruption.flagged([each])(view) is True for each in groups}
    same(case, "TERM-005", "groups that say that they are being made anew", dict.fromkeys(groups, True), told)
    seen = [str(r) for each in others for r in case.history.records(GROUPS, each) if says_so(r)]
    case.expect("TERM-005", "groups that say so and are not", [], seen)
    lost = []
    for each in groups:
        records = case.history.records(GROUPS, each)
        first = next((n for n, record in enumerate(records) if says_so(record)), 0)
        lost += [str(record) for record in records[first:] if not says_so(record)]
    case.expect("TERM-005", "states in which it is no longer said before the recovery", [], lost)


def judge_never(case: Case, never: Object) -> None:
    """What was asked for when no node took pods is still what it was."""
    waited = [*expected(never).cliques, *(name for name in LAST if name.startswith("pair-0-"))]
    has = disruption.counts(case.history, waited)
    same(case, "TERM-010", "cliques of what had never run", dict.fromkeys(waited, 1), has)


def says_so(record: Record) -> bool:
    return condition_is(record.object, disruption.IN_PROGRESS) == "True"


def available(sets: Iterable[str]) -> predicates.Predicate:
    return all_of(*(predicates.available(each, PAIR if each == "pair" else 1) for each in sets))


def recovered(case: Case, sets: Iterable[str]) -> None:
    wanted = list(sets)
    case.until("TERM-007", "with room for them all sets are available again", available(wanted))
    every = case.history.view().names(GROUPS)
    mine = [each for each in every if each.startswith(tuple(f"{one}-" for one in wanted))]
    case.eventually("TERM-005", "no group says any longer that it is being made anew", disruption.flagged(mine, ""))


def judge_sizes(case: Case) -> None:
    """What was scaled by hand: groups keep it, cliques that are made anew have the size of the template."""
    sizes = {"strict-0-a": 2, "strict-0-g-1-b": 1, "strict-0-g-2-b": 1, "strict-0-g-2-c": 2}
    case.eventually("TERM-012", "cliques that were made anew have the size of their template", pods_are(sizes))
    view = case.quiet(1)
    case.expect(
        "TERM-012", "replicas of the scaled group", 3, number(view.get(GROUPS, "strict-0-g"), "spec", "replicas")
    )
    indices = {n: sorted(label(pod, labels.POD_INDEX) for pod in predicates.pods_of(view, n)) for n in sizes}
    right = {name: [str(index) for index in range(size)] for name, size in sizes.items()}
    same(case, "TERM-012", "indices of the pods of cliques that were made anew", right, indices)
