"""What begins an update and what doesn't, and updates that wait for others to delete pods."""

from __future__ import annotations

from conformance.grove import updates
from conformance.grove.fields import name, number, text, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, incarnations, predicates, replay
from conformance.testing.comparison import same
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS

BEGIN = ("labels", "annotations", "priority", "image")
MEMBERS = ("a", "q", "g-0-b", "g-0-c", "h-0-d")
CLIQUES_OF_O = [f"o-{index}-{member}" for index in (0, 1) for member in MEMBERS]


@requirements(
    *("UPD-036", "UPD-037", "UPD-038", "UPD-039", "UPD-040", "UPD-041", "UPD-042", "UPD-043"),
    *("INV-001", "INV-004", "INV-005"),
)
def test_what_begins_an_update_and_what_it_does_on_delete(case: Case) -> None:
    case.nodes("tiny", 1)
    begin = {each: case.workload("frontend", setName=each, pods=1) for each in BEGIN}
    other = case.workload("kept", setName="other", aloneFloor=1, groupsFloor=1)
    waiting = {each: on_delete(case, each) for each in ("o", "p")}
    for workload in (*begin.values(), other, *waiting.values()):
        case.create(workload)
    replicas = {each: 2 if each == "o" else 1 for each in (*BEGIN, "other", *waiting)}
    available = [predicates.available(each, count) for each, count in replicas.items()]
    case.until("UPD-036", "all sets are available", all_of(*available), 150)
    scale(case, CLIQUES, "o-0-a", 3)
    case.until("UPD-039", "a clique that was scaled has its pods", pods_are({"o-0-a": 3}, ready=True))
    case.quiet(0.7)

    view, since = case.history.view(), case.history.mark()
    before = {each: updates.generation(view.get(SETS, each)) for each in replicas}
    first = incarnations.uids(view, "pods")
    begun(case, begin)
    unchanged(case, other)
    for workload in waiting.values():
        changes.image(workload, "a", "c", tag="2")
        changes.apply(case, workload)
    for each in BEGIN:
        case.eventually("UPD-036", f"a change of the {each} has been an update", changes.done(each, before[each]))
    announced(case, before)
    case.settled("the templates of the cliques are in place", lambda view: not misplaced(view))
    view = case.quiet(1.5, real=True)
    gone = [record.name for record in replay.gone(case.history, since)]
    found = view.get(SETS, "other")
    case.expect("UPD-037", "the generation of the set", before["other"], updates.generation(found))
    case.expect("UPD-037", "the progress of an update of it", {}, dict(updates.progress(found)))
    case.expect("UPD-037", "pods of it that went", [], [each for each in gone if each.startswith("other-")])
    case.expect("UPD-038", "pods that went by OnDelete", [], [each for each in gone if each.startswith(("o-", "p-"))])
    begun_once(case, first)
    in_place(case, view)
    by_hand(case)
    back_to_rolling(case, waiting)


def on_delete(case: Case, each: str) -> Object:
    workload = case.workload("rolling", setName=each, replicas=2 if each == "o" else 1, groups=1, groupsFloor=1)
    workload["spec"]["updateStrategy"] = {"type": changes.ON_DELETE}
    return workload


def begun(case: Case, begin: dict[str, Object]) -> None:
    changes.template(begin["labels"], "web")["labels"] = {"shade": "green"}
    changes.template(begin["annotations"], "web")["annotations"] = {"example.com/shade": "green"}
    changes.image(begin["image"], "web", tag="2")
    for each in ("labels", "annotations", "image"):
        changes.apply(case, begin[each])
    case.patch(SETS, "priority", {"spec": {"template": {"priorityClassName": "system-cluster-critical"}}})


def begun_once(case: Case, first: dict[str, str]) -> None:
    view = case.history.view()
    wrong = [name(pod) for each in BEGIN for pod in predicates.pods_of(view, f"{each}-0-web") if name(pod) in first]
    case.expect("UPD-036", "pods that are there from before the update", [], wrong)


