"""Which pods of a clique go in an update, and when: several sets of one clique, each in its own trouble."""

from __future__ import annotations

from conformance.grove import pods, updates
from conformance.grove.fields import uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, predicates, replay
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, SETS

SIZES = {
    "down": 2,
    "sick": 4,
    "ill": 4,
    "crashed": 2,
    "shrinks": 3,
    "grows": 2,
    "again": 3,
    "back": 3,
    "twice": 3,
    "fits": 2,
    "broken": 2,
}
FLOORS = {"sick": 3}
EITHER = (1, 2)
"""How many of three Ready pods may be replaced after a second change, before a new pod becomes Ready. An unready pod of
the first change is replaced at once (CHG-RU-21), and whether the next Ready pod waits for its successor is open: the
selection is cleared (CHG-RU-60), but Ready pods go one at a time (CHG-RU-23). The third waits in any case."""
TAKEN = {"down": (2,), "sick": (2,), "ill": (3,), "twice": EITHER}
"""How many pods are replaced at once; one pod of each other set."""
ENDS = {
    "ill": "UPD-014",
    "crashed": "UPD-015",
    "sick": "UPD-016",
    "down": "UPD-046",
    "fits": "UPD-018",
    "shrinks": "UPD-019",
    "grows": "UPD-020",
    "broken": "UPD-021",
    "again": "UPD-022",
    "twice": "UPD-023",
    "back": "UPD-024",
}
LAST = {"again": "3", "twice": "3", "broken": "3", "back": "1"}
"""The template that each set has in the end; all others have the second."""
LATE = "conformance.grove.io/late"
"""A label that the pods of one set want of their node, and that no node has at first."""

Uids = dict[str, set[str]]


def clique(each: str) -> str:
    return f"{each}-0-web"


@requirements(
    *("UPD-014", "UPD-015", "UPD-016", "UPD-017", "UPD-018", "UPD-019", "UPD-020", "UPD-021", "UPD-022", "UPD-023"),
    *("UPD-024", "UPD-046", "UPD-009", "INV-001", "INV-004", "INV-005"),
)
def test_pods_go_in_the_right_order(case: Case) -> None:
    nodes = case.nodes("tiny", 1)
    sets = {each: workload_of(case, each) for each in SIZES}
    for workload in sets.values():
        case.create(workload)
    case.until("UPD-016", "all pods are Ready", changes.whole({clique(each): n for each, n in SIZES.items()}), 150)
    for each in ("down", "sick", "ill"):
        disruption.become(case, clique(each), disruption.STARTING, 2)
    disruption.become(case, clique("crashed"), disruption.RECOVERED, 2)
    case.until(
        "UPD-014", "two pods are not Ready", changes.whole({clique("down"): 0, clique("sick"): 2, clique("ill"): 2})
    )
    case.quiet(0.7)
    view, since = case.history.view(), case.history.mark()
    first = {each: changes.uids(view, clique(each)) for each in SIZES}
    before = {each: updates.generation(view.get(SETS, each)) for each in SIZES}

    # The pods that come now are not Ready until the test lets them be.
    for each, workload in sets.items():
        changes.image(workload, "web", tag="2")
        second_template(case, workload, each)
        changes.apply(case, workload)
    case.settled("the first of two changes has been seen", changes.begun("twice", before["twice"]))
    changes.image(sets["twice"], "web", tag="3")
    changes.apply(case, sets["twice"])
    one_at_a_time(case, first)
    others_do_not_count(case, first)
    changed_again(case, sets, first)

    case.patch("nodes", nodes[0], {"metadata": {"labels": {LATE: "yes"}}})
    sights_of_ends = {each: over(each) if each == "back" else changes.done(each, before[each]) for each in ENDS}
    changes.nurse(case, (), "all updates end", map(clique, SIZES), all_of(*sights_of_ends.values()))
    for each, id in ENDS.items():
        case.eventually(id, f"the update of {each} ends", sights_of_ends[each], 30)
    case.quiet(0.7)
    judge_end(case, first, since)


def workload_of(case: Case, each: str) -> Object:
    workload = case.workload("waiting", setName=each, pods=SIZES[each], floor=FLOORS.get(each, 1))
    changes.template(workload, "web").pop("annotations")
    return workload


def second_template(case: Case, workload: Object, each: str) -> None:
    """What new pods of a set lack: a node that takes them, an image, or that the test lets them be Ready."""
    if each == "fits":
        spec = changes.template(workload, "web")["spec"]["podSpec"]
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), LATE: "yes"}
    elif each == "broken":
        case.set_behavior(workload, "web", "image-pull-failure")
    else:
        changes.hold(workload, "web")


def one_at_a_time(case: Case, first: Uids) -> None:
    """What goes at once, and that nothing more goes."""
    for each, size in SIZES.items():
        taken = TAKEN.get(each, (1,))
        bound = size - 1 if each == "fits" else size
        id = {"down": "UPD-014", "sick": "UPD-014", "twice": "UPD-022"}.get(each, ENDS[each])
        what = f"{either(taken)} pods of {each} are replaced at once"
        case.eventually(id, what, changes.anew(clique(each), first[each], taken, bound))
    view = case.quiet(1, real=True)
    for each in SIZES:
        id = {"down": "UPD-014", "sick": "UPD-017", "twice": "UPD-022"}.get(each, ENDS[each])
        replaced(case, id, each, len(lost(view, each, first)), TAKEN.get(each, (1,)))
    early = [each for each in SIZES if updates.ended(view.get(SETS, each))]
    case.expect("UPD-009", "sets that say the end while pods of theirs are not Ready", [], early)
    early = [
        each
        for each in SIZES
        if updates.ended(view.get(CLIQUES, clique(each)), updates.generation(view.get(SETS, each)))
    ]
    case.expect("UPD-046", "cliques that report the end while pods of theirs are not Ready", [], early)
    unready = {uid(pod) for each in ("down", "sick", "ill") for pod in unready_of(case, each, first)}
    case.expect("UPD-014", "pods that were not Ready and are still there", [], sorted(unready))


