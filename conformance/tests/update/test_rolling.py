"""A set of two replicas is updated three times: pods of a clique alone, replicas of a scaling group, and all of it
while its operator dies now and then. What was out of service is read off the history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conformance.grove import labels, updates
from conformance.grove.expected import expected
from conformance.grove.fields import condition, condition_is, label, name, number, text, uid
from conformance.history.record import Record
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, incarnations, predicates, replay
from conformance.testing.comparison import same
from conformance.testing.disruption import BREACHED
from conformance.testing.scaled import pods_are
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS

REPLICAS, SECONDS, DEATHS = 2, 150, 2
ALONE = ("a", "q")
CLIQUES_ALONE = [f"s-{index}-{clique}" for index in range(REPLICAS) for clique in ALONE]
SIZES_OF_GROUPS = {f"s-{index}-{group}": size for index in range(REPLICAS) for group, size in (("g", 2), ("h", 1))}
TOTALS = {"totalPodCliquesCount": len(ALONE) * REPLICAS, "totalPodCliqueScalingGroupsCount": 2 * REPLICAS}


@dataclass(frozen=True)
class Update:
    """What there was before a change of these cliques, and since when."""

    changed: tuple[str, ...]
    since: int
    sizes: Mapping[str, int]
    places: Mapping[str, list[str]]
    hashes: Mapping[str, str]
    uids: Mapping[str, str]


@requirements(
    *("UPD-001", "UPD-002", "UPD-003", "UPD-004", "UPD-005", "UPD-006", "UPD-007", "UPD-008", "UPD-009", "UPD-010"),
    *("UPD-011", "UPD-012", "UPD-013", "INV-001", "INV-004", "INV-005"),
)
def test_a_set_is_updated_replica_by_replica(case: Case) -> None:
    case.nodes("tiny", 1)
    workload = case.workload("rolling", setName="s", replicas=REPLICAS)
    case.create(workload)
    case.until("UPD-007", "the set is available", predicates.available("s", REPLICAS), SECONDS)
    case.quiet(1.2, real=True)
    youngest = disruption.by_index(case, "s-0-a")[0]
    case.delete("pods", name(youngest))
    replaced = pods_are({"s-0-a": 2}, ready=True, but=uid(youngest))
    case.until("UPD-012", "a pod that was deleted is replaced", replaced)
    case.until("UPD-012", "and the clique says so", changes.whole({"s-0-a": 2}))
    case.quiet(0.5)

    standalone(case, updated(case, workload, "a", tag="2"))
    groups(case, updated(case, workload, "b", tag="3"))
    everything(case, updated(case, workload, "a", "b", "c", "d", "q", tag="4", deaths=DEATHS))


def updated(case: Case, workload: Object, *cliques: str, tag: str, deaths: int = 0) -> Update:
    """Changes cliques and waits for the end, which is then judged."""
    sizes = {each.name: each.template.replicas for each in expected(workload).cliques.values()}
    view = case.history.view()
    before = Update(
        cliques,
        case.history.mark(),
        sizes,
        replay.places(case.history, sizes),
        hashes(view, sizes),
        present(view),
    )
    generation = changes.change(case, workload, *cliques, tag=tag)
    for share in sorted(case.random.uniform(0, 0.9) for _ in range(deaths)):
        lost = int(share * sum(sizes.values()))
        case.settled(f"more than {lost} pods have been deleted", failed_nodes(case, before.since, lost))
        case.roles.kill("operator")
        case.roles.restart("operator")
    ids = ("UPD-007", "UPD-013") if deaths else "UPD-007"
    case.until(ids, f"the update of {', '.join(cliques)} ends", changes.done("s", generation), SECONDS)
    case.settled("cliques and groups say so, too", agreed)
    case.quiet(0.7)
    told(case, before, generation)
    return before


def failed_nodes(case: Case, since: int, count: int) -> predicates.Predicate:
    """More pods than that have been deleted."""

    def seen(view: View) -> bool:
        return len(replay.gone(case.history, since)) > count

    return seen


def present(view: View) -> dict[str, str]:
    """The uids of cliques and groups, by kind and name."""
    return {f"{kind}/{each}": own for kind in (CLIQUES, GROUPS) for each, own in incarnations.uids(view, kind).items()}


def hashes(view: View, cliques: Iterable[str]) -> dict[str, str]:
    """Clique → the hash of its template, as its label has it."""
    return {clique: label(view.get(CLIQUES, clique), labels.TEMPLATE_HASH) for clique in cliques}


# -- what goes, and when -----------------------------------------------------------------------------------------------


def standalone(case: Case, before: Update) -> None:
    """Pods of the clique a, one after the other."""
    cliques = [f"s-{index}-a" for index in range(REPLICAS)]
    once(case, before, cliques)
    one_pod_at_a_time(case, "UPD-002", before)
    apart(case, "UPD-001", before, replica)
    order = [replica(replay.owner(record)) for record in replay.gone(case.history, before.since)]
    case.expect("UPD-001", "replicas of the pods that went, in order", sorted(order), order)
    lost = [record for record in replay.gone(case.history, before.since) if replay.owner(record) == cliques[0]]
    case.expect("UPD-012", "indices of the pods that went", ["1", "0"], [index_of(record) for record in lost])
    selected = [record.name for record in lost]
    case.expect("UPD-010", "pods that were said to be selected", selected, said(case, CLIQUES, cliques[0], before))
    unknown(case, "UPD-011", CLIQUES, cliques, before)


def groups(case: Case, before: Update) -> None:
    """Replicas of the group g, whole, one after the other; the group h stays."""
    parts = [f"s-{index}-g-{j}" for index in range(REPLICAS) for j in range(2)]
    once(case, before, [f"{part}-{clique}" for part in parts for clique in "bc"])
    apart(case, "UPD-004", before, part)
    found = replay.sequence(case.history, part, before.since)
    case.expect("UPD-004", "replicas of groups in the order in which they went", parts, found)
    for index in range(REPLICAS):
        chosen = said(case, GROUPS, f"s-{index}-g", before)
        case.expect("UPD-010", f"replicas of s-{index}-g that were said to be selected", [0, 1], chosen)
    unknown(case, "UPD-011", GROUPS, [f"s-{index}-g" for index in range(REPLICAS)], before)


def everything(case: Case, before: Update) -> None:
    """All cliques at once, with deaths of the operator."""
    once(case, before, list(before.sizes), "UPD-013")
    apart(case, "UPD-013", before, replica)
    for index in range(REPLICAS):
        apart(case, "UPD-013", before, of_group(f"s-{index}-g"))
    one_pod_at_a_time(case, "UPD-013", before)


def once(case: Case, before: Update, cliques: list[str], id: str = "UPD-005") -> None:
    """Each pod of these cliques was replaced once, in its place, and no other pod was touched."""
    right = {clique: before.sizes[clique] for clique in cliques}
    made = replay.made(case.history, before.since)
    same(case, id, "new pods by clique", right, {clique: made.get(clique, 0) for clique in cliques})
    case.expect("UPD-003", "cliques that got pods and were not to", [], sorted(set(made) - set(right)))
    same(case, id, "indices and host names", before.places, replay.places(case.history, before.sizes))
    view = case.history.view()
    now = present(view)
    stay = {each: own for each, own in before.uids.items() if each.partition("/")[2] not in cliques}
    same(case, "UPD-003", "uids of what is not to go", stay, {each: now.get(each, "") for each in stay})
    of = hashes(view, before.sizes)
    keeps = {clique: clique.rpartition("-")[2] not in before.changed for clique in before.sizes}
    kept = {clique: of[clique] == before.hashes[clique] for clique in before.sizes}
    same(case, id, "cliques whose template hash stays", keeps, kept)
    of_pods = {clique: {changes.hash_of(pod) for pod in predicates.pods_of(view, clique)} for clique in before.sizes}
    same(case, id, "template hashes of the pods", {clique: {hash} for clique, hash in of.items()}, of_pods)


def one_pod_at_a_time(case: Case, id: str, before: Update) -> None:
    sizes = {clique: size for clique, size in before.sizes.items() if clique.endswith("-a")}
    worst = replay.lacking(case.history, sizes, before.since)
    case.expect(id, "cliques that lacked more than one pod", {}, {c: n for c, n in worst.items() if n > 1})


def apart(case: Case, id: str, before: Update, which: replay.Part) -> None:
    found = replay.together(case.history, before.sizes, which, before.since)
    case.expect(id, "moments at which two of them lacked Ready pods", [], found)


def replica(clique: str) -> str:
    """The replica of the set that a clique belongs to."""
    return clique.partition("-")[2].partition("-")[0]


def part(clique: str) -> str:
    """The replica of the group g that a clique belongs to, empty for any other."""
    return clique.rpartition("-")[0] if clique.startswith(tuple(f"s-{index}-g-" for index in range(REPLICAS))) else ""


def of_group(group: str) -> replay.Part:
    """The replica of one group that a clique belongs to."""
    return lambda clique: part(clique) if clique.startswith(f"{group}-") else ""


def index_of(record: Record) -> str:
    return label(record.object, labels.POD_INDEX)


# -- what is said of it ------------------------------------------------------------------------------------------------


def told(case: Case, before: Update, generation: str) -> None:
    """What the set, its cliques and its groups have said during the update and in the end."""
    every = case.history.records(SETS, "s", since=before.since)
    records = [record for record in every if updates.generation(record.object) != generation]
    running = [record for record in records if updates.running(record.object)]
    case.expect("UPD-006", "updates that were begun", 1, len({updates.started(record.object) for record in records}))
    case.holds("UPD-006", "the update was said to be running", bool(running))
    many = [str(record) for record in records if len(updates.turns(record.object)) > 1]
    case.expect("UPD-006", "states with several replicas at once", [], many)
    turns: list[int | None] = []
    for record in running:
        turns += [turn for turn in updates.turns(record.object) if turn not in turns[-1:]]
    case.expect("UPD-006", "replicas that had their turn", list(range(REPLICAS)), turns)
    first = next((n for n, record in enumerate(records) if updates.ended(record.object)), len(records))
    again = [str(record) for record in records[first:] if updates.running(record.object)]
    case.expect("UPD-006", "states that say that it runs again after its end", [], again)
    wrong = [f"{record}: {updates.counts(record.object)}" for record in records if not fits(record)]
    case.expect("UPD-008", "counters above their totals, or wrong totals", [], wrong)
    groups_count(case, before)
    if first < len(records):
        at_its_end(case, before, records[first])

    view = case.history.view()
    found = view.get(SETS, "s")
    case.expect("UPD-007", "replicas that are still said to be updated", [], updates.turns(found))
    case.expect("UPD-007", "updatedReplicas", REPLICAS, number(found, "status", "updatedReplicas"))
    counts = updates.counts(found)
    for done, total in updates.COUNTERS:
        case.expect("UPD-007", f"{done} in the end", TOTALS[total], counts[done])
        case.expect("UPD-008", f"{total} in the end", TOTALS[total], counts[total])
    parts_of(case, view)


def said(case: Case, resource: str, each: str, before: Update) -> list[object]:
    """What a clique or a group has said to be selected, in order."""
    found: list[object] = []
    for record in case.history.records(resource, each, since=before.since):
        current = updates.selected(record.object) or updates.selected_replica(record.object)
        found += [current] if current not in (None, *found[-1:]) else []
    return found


def fits(record: Record, totals: Mapping[str, int] = TOTALS) -> bool:
    """Whether no counter of a progress is above its total, and the totals are right or not counted yet."""
    counts = updates.counts(record.object)
    return all(
        counts[done] <= counts[total] and counts[total] in (0, totals[total]) for done, total in updates.COUNTERS
    )


def groups_count(case: Case, before: Update) -> None:
    """The counters of the groups' progress: cliques of their replicas."""
    for group, total in (("g", 4), ("h", 1)):
        totals = {"totalPodCliquesCount": total, "totalPodCliqueScalingGroupsCount": 0}
        for each in (f"s-{index}-{group}" for index in range(REPLICAS)):
            records = case.history.records(GROUPS, each, since=before.since)
            wrong = [f"{record}: {updates.counts(record.object)}" for record in records if not fits(record, totals)]
            case.expect("UPD-008", f"counters of {each} above their total, or a wrong total", [], wrong)
            end = updates.counts(case.history.view().get(GROUPS, each))
            seen = [end["updatedPodCliquesCount"], end["totalPodCliquesCount"]]
            case.expect("UPD-008", f"cliques of {each} that are updated, and all", [total, total], seen)


