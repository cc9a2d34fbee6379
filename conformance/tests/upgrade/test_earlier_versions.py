"""An earlier version of the operator has made sets; the judged one takes over."""

from __future__ import annotations

from conformance.grove.fields import number, terminating, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import incarnations, predicates, sets
from conformance.testing.comparison import same
from conformance.testing.sets import SETS
from conformance.tests.upgrade import takeover
from conformance.tests.upgrade.takeover import SOLO

IN_ORDER = "CliqueStartupTypeInOrder"
REPLICAS, PODS = 3, 6


@requirements("UPG-001", "UPG-002", "UPG-003", "UPG-004")
def test_an_upgrade_restarts_nothing(case: Case) -> None:
    case.nodes("dgx-h100", 4)
    old = case.roles.upgrades[0]
    case.roles.downgrade(old)
    case.create(takeover.workload(case, "u", REPLICAS))
    case.create(takeover.small(case, "i", IN_ORDER))
    for name, replicas, pods in (("u", REPLICAS, REPLICAS * PODS), ("i", 1, 2)):
        case.until("UPG-001", f"{old.about}: {name} has all its pods", takeover.has_all_hashes(name, pods))
        case.until("UPG-001", f"{old.about}: {name} is available", predicates.available(name, replicas))
    view = case.quiet(1)
    before = {name: takeover.everything(view, name) for name in "ui"}
    uids, generation = incarnations.uids(view, "pods"), number(view.get(SETS, "u"), "metadata", "generation")

    since = case.history.mark()
    case.roles.upgrade()
    # What the new operator writes is seen on equal sets that it makes itself.
    case.create(takeover.workload(case, "um"))
    case.create(takeover.small(case, "im", IN_ORDER))
    for name in "ui":
        what = f"the hashes of {name} become those that the new operator writes"
        case.eventually("UPG-002", what, takeover.has_hashes_of(name, f"{name}m"))
    view = case.quiet(2)
    for name in "ui":
        case.expect("UPG-001", f"pods of {name} that came or went", [], takeover.restarts(case, name, since))
        case.expect("UPG-001", f"states of {name} in which it is updated", [], takeover.updates(case, name, since))
    now = incarnations.uids(view, "pods")
    same(case, "UPG-001", "uids of pods", uids, {pod: now.get(pod, "") for pod in uids})
    told = number(view.get(SETS, "u"), "metadata", "generation")
    case.expect("UPG-002", "generation of the set", generation, told)

    sets.become(case, takeover.workload(case, "u", REPLICAS, z_solo="engine:2"))
    changed = [f"u-{index}-{SOLO}" for index in range(REPLICAS)]
    case.until("UPG-003", "a real change is rolled out", rolled_out("u", changed, uids))
    view = case.quiet(1)
    touched = {pod for clique in changed for pod in uids if pod.startswith(f"{clique}-")}
    now = incarnations.uids(view, "pods")
    kept = {pod: uid for pod, uid in uids.items() if pod not in touched}
    same(case, "UPG-003", "uids of pods of other cliques", kept, {pod: now.get(pod, "") for pod in kept})
    made = {each.name for each in case.history.records("pods", since=since) if each.name.startswith(tuple(changed))}
    case.expect("UPG-003", "pods that the change has replaced, and made", 2 * REPLICAS, len(made | touched))

    for name in ("u", "um", "im"):
        case.delete(SETS, name)
    case.until("UPG-004", "the other sets are gone", lambda view: view.names(SETS) == ["i"])
    case.roles.downgrade(old)
    what = f"after the way back to {old.about} the hashes are its own again"
    case.until("UPG-004", what, lambda view: of_set(takeover.everything(view, "i")) == of_set(before["i"]))
    case.until("UPG-004", "and the set has all its pods", takeover.has_all_hashes("i", 2))
    case.until("UPG-004", "and is available", predicates.available("i", 1))


