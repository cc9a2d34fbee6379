"""A pod that waits says why, where people and autoscalers look: in its condition and in an event about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove.expected import Clique, expected
from conformance.grove.fields import condition, name, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates

CONDITION, REASON = "PodScheduled", "Unschedulable"


@requirements("SCHED-064", "SCHED-065")
def test_pods_that_wait_for_their_gang_say_why(case: Case) -> None:
    """One node holds one of two pods, so that neither is bound and both have to say so."""
    case.nodes("dgx-h100", 1)
    waits = case.workload("frontend", setName="waits", gpus=8)
    cliques = list(expected(waits).cliques.values())
    case.create(waits)
    case.until("SCHED-064", "the waiting pods lose their gates", predicates.all_ungated(cliques))
    what = f"each waiting pod has the condition {CONDITION}=False, reason {REASON}, with a message"
    case.eventually("SCHED-064", what, _told(cliques))

    # A later gang is bound: the scheduler has looked at everything again, and the reason is the same.
    begin = case.history.mark()
    later = case.workload("frontend", setName="later")
    case.create(later)
    case.until("SCHED-064", "a later gang is bound", predicates.all_bound(list(expected(later).cliques.values())))
    case.quiet(2, real=True)
    said = _conditions(case.history.view(begin), cliques)
    rewritten = []
    for record in case.history.records("pods", since=begin):
        now = condition(record.object, CONDITION)
        if record.name in said and now != said[record.name]:
            if text(now, "message") == text(said[record.name], "message"):
                rewritten.append(record.name)
            said[record.name] = now
    case.expect("SCHED-064", f"rewritten {CONDITION} conditions whose reason stayed the same", [], rewritten)

    what = "a Warning event about each waiting pod says why"
    case.until("SCHED-065", what, _warned(cliques), resources=["events"])


def _conditions(view: View, cliques: Sequence[Clique]) -> dict[str, Mapping[str, Any]]:
    """The condition of each pod, by the pod's name."""
    found = [pod for clique in cliques for pod in predicates.pods_of(view, clique.name)]
    return {name(pod): condition(pod, CONDITION) for pod in found}


def _told(cliques: Sequence[Clique]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        for clique in cliques:
            for pod in predicates.pods_of(view, clique.name):
                told = condition(pod, CONDITION)
                found = [text(told, "status"), text(told, "reason")]
                if found != ["False", REASON] or not text(told, "message"):
                    return Unmet(f"{name(pod)} says {CONDITION}={found[0]}, {found[1]}: {text(told, 'message')!r}")
        return True

    return seen


def _warned(cliques: Sequence[Clique]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        about = {
            text(event.get("regarding") or event.get("involvedObject"), "name")
            for event in view.list("events")
            if text(event, "type") == "Warning" and (text(event, "note") or text(event, "message"))
        }
        silent = [name(pod) for c in cliques for pod in predicates.pods_of(view, c.name) if name(pod) not in about]
        return not silent or Unmet(f"no Warning event is about {', '.join(silent)}")

    return seen