def at_its_end(case: Case, before: Update, end: Record) -> None:
    """When the end was said all pods were of the new template, and Ready."""
    pods = replay.standing(case.history, end.revision)
    of = hashes(case.history.view(), before.sizes)
    old = [record.name for record in pods if changes.hash_of(record.object) != of.get(replay.owner(record))]
    case.expect("UPD-009", "pods of an old template when the end was said", [], old)
    ready = replay.serving({record.uid: record for record in pods})
    have = {clique: ready.get(clique, 0) for clique in before.sizes}
    same(case, "UPD-009", "Ready pods when the end was said", before.sizes, have)


def parts_of(case: Case, view: View) -> None:
    """What the standalone cliques and the groups say in the end."""
    same(case, "UPD-010", "updatedReplicas of the groups", SIZES_OF_GROUPS, counted(view))
    case.expect("UPD-010", "what cliques and groups say in the end that is wrong", [], behind(view))
    same(case, "UPD-011", f"{BREACHED} in the end", dict.fromkeys(CLIQUES_ALONE, "False"), breaches(view))


def agreed(view: View) -> bool:
    """Cliques and groups say what they are to say in the end; each is judged after it."""
    counts = [updates.counts(view.get(GROUPS, each)) for each in SIZES_OF_GROUPS]
    whole = all(each["updatedPodCliquesCount"] == each["totalPodCliquesCount"] for each in counts)
    sound = set(breaches(view).values()) == {"False"}
    return whole and sound and not behind(view) and counted(view) == SIZES_OF_GROUPS