@requirements("UPG-005")
def test_an_upgrade_from_any_earlier_version_restarts_nothing(case: Case) -> None:
    case.nodes("dgx-h100", 1)
    for number_, old in enumerate(case.roles.upgrades):
        name = f"v{number_}"
        case.roles.downgrade(old)
        case.create(takeover.small(case, name))
        case.until("UPG-005", f"{old.about}: the set has its pods", takeover.has_all_hashes(name, 2))
        case.until("UPG-005", f"{old.about}: the set is available", predicates.available(name, 1))
        since = case.history.mark()
        case.roles.upgrade()
        case.create(takeover.small(case, f"{name}m"))
        what = f"from {old.about}: the hashes become those that the new operator writes"
        case.eventually("UPG-005", what, takeover.has_hashes_of(name, f"{name}m"))
        case.quiet(1)
        what = f"from {old.about}: pods that came or went"
        case.expect("UPG-005", what, [], takeover.restarts(case, name, since))
        what = f"from {old.about}: states in which the set is updated"
        case.expect("UPG-005", what, [], takeover.updates(case, name, since))
        # The next version must not find it: it would be a downgrade for it.
        for each in (name, f"{name}m"):
            case.delete(SETS, each)
        case.until("UPG-005", "the sets are gone", lambda view: not view.names(SETS))


@requirements("UPG-009")
def test_an_update_that_is_under_way_goes_on(case: Case) -> None:
    nodes = case.nodes("dgx-h100", 1)
    old = case.roles.upgrades[0]
    case.roles.downgrade(old)
    case.create(takeover.small(case, "f", replicas=REPLICAS))
    case.until("UPG-009", "the set has its pods", takeover.has_all_hashes("f", 2 * REPLICAS))
    case.until("UPG-009", "the set is available", predicates.available("f", REPLICAS))
    uids = incarnations.uids(case.quiet(1), "pods")
    case.patch("nodes", nodes[0], {"spec": {"unschedulable": True}})
    changed = takeover.small(case, "f", replicas=REPLICAS, solo="engine:2")
    sets.become(case, changed)
    case.until("UPG-009", f"{old.about} has begun to update", lambda view: missing(view, uids) == 1)
    case.until("UPG-009", "and has replaced that pod", lambda view: whole(view) and missing(view, uids) == 1)
    begun = [pod for pod in uids if pod not in incarnations.uids(case.quiet(1), "pods")]

    since = case.history.mark()
    case.roles.upgrade()
    case.create(takeover.small(case, "fm", solo="engine:2"))
    what = "the generation hash becomes that of the new operator"
    case.until("UPG-009", what, lambda view: sets.generation(view, "f") == sets.generation(view, "fm") != "")
    case.quiet(1)
    what = "pods replaced although the one before them is not there yet"
    case.expect("UPG-009", what, [], takeover.restarts(case, "f", since))
    case.patch("nodes", nodes[0], {"spec": {"unschedulable": False}})
    cliques = [f"f-{index}-{SOLO}" for index in range(REPLICAS)]
    case.until("UPG-009", "the update goes on to its end", rolled_out("f", cliques, uids))
    now = incarnations.uids(case.quiet(1), "pods")
    kept = {pod: uid for pod, uid in uids.items() if not pod.startswith(tuple(cliques))}
    same(case, "UPG-009", "pods of the other clique", kept, {pod: now.get(pod, "") for pod in kept})
    made = {each.uid for each in case.history.records("pods") if each.name.startswith(tuple(cliques))}
    case.expect("UPG-009", f"pods of the changed clique ({len(begun)} begun before)", 2 * REPLICAS, len(made))


def whole(view: View) -> bool:
    """There are as many pods as there are to be, and none of them is still going."""
    found = view.list("pods")
    return len(found) == 2 * REPLICAS and not any(map(terminating, found))


def missing(view: View, uids: dict[str, str]) -> int:
    """How many of these pods are no more."""
    return len(uids.keys() - incarnations.uids(view, "pods").keys())


def of_set(everything: dict[str, str]) -> dict[str, str]:
    """Without the hashes of pods, whose names are others after an update."""
    return {where: hash for where, hash in everything.items() if not where.startswith("pods/")}


def rolled_out(set_name: str, cliques: list[str], before: dict[str, str]) -> predicates.Predicate:
    """The update of a set has ended, and these cliques have nothing but new pods."""

    def seen(view: View) -> bool | Unmet:
        for clique in cliques:
            pods = predicates.pods_of(view, clique)
            old = [text(pod, "metadata", "name") for pod in pods if text(pod, "metadata", "uid") in before.values()]
            if old or not pods:
                return Unmet(f"{clique} has {', '.join(old) or 'no pod'}")
        ended = text(view.get(SETS, set_name), "status", "updateProgress", "updateEndedAt")
        return ended != "" or Unmet(f"the update of {set_name} has not ended")

    return seen
