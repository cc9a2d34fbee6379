"""Sets that are deleted in an update or after one, and others that are made under their names."""

from __future__ import annotations

from conformance.grove import updates
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.testing.comparison import same
from conformance.testing.deleted import all_gone, made_late
from conformance.testing.observed import all_of
from conformance.tests.update import changes
from conformance.tests.update.changes import SETS

IDS = {"during": "UPD-044", "after": "UPD-045"}
"""Names of sets, by the moment at which each is deleted; whose requirement it is that it goes."""


@requirements("UPD-044", "UPD-045", "INV-001", "INV-004", "INV-005")
def test_sets_go_in_an_update_and_come_again_without_one(case: Case) -> None:
    case.nodes("tiny", 1)
    sets = {each: case.workload("frontend", setName=each, pods=2) for each in IDS}
    for workload in sets.values():
        case.create(workload)
    available = all_of(*(predicates.available(each, 1) for each in sets))
    case.until(tuple(IDS.values()), "the sets are available", available)
    changes.hold(sets["during"], "web")
    before = {each: changes.change(case, workload, "web", tag="2") for each, workload in sets.items()}
    case.until("UPD-044", "the update waits for a pod", changes.one_held("during-0-web"))
    case.until("UPD-045", "the other update has ended", changes.done("after", before["after"]))
    view = case.quiet(0.7)

    for each in sets:
        case.delete(SETS, each)
    for each, id in IDS.items():
        case.until(id, "all of the deleted set goes", all_gone(view, each), 150)
        case.expect(id, "what was made of the set after its deletion", [], made_late(case.history, each))

    changes.hold(sets["during"], "web", off=True)
    for workload in sets.values():
        changes.image(workload, "web", tag="3")
        case.create(workload)
    case.until("UPD-045", "sets of the same names are available, and have a generation", all_of(available, generated))
    view = case.quiet(0.7)
    for each in sets:
        case.expect("UPD-045", f"{each}: the progress of an update", {}, dict(updates.progress(view.get(SETS, each))))
    before = {each: changes.change(case, workload, "web", tag="4") for each, workload in sets.items()}
    what = "a change of them is an update, which ends"
    case.until("UPD-045", what, all_of(*(changes.done(each, before[each]) for each in sets)))
    view, cliques = case.quiet(0.7), [f"{each}-0-web" for each in sets]
    right = {clique: ["4", "4"] for clique in cliques}
    same(case, "UPD-045", "templates of the pods", right, {clique: changes.images(view, clique) for clique in cliques})


def generated(view: View) -> bool | Unmet:
    late = [each for each in IDS if not updates.generation(view.get(SETS, each))]
    return not late or Unmet(f"without a generation: {', '.join(late)}")
