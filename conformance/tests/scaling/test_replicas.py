"""Sets, scaling groups and cliques are scaled out and in: what comes, what goes, and that all else stays."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import labels
from conformance.grove.fields import count, finalizers, items, label, name, number, text, uid
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.comparison import of, same
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.observed import all_of, gone, there
from conformance.testing.scaled import pods_are, scale

KINDS = ("pods", CLIQUES, GROUPS, GANGS, "services")
HELD = "conformance.grove.io/held"
"""A finalizer of the test's own."""


@requirements(
    *("SCALE-001", "SCALE-002", "SCALE-003", "SCALE-004", "SCALE-005", "SCALE-006", "SCALE-007", "SCALE-008"),
    *("SCALE-009", "SCALE-013", "SCALE-014", "INV-001", "INV-004", "INV-005"),
)
def test_replicas_come_and_go(case: Case) -> None:
    case.nodes("tiny", 1)
    workload = case.workload("kept", setName="s", aloneFloor=1, groupsFloor=1, membersFloor=1)
    case.create(workload)
    case.until("SCALE-001", "the set is available", predicates.available("s", 1))
    before = existing(case.history.view())
    generation = text(case.history.view().get(SETS, "s"), "status", "currentGenerationHash")

    template = workload["spec"]["template"]["cliques"]
    template[0]["spec"]["replicas"] = 3
    case.patch(SETS, "s", {"spec": {"template": {"cliques": template}}})
    scale(case, CLIQUES, "s-0-a", 4)
    scale(case, CLIQUES, "s-0-g-0-c", 3)
    scale(case, GROUPS, "s-0-g", 4)
    scale(case, SETS, "s", 3)
    case.until("SCALE-001", "the new replicas have their groups", there(GROUPS, ["s-1-g", "s-2-g"]))
    scale(case, GROUPS, "s-1-g", 3)
    case.eventually("SCALE-005", "the scaled clique has its pods", pods_are({"s-0-a": 4}, ready=True))
    sizes = {"s-0-g-0-c": 3, "s-0-g-1-c": 2}
    case.eventually("SCALE-009", "a clique of a group's replica is scaled alone", pods_are(sizes, ready=True))
    sizes = {f"s-0-g-{j}-{clique}": size for j in range(4) for clique, size in (("b", 1), ("c", 2 + (j == 0)))}
    case.eventually("SCALE-006", "the scaled group has its cliques and pods", pods_are(sizes, ready=True))
    sizes = {f"s-{i}-g-{j}-{clique}": size for i in (1, 2) for j in (0, 1) for clique, size in (("b", 1), ("c", 2))}
    case.until("SCALE-001", "the new replicas of the set have their pods", pods_are(sizes, ready=True))
    case.until("SCALE-001", "the new replicas of the set are available", predicates.available("s", 3))
    case.eventually("SCALE-002", "their cliques have the template's size", pods_are({"s-1-a": 3, "s-2-a": 3}))
    judge_scaled_out(case, before, generation)
    judge_scaled_in(case)

    view = case.history.view()
    stay = {(kind, each): own for (kind, each), own in existing(view).items() if each.startswith("s-0")}
    scale(case, SETS, "s", 1)
    leave = [key for key in existing(view) if key[1].startswith(("s-1", "s-2"))]
    what = "what belongs to the replicas that are no more goes"
    case.eventually("SCALE-003", what, all_of(*(gone(k, [n for kind, n in leave if kind == k]) for k in KINDS)))
    judge_kept(case, "SCALE-003", "uids of what is left", stay)

    scale(case, SETS, "s", 0)
    rest = {kind: [each for each in case.history.view().names(kind) if each.startswith("s-")] for kind in KINDS}
    what = "without replicas nothing of them is left"
    case.eventually("SCALE-004", what, all_of(*(gone(kind, own) for kind, own in rest.items())))
    scale(case, SETS, "s", 2)
    case.until("SCALE-004", "the set comes back", predicates.available("s", 2))
    sizes = {
        f"s-{i}-{rest}": size for i in (0, 1) for rest, size in (("a", 3), ("g-0-b", 1), ("g-0-c", 2), ("g-1-c", 2))
    }
    case.eventually("SCALE-004", "it has the sizes of its template", pods_are(sizes, ready=True))


