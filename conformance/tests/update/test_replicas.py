"""Which replicas of a set and of a scaling group go in an update, and when: several sets, each in its own trouble."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from conformance.grove import updates
from conformance.grove.fields import condition_is
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, predicates, replay
from conformance.testing.comparison import same
from conformance.testing.observed import all_of, gone, there
from conformance.testing.scaled import pods_are, scale
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS

GROUPED = {"sick": 3, "grows": 2, "shrinks": 3, "again": 3}
"""Replicas of the group of each set."""


@requirements("UPD-025", "UPD-026", "UPD-027", "UPD-028", "INV-001", "INV-004", "INV-005")
def test_replicas_of_groups_go_in_the_right_order(case: Case) -> None:
    case.nodes("tiny", 1)
    sets = {}
    for each, size in GROUPED.items():
        values = {"alone": 1, "aloneFloor": 1, "groups": size, "groupsFloor": 1, "members": 1, "membersFloor": 1}
        sets[each] = case.workload("kept", setName=each, **values)
        case.create(sets[each])
    members = {each: [f"{each}-0-g-{j}-b" for j in range(size)] for each, size in GROUPED.items()}
    case.until("UPD-025", "all sets are available", all_of(*(predicates.available(each, 1) for each in sets)), 150)
    ones = [f"{each}-0-g-{j}-{clique}" for each, size in GROUPED.items() for j in range(size) for clique in "bc"]
    case.until("UPD-025", "all pods of the groups are Ready", changes.whole(dict.fromkeys(ones, 1)))
    disruption.become(case, members["sick"][2], disruption.STARTING, 1)
    case.until("UPD-025", "a pod is not Ready", changes.whole({members["sick"][2]: 0}))
    case.quiet(0.7)
    since, before = case.history.mark(), {}
    for each, workload in sets.items():
        if each != "sick":
            changes.hold(workload, "b")
        before[each] = changes.change(case, workload, "b", tag="2")

    # Of those that wait for the test the first replica is made anew, and the next one waits.
    what = "the first replica is made anew"
    held = [members[each][0] for each in ("grows", "shrinks", "again")]
    case.eventually(("UPD-026", "UPD-027", "UPD-028"), what, all_of(*map(waits, held)))
    case.quiet(0.7)
    scale(case, GROUPS, "grows-0-g", 4)
    changes.release(case, members["shrinks"][0])
    again = changes.change(case, sets["again"], "b", tag="3")
    case.until("UPD-026", "the replicas that were added are there", there(CLIQUES, ["grows-0-g-2-b", "grows-0-g-3-b"]))
    case.eventually("UPD-027", "the second replica is made anew", waits(members["shrinks"][1]))
    scale(case, GROUPS, "shrinks-0-g", 1)
    case.eventually("UPD-027", "the replica that was being made anew goes", gone(CLIQUES, members["shrinks"][1:]))
    case.eventually("UPD-028", "the first replica is made anew once more", waits(members["again"][0], "3"))
    case.quiet(1, real=True)
    # The first replica may or may not count as the selected one (CHG-RU-60), so the second may be recreated beside it.
    recreated = replay.sequence(case.history, of_group("again"), since)
    third = [replica for replica in recreated if replica == "again-0-g-2"]
    case.expect("UPD-028", "replicas recreated before the selected one is available", [], third)

    ends = {"sick": "UPD-025", "grows": "UPD-026", "shrinks": "UPD-027", "again": "UPD-028"}
    before["again"] = again
    sights_of_ends = {each: changes.done(each, before[each]) for each in ends}
    every = [*(clique for own in members.values() for clique in own), "grows-0-g-2-b", "grows-0-g-3-b"]
    changes.nurse(case, (), "all updates end", every, all_of(*sights_of_ends.values()))
    for each, id in ends.items():
        case.eventually(id, f"the update of {each} ends", sights_of_ends[each], 30)
    sizes = {f"grows-0-g-{j}-{clique}": 1 for j in range(4) for clique in "bc"}
    case.eventually("UPD-026", "all replicas have their pods", pods_are(sizes), 30)
    case.quiet(0.7)
    judge_groups(case, since)


def judge_groups(case: Case, since: int) -> None:
    view, made = case.history.view(), replay.made(case.history, since)
    order = [f"sick-0-g-{j}" for j in (2, 0, 1)]
    found = replay.deleted(case.history, of_group("sick"), since)
    case.expect("UPD-025", "replicas in the order in which they went", order, found)
    once = {f"grows-0-g-{j}-{clique}": 1 for j in range(4) for clique in "bc"}
    same(case, "UPD-026", "new pods by clique", once, {clique: made.get(clique, 0) for clique in once})
    ends = (("UPD-026", "grows", 4, "2"), ("UPD-027", "shrinks", 1, "2"), ("UPD-028", "again", 3, "3"))
    for id, each, size, tag in ends:
        tags = {f"{each}-0-g-{j}-b": [tag] for j in range(size)}
        same(case, id, "templates of the pods", tags, {clique: changes.images(view, clique) for clique in tags})
    sizes = {f"again-0-g-{j}-{clique}": 1 for j in range(3) for clique in "bc"}
    three = replay.together(case.history, sizes, of_group("again"), since, most=2)
    case.expect("UPD-028", "moments at which three replicas lacked Ready pods", [], three)


def waits(clique: str, tag: str = "2") -> predicates.Predicate:
    """A clique has one pod, which is of that template and waits for the test."""

    def seen(view: View) -> bool | Unmet:
        found = changes.held(view, clique)
        return [changes.tag(pod) for pod in found] == [tag] or Unmet(f"{clique} has no held pod of template {tag}")

    return seen


def of_group(each: str) -> replay.Part:
    """The replica of the group of a set that a clique belongs to."""
    return lambda clique: clique.rpartition("-")[0] if clique.startswith(f"{each}-0-g-") else ""


# -- replicas of sets --------------------------------------------------------------------------------------------------

REPLICAS = {"placed": 2, "sound": 3, "out": 2, "in": 2, "twice": 2, "freezes": 1}


@requirements(
    *("UPD-029", "UPD-030", "UPD-031", "UPD-032", "UPD-033", "UPD-034", "UPD-035", "INV-001", "INV-004", "INV-005"),
)
def test_replicas_of_sets_go_in_the_right_order(case: Case) -> None:
    nodes = case.nodes("tiny", 1)
    sets = {each: workload_of(case, each, replicas) for each, replicas in REPLICAS.items()}
    sets["recycled"] = case.workload("rolling", setName="recycled", groups=1, groupsFloor=1, aloneFloor=1, delay="2s")
    for workload in sets.values():
        case.create(workload)
    available = [predicates.available(each, REPLICAS.get(each, 1)) for each in sets]
    case.until("UPD-029", "all sets are available", all_of(*available), 150)
    pods = {f"{each}-{index}-web": 2 for each, replicas in REPLICAS.items() for index in range(replicas)}
    case.until("UPD-029", "all their pods are Ready", changes.whole({**pods, "recycled-0-a": 2}))
    disruption.become(case, "sound-1-web", disruption.CRASHED, 2)
    disruption.cordon(case, nodes)
    scale(case, SETS, "placed", 3)
    case.until("UPD-029", "there is a replica that no node takes", pods_are({"placed-2-web": 2}))
    case.until("UPD-030", "a replica is breached", disruption.breached(CLIQUES, ["sound-1-web"]))
    unplaced = changes.uids(case.quiet(0.7), "placed-2-web")
    since, before = case.history.mark(), {}
    for each, workload in sets.items():
        clique = "a" if each == "recycled" else "web"
        if each not in ("placed", "sound"):
            changes.hold(workload, clique)
        before[each] = changes.change(case, workload, clique, tag="2")
    case.eventually("UPD-029", "the replica that no node takes has its turn", turn("placed", 2))
    case.eventually("UPD-029", "its pods are replaced", changes.left("placed-2-web", unplaced))
    case.eventually("UPD-030", "the breached replica has its turn", turn("sound", 1))
    case.quiet(0.7)
    lost = replay.sequence(case.history, of("placed"), since)
    case.expect("UPD-029", "replicas that lost pods meanwhile", ["2"], lost)
    disruption.cordon(case, nodes, off=True)

    held = {each: f"{each}-0-web" for each in ("out", "in", "twice", "freezes")} | {"recycled": "recycled-0-a"}
    ids = ("UPD-031", "UPD-032", "UPD-033", "UPD-034", "UPD-035")
    case.until(ids, "the first pods are replaced", all_of(*(changes.one_held(clique) for clique in held.values())))
    scale(case, SETS, "out", 3)
    disruption.become(case, "recycled-0-q", disruption.CRASHED, 1)
    changes.strategy(case, "freezes", changes.ON_DELETE)
    closed(case)
    what = "the second replica has its turn"
    firsts = ["in-0-web", "twice-0-web"]
    changes.nurse(case, ("UPD-032", "UPD-033"), what, firsts, all_of(turn("in", 1), turn("twice", 1)))
    fail_node = all_of(changes.one_held("in-1-web"), changes.one_held("twice-1-web"))
    case.until(("UPD-032", "UPD-033"), "and loses a pod", fail_node)
    scale(case, SETS, "in", 1)
    case.until("UPD-032", "the replica that had its turn goes", gone(CLIQUES, ["in-1-web"]))
    again = changes.change(case, sets["twice"], "web", tag="3")
    case.eventually("UPD-033", "the pod of the second template goes", changes.one_held("twice-1-web", "3"))
    recycled(case)
    case.quiet(1, real=True)
    sizes = {f"twice-{index}-web": 2 for index in range(2)}
    both = replay.together(case.history, sizes, of("twice"), since)
    case.expect("UPD-033", "moments at which two replicas lacked Ready pods", [], both)

    before["twice"] = again
    ends = {"placed": "UPD-029", "sound": "UPD-030", "out": "UPD-031", "in": "UPD-032", "twice": "UPD-033"}
    ends |= {"recycled": "UPD-034"}
    sights_of_ends = {each: changes.done(each, before[each]) for each in ends}
    every = [f"{each}-{index}-web" for each in ("out", "in", "twice") for index in range(3)]
    changes.nurse(case, (), "all updates end", [*every, "recycled-0-a"], all_of(*sights_of_ends.values()))
    for each, id in ends.items():
        case.eventually(id, f"the update of {each} ends", sights_of_ends[each], 30)
    case.quiet(0.7)
    judge_sets(case, since)


def workload_of(case: Case, each: str, replicas: int) -> Object:
    workload = case.workload("waiting", setName=each, pods=2, floor=2 if each == "sound" else 1)
    changes.template(workload, "web").pop("annotations")
    workload["spec"]["replicas"] = replicas
    return workload


def turn(each: str, index: int) -> predicates.Predicate:
    """It is the turn of one replica of a set."""

    def seen(view: View) -> bool | Unmet:
        found = updates.turns(view.get(SETS, each))
        return found == [index] or Unmet(f"{each}: the turn is {found}, not {index}")

    return seen


def of(each: str) -> Callable[[str], str]:
    """The index of the replica of a set that a clique belongs to."""
    return lambda clique: clique.split("-")[1] if clique.startswith(f"{each}-") else ""


def closed(case: Case) -> None:
    """An update that OnDelete finds unfinished is over: nothing more goes, and breaches are told again."""

    def over(view: View) -> bool | Unmet:
        parts = {"freezes": view.get(SETS, "freezes"), "freezes-0-web": view.get(CLIQUES, "freezes-0-web")}
        late = [each for each, found in parts.items() if not updates.ended(found)]
        if condition_is(view.get(CLIQUES, "freezes-0-web"), disruption.BREACHED) in ("", "Unknown"):
            late.append("the breach of freezes-0-web is Unknown")
        return not late or Unmet(f"not over: {', '.join(late)}")

    case.eventually("UPD-035", "the progress of the update is closed", over)
    changes.release(case, "freezes-0-web")
    case.until("UPD-035", "its pods are Ready", changes.whole({"freezes-0-web": 2}))


def recycled(case: Case) -> None:
    """The replica that is being updated is terminated as a whole; its update has not ended for that."""
    what = "the replica is terminated, and all its pods are of the new template"
    case.until("UPD-034", what, lambda view: len(changes.held(view, "recycled-0-a")) == 2)
    view = case.quiet(0.7)
    case.expect("UPD-034", "the update is said to have ended", False, updates.ended(view.get(SETS, "recycled")))


def judge_sets(case: Case, since: int) -> None:
    for id, each, order in (("UPD-029", "placed", [2, 0, 1]), ("UPD-030", "sound", [1, 0, 2])):
        case.expect(id, f"turns of {each}", order, turns(case, each, since))
    view, made = case.history.view(), replay.made(case.history, since)
    case.expect("UPD-031", "pods made for the replica that was added", 2, made.get("out-2-web"))
    for id, cliques, tag in (
        ("UPD-031", [f"out-{index}-web" for index in range(3)], "2"),
        ("UPD-032", ["in-0-web"], "2"),
        ("UPD-033", ["twice-0-web", "twice-1-web"], "3"),
    ):
        same(case, id, "templates of the pods", *compared(view, cliques, tag))
    left = changes.images(view, "freezes-0-web")
    case.expect("UPD-035", "templates of the pods of what OnDelete stopped", ["1", "2"], left)


def compared(view: View, cliques: Iterable[str], tag: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    names = list(cliques)
    return {each: [tag] * 2 for each in names}, {each: changes.images(view, each) for each in names}


def turns(case: Case, each: str, since: int) -> list[int | None]:
    """The replicas that have had their turn, in order."""
    found: list[int | None] = []
    for record in case.history.records(SETS, each, since=since):
        found += [index for index in updates.turns(record.object) if index not in found[-1:]]
    return found
