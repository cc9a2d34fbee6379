"""Many sets at once whose lists are put in another order, and whose replicas change with it: nothing is restarted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove import template_pairs
from conformance.grove.template_pairs import template
from conformance.history.query import Miss
from conformance.history.sights import Sight
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.tests.core.comparison import same
from conformance.tests.hashes import sets
from conformance.tests.hashes.sets import CLIQUES, Object

BY_CHANCE = 4
ANY, EXPLICIT, IN_ORDER = (f"CliqueStartupType{kind}" for kind in ("AnyOrder", "Explicit", "InOrder"))


@requirements("TMPL-001", "TMPL-002", "TMPL-003", "TMPL-010")
def test_an_order_without_meaning_restarts_nothing(case: Case) -> None:
    case.nodes("dgx-h100", 4)
    pairs = pairs_of_sets(case)
    for before, _ in pairs.values():
        case.create(before)
    counts = {name: pods_of_replica(before) for name, (before, _) in pairs.items()}
    case.until("TMPL-001", "every set has its pods, with hashes", sets.have_pods(counts))
    view = case.quiet(1)
    stored = {name: sets.stored(view, name) for name in pairs}
    pods = sets.of_pods(view)

    for _, after in pairs.values():
        sets.become(case, after)
    # The second replica of each set shows that the operator has looked at its new spec.
    case.until("TMPL-003", "each set has the replica that it was given with it", has_second(pairs))
    view = case.quiet(1.5)
    for name in pairs:
        ids = ["TMPL-001", "TMPL-003"] if name in STARTED_IN_ORDER else ["TMPL-001", "TMPL-002", "TMPL-003"]
        told = {key: hash for key, hash in sets.stored(view, name).items() if key in stored[name]}
        for id in ids:
            same(case, id, f"stored hashes of {name}", labels_of(stored[name]), labels_of(told))
            case.expect(id, f"what {name} says of an update", None, sets.progress(view, name))
    now = sets.of_pods(view)
    for id in ("TMPL-001", "TMPL-002", "TMPL-003"):
        same(case, id, "pods, with uid and hash", pods, {pod: now.get(pod, "gone") for pod in pods})
    sets.judge_exact(case, "TMPL-010", pairs)


STARTED_IN_ORDER = ("in-order", "explicit")
"""Sets whose cliques keep their order: admission sees to that."""


def pairs_of_sets(case: Case) -> dict[str, tuple[Object, Object]]:
    """Sets by name, as they are first and as they become."""
    keyed = template_pairs.read().keyed
    cliques = {"lists": ([pair.before for pair in keyed], [pair.after for pair in keyed])}
    for name in ("grouped", *STARTED_IN_ORDER, *(f"chance-{number}" for number in range(BY_CHANCE))):
        specs = [template_pairs.by_chance(case.random) for _ in range(3 if name == "grouped" else 2)]
        before = [template(clique, spec) for clique, spec in zip("cab", specs, strict=False)]
        after = [template(clique["name"], template_pairs.reordered(case.random, clique["spec"]["podSpec"]))
                 for clique in before]  # fmt: skip
        cliques[name] = before, after
    return {name: (made(case, name, before), made(case, name, after, changed=True))
            for name, (before, after) in cliques.items()}  # fmt: skip


def made(case: Case, name: str, cliques: list[Object], *, changed: bool = False) -> Object:
    startup = {"in-order": IN_ORDER, "explicit": EXPLICIT, "grouped": ANY}.get(name, "")
    if name == "explicit":
        cliques[1]["spec"]["startsAfter"] = [cliques[0]["name"]]
    if changed:
        cliques[0]["spec"]["replicas"] = 2  # of new replicas of the set: those that exist keep their size
        if name not in STARTED_IN_ORDER:
            cliques = cliques[::-1]
    groups = {"g": ["a", "b"]} if name == "grouped" else None
    return sets.made(case, name, cliques, startup=startup, groups=groups, replicas=2 if changed else 1)


def pods_of_replica(workload: Object) -> int:
    cliques = workload["spec"]["template"]["cliques"]
    grouped = {name for group in workload["spec"]["template"].get("podCliqueScalingGroups", ())
               for name in group["cliqueNames"]}  # fmt: skip
    return sum(2 if clique["name"] in grouped else 1 for clique in cliques)


def labels_of(stored: Mapping[str, str]) -> dict[str, str]:
    """What does not depend on whether pods are ready."""
    return {where: hash for where, hash in stored.items() if "current" not in where}


def has_second(wanted: Iterable[str]) -> Sight:
    names = list(wanted)

    def seen(view: View) -> bool | Miss:
        late = [name for name in names if not any(clique.startswith(f"{name}-1-") for clique in view.names(CLIQUES))]
        return not late or Miss(f"no clique of a second replica: {', '.join(late)}")

    return seen