def counted(view: View) -> dict[str, int | None]:
    return {each: number(view.get(GROUPS, each), "status", "updatedReplicas") for each in SIZES_OF_GROUPS}


def breaches(view: View) -> dict[str, str]:
    return {each: condition_is(view.get(CLIQUES, each), BREACHED) for each in CLIQUES_ALONE}


def behind(view: View) -> list[str]:
    """What standalone cliques and groups say that is not of an update that has ended."""
    wrong, generation = [], updates.generation(view.get(SETS, "s"))
    for kind, each in [*((CLIQUES, each) for each in CLIQUES_ALONE), *((GROUPS, each) for each in SIZES_OF_GROUPS)]:
        found = view.get(kind, each)
        if not updates.ended(found):
            wrong.append(f"{each}: its update has not ended")
        if updates.selection(found) is not None:
            wrong.append(f"{each}: something is still selected")
        reached = updates.reached(found)
        if reached.get("currentPodCliqueSetGenerationHash") != generation:
            wrong.append(f"{each}: is not of the set's generation")
        targets = updates.targets(found) if kind == CLIQUES else {}
        late = [field for field, hash in targets.items() if reached.get(field) != hash]
        wrong += [f"{each}: {field} is not what its progress leads to" for field in late]
    return wrong


def unknown(case: Case, id: str, resource: str, names: list[str], before: Update) -> None:
    """While it was updated each of these has said so, instead of that it was breached."""
    for each in names:
        records = case.history.records(resource, each, since=before.since)
        running = [record.object for record in records if updates.running(record.object)]
        said = [condition(found, BREACHED) for found in running]
        so = any((text(c, "status"), text(c, "reason")) == ("Unknown", "UpdateInProgress") for c in said)
        case.holds(id, f"{each} says Unknown, UpdateInProgress while it is updated", so)
