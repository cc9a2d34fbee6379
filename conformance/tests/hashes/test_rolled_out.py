"""Among many templates that are put in another order a few really change: just those are rolled out."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.grove.fields import text
from conformance.grove.template_pairs import template
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import incarnations, predicates, sets
from conformance.testing.comparison import same

ALONE, GROUPS = ("a", "b", "c"), {"g": ["d", "e"], "h": ["f"]}


@requirements("TMPL-012")
def test_a_real_change_among_others_is_rolled_out_where_it_is(case: Case) -> None:
    """A real change that comes with changes without meaning MUST be rolled out to exactly the cliques that it
    concerns."""
    case.nodes("dgx-h100", 2)
    names = [*ALONE, *(name for members in GROUPS.values() for name in members)]
    before = [template(name, template_pairs.by_chance(case.random)) for name in names]
    case.create(sets.made(case, "s", before, groups=GROUPS))
    pods = len(ALONE) + 2 * 2 + 2
    case.until("TMPL-012", "the set has its pods", sets.have_pods({"s": pods}))
    case.until("TMPL-012", "the set is available", predicates.available("s", 1))
    uids = incarnations.uids(case.quiet(1), "pods")

    alone, member = case.random.choice(ALONE), case.random.choice(GROUPS["g"])
    after = []
    for clique in before:
        change = template_pairs.changed if clique["name"] in (alone, member) else template_pairs.reordered
        after.append(template(clique["name"], change(case.random, clique["spec"]["podSpec"])))
    case.random.shuffle(after)
    sets.become(case, sets.made(case, "s", after, groups=GROUPS))
    touched = (f"s-0-{alone}-", "s-0-g-")
    old = {pod: uid for pod, uid in uids.items() if pod.startswith(touched)}
    case.until("TMPL-012", "the changed clique and the group of the changed member are new", renewed(old))
    case.until("TMPL-012", "and the set has all its pods", sets.have_pods({"s": pods}))
    view = case.quiet(1)
    kept = {pod: uid for pod, uid in uids.items() if pod not in old}
    now = incarnations.uids(view, "pods")
    same(case, "TMPL-012", "pods of what was only put in another order", kept, {pod: now.get(pod, "") for pod in kept})
    made = {record.uid for record in case.history.records("pods")}
    case.expect("TMPL-012", "pods made in all", len(uids) + len(old), len(made))


def renewed(old: dict[str, str]) -> predicates.Predicate:
    """None of these pods is left, and the update has ended."""

    def seen(view: View) -> bool | Unmet:
        left = [pod for pod, uid in incarnations.uids(view, "pods").items() if old.get(pod) == uid]
        ended = text(view.get(sets.SETS, "s"), "status", "updateProgress", "updateEndedAt")
        return (not left and ended != "") or Unmet(f"still there: {', '.join(left)}; ended at {ended or 'no time'}")

    return seen
