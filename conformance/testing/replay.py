"""Effects of an update on the pods during a part of a history. The records of one resource are in the order of the API
server's writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from conformance.grove import labels, pods
from conformance.grove.fields import label, terminating, text
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED, Record
from conformance.history.view import View
from conformance.suite.scenes.recorded import Span

Part = Callable[[str], str]
"""Returns the part that a clique belongs to, by its name; empty for cliques that do not count."""


def owner(record: Record) -> str:
    """Return the clique of a pod."""
    return pods.clique(record.object)


def states(span: Span) -> Iterator[tuple[Record, Mapping[str, Record]]]:
    """Yield each record of a pod with all pods at that time, by UID. It is one mapping that changes."""
    state = {record.uid: record for record in span.begin().records("pods")}
    for record in span.records("pods"):
        if record.kind == DELETED:
            state.pop(record.uid, None)
        else:
            state[record.uid] = record
        yield record, state


def serving(state: Mapping[str, Record]) -> dict[str, int]:
    """Return how many Ready pods that are not being deleted each clique has."""
    result: dict[str, int] = {}
    for record in state.values():
        if pods.ready(record.object) and not terminating(record.object):
            result[owner(record)] = result.get(owner(record), 0) + 1
    return result


def lacking(span: Span, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the maximum number of Ready pods that each of these cliques lacked."""
    worst = dict.fromkeys(sizes, 0)
    for _, state in states(span):
        have = serving(state)
        for clique, size in sizes.items():
            worst[clique] = max(worst[clique], size - have.get(clique, 0))
    return worst


def together(span: Span, sizes: Mapping[str, int], part: Part, *, limit: int = 1) -> list[str]:
    """Return the times at which the cliques of more than `most` parts lacked Ready pods, the first few as text."""
    violations: list[str] = []
    for record, state in states(span):
        have = serving(state)
        incomplete = {part(clique) for clique, size in sizes.items() if have.get(clique, 0) < size} - {""}
        if len(incomplete) > limit and len(violations) < 3:
            violations.append(f"+{record.at:.3f}s {', '.join(sorted(incomplete))} (pods/{record.name})")
    return violations


def sequence(span: Span, part: Part) -> list[str]:
    """Return the parts that lost pods, in the order of their first loss."""
    parts: list[str] = []
    for record in deleted(span):
        if (lost_part := part(owner(record))) and lost_part not in parts:
            parts.append(lost_part)
    return parts


def deleted_parts(span: Span, part: Part) -> list[str]:
    """Return the parts that lost cliques or pods, in the order of the API server's writes. The pods of a clique are
    deleted by the garbage collector, in no fixed order of cliques."""
    lost = [(record.revision, part(record.name)) for record in deleted(span, "podcliques")]
    lost += [(record.revision, part(owner(record))) for record in deleted(span)]
    return list(dict.fromkeys(lost_part for _, lost_part in sorted(lost) if lost_part))


def deleted(span: Span, resource: str = "pods") -> list[Record]:
    """Return for each deleted pod the first record that shows its deletion, in order."""
    leaving = {record.uid for record in span.begin().records(resource) if terminating(record.object)}
    result = []
    for record in span.records(resource):
        if record.uid not in leaving and (record.kind == DELETED or terminating(record.object)):
            leaving.add(record.uid)
            result.append(record)
    return result


def recreated_beside_outdated(span: Span, part: Part, outdated: Callable[[Record], bool]) -> list[Record]:
    """Return the deletions of up-to-date pods whose part still had outdated pods when they were created: to get rid of
    these, the part may be recreated as a whole."""
    lost = deleted(span)
    last = {part(owner(record)): record.revision for record in lost if outdated(record)}
    creations = {record.uid: record.revision for record in span.records("pods") if record.kind == ADDED}
    last.pop("", None)
    return [
        record
        for record in lost
        if not outdated(record) and creations.get(record.uid, 0) < last.get(part(owner(record)), 0)
    ]


def created(span: Span) -> dict[str, int]:
    """Return how many pods were created for each clique."""
    uids_of: dict[str, set[str]] = {}
    before = {record.uid for record in span.begin().records("pods")}
    for record in span.records("pods"):
        if record.kind == ADDED and record.uid not in before:
            uids_of.setdefault(owner(record), set()).add(record.uid)
    return {clique: len(uids) for clique, uids in uids_of.items()}


def places(view: View, cliques: Iterable[str]) -> dict[str, list[str]]:
    """Return clique → index and host name of each of its pods, sorted."""
    result: dict[str, list[str]] = {clique: [] for clique in cliques}
    for record in view.records("pods"):
        if not terminating(record.object) and owner(record) in result:
            index, host = label(record.object, labels.POD_INDEX), text(record.object, "spec", "hostname")
            result[owner(record)].append(f"{index} {host}")
    return {clique: sorted(clique_places) for clique, clique_places in result.items()}


def surviving(history: History, revision: int) -> list[Record]:
    """Return the pods that are not being deleted, as they were at that revision."""
    state: dict[str, Record] = {}
    for record in history.records("pods"):
        if record.revision > revision:
            continue
        if record.kind == DELETED:
            state.pop(record.uid, None)
        else:
            state[record.uid] = record
    return [record for record in state.values() if not terminating(record.object)]