def replaced(case: Case, id: str, each: str, count: int, allowed: tuple[int, ...]) -> None:
    """Expect that the number of replaced pods is one of those allowed."""
    wanted = either(allowed)
    case.expect(id, f"replaced pods of {each}", wanted, wanted if count in allowed else str(count))


def either(allowed: tuple[int, ...]) -> str:
    return " or ".join(map(str, allowed))


def unready_of(case: Case, each: str, first: Uids) -> list[changes.Pod]:
    """The old pods of a set that are there and not Ready."""
    found = predicates.pods_of(case.history.view(), clique(each))
    return [pod for pod in found if uid(pod) in first[each] and not pods.ready(pod)]


def lost(view: View, each: str, first: Uids) -> set[str]:
    return first[each] - changes.uids(view, clique(each))


def others_do_not_count(case: Case, first: Uids) -> None:
    """Successors of pods that went by force, and pods that were added, become Ready: they stand for nobody else."""
    scale(case, CLIQUES, clique("grows"), 4)
    added_are_there = changes.anew(clique("grows"), first["grows"], (1,), 4)
    case.eventually("UPD-020", "the pods that were added are there", added_are_there)
    successor = set(successors(case, "grows", first))
    added = changes.uids(case.history.view(), clique("grows")) - first["grows"] - successor
    for each in ("down", "sick", "ill", "crashed", "shrinks", "twice"):
        changes.release(case, clique(each))
    changes.release(case, clique("grows"), successor)
    next_taken = {"sick": (3,), "ill": (4,), "crashed": (2,), "shrinks": (2,), "twice": (2, 3)}
    for each, counts in next_taken.items():
        what = f"the next pod of {each} is replaced"
        case.eventually(ENDS[each], what, changes.anew(clique(each), first[each], counts, SIZES[each]))
    case.eventually("UPD-020", "the pods that were added are Ready", are_ready(clique("grows"), added))
    case.settled("and their clique says so", changes.whole({clique("grows"): 3}), 10)
    scale(case, CLIQUES, clique("shrinks"), 1)
    case.eventually("UPD-019", "the clique has one pod", pods_are({clique("shrinks"): 1}))
    view = case.quiet(1, real=True)
    for id, each, taken in (("UPD-016", "sick", 3), ("UPD-016", "grows", 1), ("UPD-015", "crashed", 2)):
        case.expect(id, f"pods of {each} that have gone", taken, len(lost(view, each, first)))


def are_ready(clique: str, wanted: set[str]) -> predicates.Predicate:
    """These pods (uids) of a clique are Ready."""

    def seen(view: View) -> bool | Unmet:
        late = wanted - changes.where(view, clique, pods.ready)
        return not late or Unmet(f"{len(late)} of {len(wanted)} pods of {clique} are not there, or not Ready")

    return seen


def successors(case: Case, each: str, first: Uids) -> list[str]:
    """The oldest of the pods that are not the first ones: what was made before any was added."""
    new = [pod for pod in predicates.pods_of(case.history.view(), clique(each)) if uid(pod) not in first[each]]
    order = [record.uid for record in case.history.records("pods")]
    return sorted((uid(pod) for pod in new), key=order.index)[:1]


def changed_again(case: Case, sets: dict[str, Object], first: Uids) -> None:
    """A third template, the first one again, and one that is not broken."""
    changes.image(sets["again"], "web", tag="3")
    sets["back"] = workload_of(case, "back")
    changes.template(sets["broken"], "web").pop("annotations")
    changes.image(sets["broken"], "web", tag="3")
    for each in ("again", "back", "broken"):
        changes.apply(case, sets[each])
    of_third = {uid(pod) for pod in predicates.pods_of(case.history.view(), clique("again")) if changes.tag(pod) == "2"}
    case.eventually("UPD-022", "the pod of the second template goes", changes.left(clique("again"), of_third))
    case.eventually("UPD-022", "and another one comes", changes.anew(clique("again"), first["again"], EITHER, 3))
    view = case.quiet(1, real=True)
    replaced(case, "UPD-022", "again", len(lost(view, "again", first)), EITHER)


def over(each: str) -> predicates.Predicate:
    """An update that leads back to where it began has ended: its generation is no other one than before."""

    def seen(view: View) -> bool | Unmet:
        found = view.get(SETS, each)
        return updates.ended(found) or Unmet(f"the update of {each} has not ended: {dict(updates.progress(found))}")

    return seen


def judge_end(case: Case, first: Uids, since: int) -> None:
    view = case.history.view()
    sizes = {**SIZES, "shrinks": 1, "grows": 4}
    for each, id in ENDS.items():
        tags = [LAST.get(each, "2")] * sizes[each]
        case.expect(id, f"templates of the pods of {each}", tags, changes.images(view, clique(each)))
    made = replay.made(case.history, since)
    right = {clique("grows"): 4, clique("down"): 2, clique("sick"): 4, clique("ill"): 4, clique("crashed"): 2}
    for each in ("grows", "down", "sick", "ill", "crashed"):
        case.expect(ENDS[each], f"new pods of {each}", right[clique(each)], made.get(clique(each)))
    stayed = len(first["back"] & changes.uids(view, clique("back")))
    case.expect("UPD-024", "pods of the first template that stayed", SIZES["back"] - 1, stayed)
