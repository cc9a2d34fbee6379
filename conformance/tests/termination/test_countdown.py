"""When the time of what is below its floor is over: what begins it anew, what doesn't, and who remembers."""

from __future__ import annotations

from conformance.grove import health
from conformance.grove.fields import condition, terminating, text
from conformance.history.record import Record
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.comparison import same
from conformance.testing.disruption import CLIQUES
from conformance.testing.observed import all_of

SECONDS = 12
SETS = ("wavers", "worsens", "lasts", "waits", "hastens", "begins")
BEFORE_RESTART = 8.0
"""Seconds of the countdown after which the operator is restarted: the later, the clearer whether it counts anew."""


@requirements("TERM-016", "TERM-017", "TERM-018", "TERM-019", "TERM-020", "TERM-015", "INV-001", "INV-004", "INV-005")
def test_a_countdown_goes_on_from_when_it_began(case: Case) -> None:
    nodes = case.nodes("tiny", 1)
    for each in SETS:
        workload = case.workload("frontend", setName=each, pods=3)
        delay = {"waits": "1s", "hastens": "1h"}.get(each, f"{SECONDS}s")
        workload["spec"]["template"]["terminationDelay"] = delay
        if each == "waits":
            template = workload["spec"]["template"]["cliques"][0]
            template["annotations"] = {**template.get("annotations", {}), health.HOLD_STATUS: "yes"}
        case.create(workload)
    cliques = {each: f"{each}-0-web" for each in SETS}
    waits = cliques.pop("waits")
    case.until("TERM-020", "the sets are available", all_of(*(predicates.available(each, 1) for each in cliques)))
    case.until("TERM-015", "pods are bound, and start", disruption.bound({waits: 3}))
    disruption.become(case, waits, disruption.STARTING, 3)
    lost = case.history.now()
    # At once: also what is lost soon after its beginning is lost. It is lost for good, and the others crash.
    disruption.cordon(case, nodes)
    disruption.fail_node(case, cliques["begins"], 1)
    for each, clique in cliques.items():
        if each != "begins":
            disruption.become(case, clique, disruption.CRASHED, 1)
    case.until("TERM-020", "the cliques say that they have lost a pod", disruption.breached(CLIQUES, cliques.values()))
    first = {each: began(case, clique) for each, clique in cliques.items()}
    before = incarnations.uids(case.history.view(), CLIQUES)
    case.quiet(1.2, real=True)

    disruption.become(case, cliques["wavers"], disruption.SERVING, 1)
    disruption.become(case, cliques["worsens"], disruption.CRASHED, 2)
    case.until("TERM-016", "the clique is sound again", disruption.breached(CLIQUES, [cliques["wavers"]], "False"))
    disruption.delay(case, ["hastens"], "1s")
    what = "a delay that was shortened while it counted down is over"
    case.eventually("TERM-018", what, incarnations.renewed(CLIQUES, [cliques["hastens"]], before))
    case.quiet(1.2, real=True)
    relapsed = case.history.now()
    disruption.become(case, cliques["wavers"], disruption.CRASHED, 1)
    case.until("TERM-016", "the clique has lost a pod again", disruption.breached(CLIQUES, [cliques["wavers"]]))
    again = began(case, cliques["wavers"])

    age_of(case, first["lasts"])
    case.roles.restart("operator")
    restarted = case.history.now()
    rest = [cliques[each] for each in ("wavers", "worsens", "lasts")]
    case.eventually("TERM-019", "what counted down is made anew", incarnations.renewed(CLIQUES, rest, before), 200)
    told = moments(case, cliques["worsens"], first["worsens"])
    case.expect("TERM-017", "transition times of a breach in which one more pod was lost", told[:1], told)
    ends = incarnations.ends(case.history, CLIQUES)
    for id, each, cause, since in (
        ("TERM-016", "wavers", again, relapsed),
        ("TERM-017", "worsens", first["worsens"], lost),
        ("TERM-019", "lasts", first["lasts"], lost),
    ):
        waited = disruption.waited(cause, ends.get(cliques[each]), since)
        case.expect(id, f"{each}: deleted before {SECONDS} s were over", False, 0 <= waited < SECONDS)
    for id, each in (("TERM-017", "worsens"), ("TERM-019", "lasts")):
        end = ends.get(cliques[each])
        after = round(end.at - restarted, 1) if end is not None else None
        late = after is None or after >= SECONDS - 1
        case.holds(id, f"{each}: deleted before a whole delay has passed since the restart", not late)
    what = "what was lost soon after its beginning is made anew"
    case.eventually("TERM-020", what, incarnations.renewed(CLIQUES, [cliques["begins"]], before))
    disruption.cordon(case, nodes, off=True)
    case.until("TERM-020", "the sets are available again", all_of(*(predicates.available(each, 1) for each in cliques)))
    once = dict.fromkeys(cliques.values(), 2)
    same(case, "TERM-020", "cliques that each name has had", once, disruption.counts(case.history, once))
    same(case, "TERM-015", "cliques whose pods are on their way", {waits: 1}, disruption.counts(case.history, [waits]))


def began(case: Case, clique: str) -> Record | None:
    return incarnations.since(case.history, CLIQUES, clique, disruption.BREACHED, "True")


def moments(case: Case, clique: str, since: Record | None) -> list[str]:
    """The transition times that a clique has told of its breach, from that record until it was deleted."""
    records = case.history.records(CLIQUES, clique, since=since.seq - 1) if since is not None else []
    living = [r for r in records if since is not None and r.uid == since.uid and not terminating(r.object)]
    told = [text(condition(record.object, disruption.BREACHED), "lastTransitionTime") for record in living]
    return list(dict.fromkeys(told))


def age_of(case: Case, since: Record | None) -> None:
    """Waits until a countdown has lasted so long that a new one would end much later."""
    if since is not None and (rest := since.at + BEFORE_RESTART - case.history.now()) > 0:
        case.quiet(rest, rest + 5, real=True)