def unchanged(case: Case, other: Object) -> None:
    """What pods are not made of."""
    cliques = other["spec"]["template"]["cliques"]
    cliques[0]["spec"]["replicas"] = 3
    changed = {
        "terminationDelay": "3h0m0s",
        "headlessServiceConfig": {"publishNotReadyAddresses": False},
        "cliques": cliques,
    }
    case.patch(SETS, "other", {"spec": {"template": changed}})
    changes.strategy(case, "other", changes.ON_DELETE)


def announced(case: Case, before: dict[str, str]) -> None:
    """The update by OnDelete is said to have ended as soon as it has begun, by all that is concerned."""
    groups = [f"o-{index}-{group}" for index in (0, 1) for group in "gh"]
    parts = [(SETS, "o"), *((CLIQUES, each) for each in CLIQUES_OF_O), *((GROUPS, each) for each in groups)]

    def seen(view: View) -> bool | Unmet:
        late = [each for kind, each in parts if not updates.ended(view.get(kind, each))]
        return not late or Unmet(f"no update has begun and ended at {', '.join(late)}")

    what = "set, cliques and groups say when it has begun, and ended"
    case.eventually("UPD-038", what, all_of(changes.begun("o", before["o"]), seen))
    records = [record for kind, each in parts for record in case.history.records(kind, each)]
    selected = [str(record) for record in records if updates.selection(record.object) is not None]
    turns = [str(r) for r in case.history.records(SETS, "o") if updates.turns(r.object)]
    running = [str(r) for r in case.history.records(SETS, "o") if updates.running(r.object)]
    case.expect("UPD-038", "states in which something is selected", [], [*selected, *turns])
    case.expect("UPD-038", "states in which the update is said to be running", [], running)


def in_place(case: Case, view: View) -> None:
    """Templates and hashes of all cliques are the new ones, their sizes those of before."""
    case.expect("UPD-039", "cliques that are not as their template", [], misplaced(view))
    size = number(view.get(CLIQUES, "o-0-a"), "spec", "replicas")
    case.expect("UPD-039", "replicas of the clique that was scaled", 3, size)


def misplaced(view: View) -> list[str]:
    wrong = []
    for clique in CLIQUES_OF_O:
        found, letter = view.get(CLIQUES, clique) or {}, clique.rpartition("-")[2]
        tag = text(found, "spec", "podSpec", "containers", 0, "image").rpartition(":")[2]
        if tag != ("2" if letter in "ac" else "1"):
            wrong.append(f"{clique} has template {tag}")
        of_pods = {changes.hash_of(pod) for pod in predicates.pods_of(view, clique)}
        if (changes.hash_of(found) in of_pods) is (letter in "ac"):
            wrong.append(f"{clique} has hash {changes.hash_of(found)}, its pods {sorted(of_pods)}")
    return wrong


