"""Sets with equal templates have equal hashes, whatever else they are like; the order of cliques counts only where they
start in order."""

from __future__ import annotations

import re
from collections.abc import Callable

from conformance.grove import template_pairs
from conformance.grove.template_pairs import template
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import sets
from conformance.testing.sets import Object

ANY, EXPLICIT, IN_ORDER = (f"CliqueStartupType{kind}" for kind in ("AnyOrder", "Explicit", "InOrder"))


@requirements("TMPL-004", "TMPL-009", "TMPL-010", "TMPL-011")
def test_the_order_of_cliques_counts_where_they_start_in_order(case: Case) -> None:
    specs = [template_pairs.by_chance(case.random) for _ in range(2)]
    one, two = (template(name, spec) for name, spec in zip("ab", specs, strict=True))
    after = {**two, "spec": {**two["spec"], "startsAfter": ["a"]}}
    twins = [template(name, specs[0]) for name in "ab"]
    for clique in twins:
        clique["labels"] = {"example.com/clique": "twin"}
    wanted: dict[str, Object] = {
        "plain": sets.made(case, "plain", [one, two]),
        "plain-swapped": sets.made(case, "plain-swapped", [two, one], replicas=2),
        "any": sets.made(case, "any", [one, two], startup=ANY, updateStrategy={"type": "OnDelete"}),
        "any-swapped": sets.made(case, "any-swapped", [two, one], startup=ANY),
        "explicit": sets.made(case, "explicit", [one, after], startup=EXPLICIT),
        "explicit-swapped": sets.made(case, "explicit-swapped", [after, one], startup=EXPLICIT),
        "ordered": sets.made(case, "ordered", [one, two], startup=IN_ORDER),
        "ordered-again": sets.made(case, "ordered-again", [one, two], startup=IN_ORDER, replicas=2),
        "ordered-swapped": sets.made(case, "ordered-swapped", [two, one], startup=IN_ORDER),
        "twins": sets.made(case, "twins", twins, startup=IN_ORDER),
        "twins-swapped": sets.made(case, "twins-swapped", twins[::-1], startup=IN_ORDER),
        "grouped": sets.made(case, "grouped", [one, two], groups={"g": ["b"]}),
    }
    for workload in wanted.values():
        case.create(workload)
    found = case.until("TMPL-009", "every set has a generation hash", hashes_of(list(wanted)))
    unordered = ["plain", "plain-swapped", "any", "any-swapped", "explicit", "explicit-swapped", "grouped"]
    alike = {name: found[name] for name in unordered if found[name] != found["plain"]}
    case.expect("TMPL-009", "sets with another hash than the plain one", {}, alike)
    case.expect("TMPL-009", "hash of equal sets that start in order", found["ordered"], found["ordered-again"])
    for first, second in (("ordered", "ordered-swapped"), ("twins", "twins-swapped"), ("ordered", "any")):
        what = f"{first} and {second} have hashes of their own"
        case.expect("TMPL-004", what, True, found[first] != found[second] or found[first])
    what = "every clique of every set has a hash"
    case.until("TMPL-009", what, lambda view: all(_of_first(view, name, "a") for name in wanted))
    view = case.history.view()
    of_a = {name: _of_first(view, name, "a") for name in [*unordered, "ordered", "ordered-swapped"]}
    wrong = {name: hash for name, hash in of_a.items() if hash != of_a["plain"]}
    case.expect("TMPL-009", "sets whose clique a has another hash than that of the plain one", {}, wrong)
    badly = sorted({hash for hash in [*found.values(), *of_a.values()] if not _label_value(hash)})
    case.expect("TMPL-011", "hashes that are no value of a label", [], badly)
    sets.judge_exact(case, "TMPL-010", wanted)


def _of_first(view: View, set_name: str, clique: str) -> str:
    return sets.of_clique(view, f"{set_name}-0-{clique}")


def _label_value(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", text) is not None


def hashes_of(names: list[str]) -> Callable[[View], dict[str, str] | Unmet]:
    def seen(view: View) -> dict[str, str] | Unmet:
        found = {name: sets.generation(view, name) for name in names}
        late = [name for name, hash in found.items() if not hash]
        return found if not late else Unmet(f"no generation hash: {', '.join(late)}")

    return seen