def judge_scaled_out(case: Case, before: Mapping[tuple[str, str], str], generation: str) -> None:
    """Nothing that was there has gone, nothing was updated, and each pod is in its gang."""
    view = case.quiet(1)
    judge_kept(case, "SCALE-001", "uids of what was there before", before)
    case.expect("SCALE-005", "indices of the scaled clique's pods", ["0", "1", "2", "3"], indices(view, "s-0-a"))
    base = view.get(GANGS, "s-0")
    groups = {text(group, "name"): group for group in items(base, "spec", "podgroups")}
    referenced = sorted(text(each, "name") for each in items(groups.get("s-0-a"), "podReferences"))
    own = sorted(name(pod) for pod in predicates.pods_of(view, "s-0-a"))
    case.expect("SCALE-005", "pods that the gang names of it", own, of(base, referenced))
    case.expect("SCALE-005", "its floor in the gang", 1, of(base, count(groups.get("s-0-a"), "minReplicas")))
    gangs = {f"s-0-g-{j}": [f"s-0-g-{j + 1}-b", f"s-0-g-{j + 1}-c"] for j in range(3)}
    seen = {
        gang: of(found := view.get(GANGS, gang), sorted(text(g, "name") for g in items(found, "spec", "podgroups")))
        for gang in gangs
    }
    same(case, "SCALE-006", "PodGroups of the scaled gangs", gangs, seen)
    told = text(view.get(SETS, "s"), "status", "currentGenerationHash")
    case.expect("SCALE-005", "hash of the set's generation", generation, told)


def judge_scaled_in(case: Case) -> None:
    """Two groups are scaled in while the operator is away; one has a hole, one has its only sick replica in front."""
    disruption.become(case, "s-0-g-0-b", disruption.STARTING, 1)
    hole = [f"s-1-g-1-{clique}" for clique in "bc"]
    for clique in hole:
        held = [*finalizers(case.history.view().get(CLIQUES, clique)), HELD]
        case.patch(CLIQUES, clique, {"metadata": {"finalizers": held}})
        case.delete(CLIQUES, clique)
    before = existing(case.history.view())
    kept = {key: uid for key, uid in before.items() if key[1].startswith(("s-0-g-0-", "s-1-g-0-", "s-0-a", "s-1-a"))}
    kept = {key: uid for key, uid in kept.items() if key[0] in ("pods", CLIQUES)}
    rests = (("a", 3), *((f"g-{j}-{clique}", size) for j in (0, 1) for clique, size in (("b", 1), ("c", 2))))
    ready = pods_are({f"s-2-{rest}": size for rest, size in rests}, ready=True)
    case.until("SCALE-014", "all pods of what nobody touches are Ready", ready)
    alone = generations(case.quiet(1))
    case.roles.kill("operator")
    scale(case, GROUPS, "s-0-g", 1)
    scale(case, GROUPS, "s-1-g", 1)
    case.roles.restart("operator")
    last = [f"s-0-g-{j}-{clique}" for j in (1, 2, 3) for clique in "bc"]
    what = "what was scaled while the operator was away is as it is to be"
    case.eventually("SCALE-013", what, gone(CLIQUES, last))
    case.eventually("SCALE-007", "the last replicas of the group go whole", gone(CLIQUES, last))
    case.eventually("SCALE-007", "and their pods with them", pods_are(dict.fromkeys(last, 0)))
    last = [f"s-1-g-2-{clique}" for clique in "bc"]
    case.eventually("SCALE-008", "the last replica goes though one before it is still going", gone(CLIQUES, last))
    for clique in hole:
        case.patch(CLIQUES, clique, {"metadata": {"finalizers": None}})
    case.until("SCALE-008", "the replica that was going has gone", gone(CLIQUES, hole))
    case.eventually("SCALE-008", "and its pods with it", pods_are(dict.fromkeys((*hole, *last), 0)))
    # What stays is compared later on: the gangs of the replicas that are no more are not to be part of it.
    case.settled("the gangs of what went have gone", gone(GANGS, [f"s-{i}-g-{j}" for i in (0, 1) for j in range(3)]))
    view = case.quiet(1.5)
    case.expect("SCALE-008", "cliques of the group in the end", ["s-1-g-0-b", "s-1-g-0-c"], of_group(view, "s-1-g"))
    case.expect("SCALE-007", "cliques of the group in the end", ["s-0-g-0-b", "s-0-g-0-c"], of_group(view, "s-0-g"))
    judge_kept(case, "SCALE-007", "uids of the replicas that stay", kept)
    same(case, "SCALE-014", "what nobody has touched, and its generations", alone, generations(view))


def existing(view: View) -> dict[tuple[str, str], str]:
    return {(kind, each): uid for kind in KINDS for each, uid in incarnations.uids(view, kind).items()}


def generations(view: View) -> dict[str, list[object]]:
    """Uid and generation of all that belongs to the last replica of the set, which no test scales by itself."""
    own = [(kind, item) for kind in KINDS for item in view.list(kind) if name(item).startswith("s-2")]
    return {f"{kind}/{name(item)}": [uid(item), number(item, "metadata", "generation")] for kind, item in own}


def judge_kept(case: Case, id: str, what: str, before: Mapping[tuple[str, str], str]) -> None:
    now = existing(case.history.view())
    right = {f"{kind}/{each}": uid for (kind, each), uid in before.items()}
    same(case, id, what, right, {f"{kind}/{each}": now.get((kind, each), "") for kind, each in before})


def indices(view: View, clique: str) -> list[str]:
    return sorted(label(pod, labels.POD_INDEX) for pod in predicates.pods_of(view, clique))


def of_group(view: View, group: str) -> list[str]:
    return [each for each in view.names(CLIQUES) if each.startswith(f"{group}-")]
