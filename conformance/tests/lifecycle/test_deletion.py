"""Deletion leaves nothing behind, takes nothing else with it, and is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove import labels
from conformance.grove.expected import Expected, expected
from conformance.grove.fields import label, name, terminating
from conformance.history.query import History, Unmet
from conformance.history.record import ADDED, DELETED, Record
from conformance.history.recorder import RECORDED
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates

SMALL: Mapping[str, object] = {"workers": 2, "prefills": 1, "prefillsFloor": 1, "prefillGpus": 1, "decodeGpus": 1}


@requirements("LIFE-001", "LIFE-002", "LIFE-003", "LIFE-004", "INV-001", "INV-004", "INV-005")
def test_the_deletion_of_a_set_leaves_nothing_behind(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    # The neighbour is called like the base gang of the set: who deletes by the beginning of names takes it along.
    doomed, neighbour = case.workload("disaggregated", setName="a", **SMALL), case.workload("frontend", setName="a-0")
    wanted = expected(doomed)
    for workload in (doomed, neighbour, *strangers()):
        case.create(workload)
    case.until(
        "LIFE-002",
        "every pod of the set is bound before its deletion",
        predicates.all_bound(list(wanted.cliques.values())),
    )
    case.until("LIFE-004", "the neighbour is available", predicates.available("a-0", 1))
    before = case.quiet(1)
    others = _others(before, wanted)

    case.delete("podcliquesets", "a")
    case.until("LIFE-001", "the deleted set goes", _gone)
    # On an existing cluster the CRDs may be young; the garbage collector looks for new kinds only every 30 s.
    case.until("LIFE-002", "everything that was part of the set goes", _nothing_left(before, wanted), timeout=150)

    # A set that is made and bound after it all proves that the operator has seen the deletion and has gone on working.
    later = case.workload("frontend", setName="later")
    case.create(later)
    case.until("LIFE-003", "a later set becomes available", predicates.available("later", 1))
    view = case.quiet(1)
    case.expect(
        "LIFE-003", "objects made for the set after its deletion", [], _made_after_deletion(case.history, wanted)
    )
    case.expect("LIFE-002", "objects of the set in the end", [], sorted(_parts(view, wanted)))
    case.expect(
        "LIFE-004", "objects of others", others, {key: uid for key, uid in _uids(view).items() if key in others}
    )
    case.expect("LIFE-004", "objects of others that were marked for deletion", [], _marked(case.history, others))


def strangers() -> list[dict[str, Any]]:
    """Objects in the namespace that belong to no set; one is named like a clique, one like a Service of the set."""
    pod = {"containers": [{"name": "main", "image": "registry.example/stranger:1"}]}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-0-router-stranger"}, "spec": pod},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "a-stranger"},
            "spec": {"clusterIP": "None", "selector": {labels.PART_OF: "a"}},
        },
    ]


def _gone(view: View) -> bool | Unmet:
    found = view.get("podcliquesets", "a")
    if found is None:
        return True
    return Unmet("it is marked for deletion and stays" if terminating(found) else "it is not even marked for deletion")


def _nothing_left(before: View, wanted: Expected) -> predicates.Predicate:
    """Gone is what carried the set's label or one of its names. The same objects, not only the same names: an object
    that has come again under its old name isn't gone."""
    doomed = _parts(before, wanted)

    def seen(view: View) -> bool | Unmet:
        left = sorted(doomed & _parts(view, wanted))
        return not left or Unmet(f"{len(left)} of {len(doomed)} objects are left: {', '.join(left[:5])}")

    return seen


def _parts(view: View, wanted: Expected) -> set[str]:
    """`resource/name` of what belongs to the set, by its label or by its name."""
    return {
        f"{record.resource}/{record.name}"
        for resource in RECORDED
        for record in view.records(resource)
        if _part(record, wanted)
    }


def _part(record: Record, wanted: Expected) -> bool:
    named = {
        "podcliquesets": ("a",),
        "podcliques": wanted.cliques,
        "podcliquescalinggroups": wanted.groups,
        "podgangs": wanted.gangs,
        "services": wanted.services,
    }
    return record.name in named.get(record.resource, ()) or label(record.object, labels.PART_OF) == "a"


def _uids(view: View) -> dict[str, str]:
    return {f"{r.resource}/{r.name}": r.uid for resource in RECORDED for r in view.records(resource)}


def _others(view: View, wanted: Expected) -> dict[str, str]:
    """What doesn't belong to the set: `resource/name` → uid."""
    parts = _parts(view, wanted)
    return {key: uid for key, uid in _uids(view).items() if key not in parts}


def _made_after_deletion(history: History, wanted: Expected) -> list[str]:
    """What was created for the set after its deletion was asked for, in the order of the server's writes."""
    ending = [r for r in history.records("podcliquesets", "a") if r.kind == DELETED or terminating(r.object)]
    if not ending:
        return []
    return [
        f"{record.resource}/{record.name}"
        for record in history.records()
        if record.kind == ADDED and record.revision > ending[0].revision and _part(record, wanted)
    ]


def _marked(history: History, others: Mapping[str, str]) -> Sequence[str]:
    uids = set(others.values())
    return sorted({name(r.object) for r in history.records() if r.uid in uids and terminating(r.object)})