def by_hand(case: Case) -> None:
    """Pods that are deleted come back with the new template, and nothing else does."""
    whole = pods_are({"o-0-a": 3, "o-1-g-0-c": 2, "o-0-g-0-c": 2}, ready=True)
    case.until("UPD-040", "cliques have their pods", whole)
    view = case.history.view()
    stay = {clique: changes.uids(view, clique) for clique in CLIQUES_OF_O}
    [lost, *others] = disruption.by_index(case, "o-0-a")
    member = disruption.by_index(case, "o-1-g-0-c")[0]
    for pod in (lost, member):
        case.delete("pods", name(pod))
    went = all_of(changes.left("o-0-a", [uid(lost)]), changes.left("o-1-g-0-c", [uid(member)]))
    sizes = {"o-0-a": 3, "o-1-g-0-c": 2}
    case.until("UPD-040", "the pods that were deleted are back", all_of(went, pods_are(sizes, ready=True)))
    case.until("UPD-040", "and their cliques say so", changes.whole(sizes))
    told = updated("o-0-a", 1)
    case.eventually("UPD-041", "the clique says that one pod is updated", told)
    view = case.quiet(1, real=True)
    case.expect("UPD-040", "templates of the clique's pods", ["1", "1", "2"], changes.images(view, "o-0-a"))
    case.expect("UPD-040", "templates of the member's pods", ["1", "2"], changes.images(view, "o-1-g-0-c"))
    kept = {clique: own - {uid(lost), uid(member)} <= changes.uids(view, clique) for clique, own in stay.items()}
    same(case, "UPD-040", "cliques that keep their other pods", dict.fromkeys(kept, True), kept)
    old = updates.reached(view.get(CLIQUES, "o-0-a"))
    target = updates.targets(view.get(CLIQUES, "o-0-a"))
    case.expect("UPD-041", "the clique is said to be updated", False, old == target)
    for pod in others:
        case.delete("pods", name(pod))
    for pod in disruption.by_index(case, "o-0-g-0-c"):
        case.delete("pods", name(pod))
    case.until("UPD-041", "all its pods are of the new template", tags({"o-0-a": ["2"] * 3, "o-0-g-0-c": ["2"] * 2}))

    def reached(view: View) -> bool | Unmet:
        found = view.get(CLIQUES, "o-0-a")
        own, whole = view.get(SETS, "o"), number(view.get(SETS, "o"), "status", "updatedReplicas")
        if updates.reached(found) != updates.targets(found):
            return Unmet("the clique has not reached what its progress leads to")
        return (whole == 1 and updates.ended(own)) or Unmet(f"updatedReplicas of the set is {whole}, not 1")

    case.eventually("UPD-041", "clique and set say that they are updated", reached)


def updated(clique: str, count: int) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        told = number(view.get(CLIQUES, clique), "status", "updatedReplicas")
        return told == count or Unmet(f"updatedReplicas of {clique} is {told}")

    return seen


def tags(wanted: dict[str, list[str]]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = {clique: changes.images(view, clique) for clique in wanted}
        return found == wanted or Unmet(f"templates: {found}, wanted: {wanted}")

    return seen


def switched(each: str) -> predicates.Predicate:
    """The operator says that it has acted on a set's present spec, which is that of RollingRecreate."""

    def seen(view: View) -> bool | Unmet:
        found = view.get(SETS, each)
        there = text(found, "spec", "updateStrategy", "type") == changes.ROLLING
        observed = number(found, "status", "observedGeneration")
        return (there and observed == number(found, "metadata", "generation")) or Unmet(
            f"{each} has not been looked at"
        )

    return seen


def back_to_rolling(case: Case, waiting: dict[str, Object]) -> None:
    """Pods that are outdated stay after the switch of strategy, and go with the next change. A group that only OnDelete
    has changed is not in its way."""
    since, view = case.history.mark(), case.history.view()
    generations = {each: updates.generation(view.get(SETS, each)) for each in waiting}
    for each in waiting:
        changes.strategy(case, each, changes.ROLLING)
    case.settled("the switch has been seen", all_of(*map(switched, waiting)))
    view = case.quiet(1.5, real=True)
    now = {each: updates.generation(view.get(SETS, each)) for each in waiting}
    same(case, "UPD-042", "generations after the switch", generations, now)
    case.expect("UPD-042", "pods that went with the switch", [], [r.name for r in replay.gone(case.history, since)])
    fresh = changes.uids(case.history.view(), "o-0-g-0-c")
    before = changes.change(case, waiting["o"], "q", tag="3")
    other = changes.change(case, waiting["p"], "q", tag="3")
    case.eventually("UPD-042", "the next change is rolled out", changes.done("o", before))
    case.eventually("UPD-043", "and that of a set whose groups it leaves alone", changes.done("p", other))
    view = case.quiet(0.7)
    right = {f"o-{index}-a": ["2"] * (3 - index) for index in (0, 1)}
    right |= {f"o-{index}-{rest}": tags for index in (0, 1) for rest, tags in (("q", ["3"]), ("g-0-c", ["2", "2"]))}
    same(case, "UPD-042", "templates of the pods", right, {clique: changes.images(view, clique) for clique in right})
    case.expect("UPD-042", "pods of the new template that went", [], sorted(fresh - changes.uids(view, "o-0-g-0-c")))
