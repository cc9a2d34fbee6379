"""Changes that mean something: each changes the hash of its clique and of no other; taken back, it is what it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove import template_pairs
from conformance.grove.template_pairs import template
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import sets
from conformance.testing.comparison import same
from conformance.testing.predicates import Predicate

UNTOUCHED = ("untouched", "left-alone")
PLAIN = {"restartPolicy": "Always", "containers": [{"name": "main", "image": "registry.example/engine:1"}]}


@requirements("TMPL-005", "TMPL-006", "TMPL-007", "TMPL-008", "TMPL-010")
def test_each_real_change_is_seen_in_its_clique_and_nowhere_else(case: Case) -> None:
    # OnDelete: no pod is replaced for any of it, so that all changes can be judged at once.
    pairs = template_pairs.read()
    of_id = {"TMPL-005": pairs.ordered, "TMPL-006": pairs.changed}
    rest = [template(name, PLAIN) for name in UNTOUCHED]
    before = [rest[0], *(pair.before for found in of_id.values() for pair in found), rest[1]]
    after = [rest[0], *(pair.after for found in of_id.values() for pair in found), rest[1]]
    strategy: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}
    first = sets.made(case, "s", before, **strategy)
    case.create(first)
    second = sets.made(case, "p", rest, **strategy)
    case.create(second)
    every = [f"s-0-{clique['name']}" for clique in before]
    classed = [f"p-0-{name}" for name in UNTOUCHED]
    case.until("TMPL-006", "every clique has a hash", have_hashes([*every, *classed]))
    case.until("TMPL-006", "and so have the sets", lambda view: all(sets.generation(view, name) for name in "sp"))
    view = case.quiet(1)
    old = hashes(view, [*every, *classed])
    generations = {name: sets.generation(view, name) for name in "sp"}

    sets.become(case, sets.made(case, "s", after, **strategy))
    case.patch(sets.SETS, "p", {"spec": {"template": {"priorityClassName": "system-cluster-critical"}}})
    touched = [f"s-0-{pair.name}" for found in of_id.values() for pair in found]
    case.settled("all hashes have changed", changed([*touched, *classed], old))
    case.settled("those of the sets, too", lambda view: all(sets.generation(view, n) != generations[n] for n in "sp"))
    view = case.quiet(1)
    now = hashes(view, [*every, *classed])
    for id, found in of_id.items():
        unseen = [pair.name for pair in found if now[f"s-0-{pair.name}"] in ("", old[f"s-0-{pair.name}"])]
        case.expect(id, "changes that have not changed the hash of their clique", [], unseen)
    unseen = [name for name in classed if now[name] == old[name]]
    case.expect("TMPL-006", "cliques whose hash a new priority class of the set has not changed", [], unseen)
    untouched = {name: old[name] for name in every if name not in touched}
    same(case, "TMPL-007", "hashes of the other cliques", untouched, {name: now[name] for name in untouched})
    other = {name: hash for name, hash in generations.items() if sets.generation(view, name) == hash}
    case.expect("TMPL-006", "sets whose generation hash has not changed with their cliques", {}, other)
    sets.judge_exact(case, "TMPL-010", "sp")

    sets.become(case, first)
    case.settled("all hashes are as before", lambda view: hashes(view, every) == {n: old[n] for n in every})
    case.settled("that of the set, too", lambda view: sets.generation(view, "s") == generations["s"])
    view = case.quiet(1)
    same(case, "TMPL-008", "hashes of templates that are as before", {n: old[n] for n in every}, hashes(view, every))
    case.expect("TMPL-008", "generation hash", generations["s"], sets.generation(view, "s"))


def hashes(view: View, cliques: Iterable[str]) -> dict[str, str]:
    return {clique: sets.of_clique(view, clique) for clique in cliques}


def have_hashes(cliques: Iterable[str]) -> Predicate:
    wanted = list(cliques)

    def seen(view: View) -> bool | Unmet:
        late = [clique for clique, hash in hashes(view, wanted).items() if not hash]
        return not late or Unmet(f"no hash yet: {', '.join(late)}")

    return seen


def changed(cliques: Iterable[str], old: Mapping[str, str]) -> Predicate:
    wanted = list(cliques)

    def seen(view: View) -> bool | Unmet:
        late = [clique for clique, hash in hashes(view, wanted).items() if hash in ("", old[clique])]
        return not late or Unmet(f"the same hash as before: {', '.join(late)}")

    return seen
