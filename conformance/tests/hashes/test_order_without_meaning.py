"""Many sets at once whose lists are put in another order, and whose replicas change with it: nothing is restarted."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from conformance.grove import template_pairs
from conformance.grove.template_pairs import template
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import sets
from conformance.testing.comparison import same
from conformance.testing.predicates import Predicate
from conformance.testing.sets import CLIQUES, Object

BY_CHANCE = 3
ANY, EXPLICIT, IN_ORDER = (f"CliqueStartupType{kind}" for kind in ("AnyOrder", "Explicit", "InOrder"))
STARTUP = {"in-order": IN_ORDER, "explicit": EXPLICIT, "grouped": ANY, "listed-grouped": ANY}
LISTS = ("lists", "grouped", "in-order", "explicit", *(f"chance-{number}" for number in range(BY_CHANCE)))
"""Sets whose pod specs have their lists put in another order."""
LISTED, SIZES = ("listed", "listed-grouped"), ("sizes",)
"""Sets whose cliques are listed in another order, and sets of which a clique gets other replicas."""
EVIDENCE = {"TMPL-001": LISTS, "TMPL-002": LISTED, "TMPL-003": SIZES}
"""What each requirement is judged by: each set changes in one way, apart from its replicas."""


@requirements("TMPL-001", "TMPL-002", "TMPL-003", "TMPL-010")
def test_an_order_without_meaning_restarts_nothing(case: Case) -> None:
    case.nodes("dgx-h100", 4)
    pairs = pairs_of_sets(case)
    for before, _ in pairs.values():
        case.create(before)
    counts = {name: pods_of_replica(before) for name, (before, _) in pairs.items()}
    case.until(list(EVIDENCE), "every set has its pods, with hashes", sets.have_pods(counts))
    view = case.quiet(1)
    stored = {name: sets.stored(view, name) for name in pairs}
    pods = sets.of_pods(view)

    for _, after in pairs.values():
        sets.become(case, after)
    # The second replica of each set shows that the operator has looked at its new spec.
    case.until("TMPL-003", "each set has the replica that it was given with it", has_second(pairs))
    view = case.quiet(1.5)
    now = sets.of_pods(view)
    for id, names in EVIDENCE.items():
        for name in names:
            told = {key: hash for key, hash in sets.stored(view, name).items() if key in stored[name]}
            same(case, id, f"stored hashes of {name}", labels_of(stored[name]), labels_of(told))
            case.expect(id, f"updateProgress of {name}", None, sets.progress(view, name))
            own = {pod: hash for pod, hash in pods.items() if pod.startswith(f"{name}-0-")}
            same(case, id, f"pods of {name}, with uid and hash", own, {pod: now.get(pod, "gone") for pod in own})
    sets.judge_exact(case, "TMPL-010", pairs)


def pairs_of_sets(case: Case) -> dict[str, tuple[Object, Object]]:
    """Return sets by name, as they are first and as they become."""
    keyed = template_pairs.read().keyed
    found = {}
    for name in (*LISTS, *LISTED, *SIZES):
        specs = [template_pairs.by_chance(case.random) for _ in range(3 if "grouped" in name else 2)]
        before = [template(clique, spec) for clique, spec in zip("cab", specs, strict=False)]
        after = copy.deepcopy(before)
        if name == "lists":
            before, after = [pair.before for pair in keyed], [pair.after for pair in keyed]
        elif name in LISTS:
            for clique in after:
                clique["spec"]["podSpec"] = template_pairs.reordered(case.random, clique["spec"]["podSpec"])
        elif name in LISTED:
            after = after[::-1]
        else:
            after[0]["spec"]["replicas"] = 2  # of new replicas of the set: those that exist keep their size
        found[name] = made(case, name, before, replicas=1), made(case, name, after, replicas=2)
    return found


def made(case: Case, name: str, cliques: list[Object], *, replicas: int) -> Object:
    if name == "explicit":
        cliques[1]["spec"]["startsAfter"] = [cliques[0]["name"]]
    groups = {"g": ["a", "b"]} if "grouped" in name else None
    return sets.made(case, name, cliques, startup=STARTUP.get(name, ""), groups=groups, replicas=replicas)


def pods_of_replica(workload: Object) -> int:
    cliques = workload["spec"]["template"]["cliques"]
    grouped = {name for group in workload["spec"]["template"].get("podCliqueScalingGroups", ())
               for name in group["cliqueNames"]}  # fmt: skip
    return sum(2 if clique["name"] in grouped else 1 for clique in cliques)


def labels_of(stored: Mapping[str, str]) -> dict[str, str]:
    """What does not depend on whether pods are ready."""
    return {where: hash for where, hash in stored.items() if "current" not in where}


def has_second(wanted: Iterable[str]) -> Predicate:
    names = list(wanted)

    def seen(view: View) -> bool | Unmet:
        late = [name for name in names if not any(clique.startswith(f"{name}-1-") for clique in view.names(CLIQUES))]
        return not late or Unmet(f"no clique of a second replica: {', '.join(late)}")

    return seen
