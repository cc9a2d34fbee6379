"""The effects of an update on pods during a span of a history. The records of one resource are ordered by resource
version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from conformance.grove import labels, pods
from conformance.grove.fields import label, terminating, text
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED, Record
from conformance.history.view import View
from conformance.suite.scenes.recorded import Span

Part = Callable[[str], str]
"""A function from the name of a clique to the part that it belongs to; empty for cliques that do not count."""


def owner(record: Record) -> str:
    """Return the name of a pod's clique."""
    return pods.clique(record.object)


def states(span: Span) -> Iterator[tuple[Record, Mapping[str, Record]]]:
    """Yield each pod record with all pods at that time, by UID. The mapping is updated in place, so callers must not
    keep it."""
    state = {record.uid: record for record in span.start_view().records("pods")}
    for record in span.records("pods"):
        if record.kind == DELETED:
            state.pop(record.uid, None)
        else:
            state[record.uid] = record
        yield record, state


def serving(state: Mapping[str, Record]) -> dict[str, int]:
    """Return clique → number of Ready pods that are not being deleted."""
    result: dict[str, int] = {}
    for record in state.values():
        if pods.is_ready(record.object) and not terminating(record.object):
            result[owner(record)] = result.get(owner(record), 0) + 1
    return result


def lacking(span: Span, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return clique → the largest number of Ready pods that it lacked at any time."""
    worst = dict.fromkeys(sizes, 0)
    for _, state in states(span):
        ready_counts = serving(state)
        for clique, size in sizes.items():
            worst[clique] = max(worst[clique], size - ready_counts.get(clique, 0))
    return worst


def together(span: Span, sizes: Mapping[str, int], part: Part, *, limit: int = 1) -> list[str]:
    """Return descriptions of the first three times at which cliques of more than `limit` parts lacked Ready pods."""
    violations: list[str] = []
    for record, state in states(span):
        ready_counts = serving(state)
        incomplete = {part(clique) for clique, size in sizes.items() if ready_counts.get(clique, 0) < size} - {""}
        if len(incomplete) > limit and len(violations) < 3:
            violations.append(f"+{record.at:.3f}s {', '.join(sorted(incomplete))} (pods/{record.name})")
    return violations


def sequence(span: Span, part: Part) -> list[str]:
    """Return the parts that lost pods, ordered by their first loss."""
    parts: list[str] = []
    for record in deleted(span):
        if (lost_part := part(owner(record))) and lost_part not in parts:
            parts.append(lost_part)
    return parts


def deleted_parts(span: Span, part: Part) -> list[str]:
    """Return the parts that lost cliques or pods, ordered by their first loss. The records of cliques count as well,
    because the garbage collector deletes the pods of deleted cliques in no fixed order."""
    lost = [(record.revision, part(record.name)) for record in deleted(span, "podcliques")]
    lost += [(record.revision, part(owner(record))) for record in deleted(span)]
    return list(dict.fromkeys(lost_part for _, lost_part in sorted(lost) if lost_part))


def deleted(span: Span, resource: str = "pods") -> list[Record]:
    """Return the first record that shows the deletion of each deleted object, in order."""
    deleted_uids = {record.uid for record in span.start_view().records(resource) if terminating(record.object)}
    result = []
    for record in span.records(resource):
        if record.uid not in deleted_uids and (record.kind == DELETED or terminating(record.object)):
            deleted_uids.add(record.uid)
            result.append(record)
    return result


def recreated_beside_outdated(span: Span, part: Part, outdated: Callable[[Record], bool]) -> list[Record]:
    """Return the deletions of up-to-date pods that were created before the last outdated pod of their part was deleted.
    A part with outdated pods may be recreated as a whole."""
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
    """Return clique → number of pods created for it."""
    uids_of: dict[str, set[str]] = {}
    before = {record.uid for record in span.start_view().records("pods")}
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
    """Return the pods that existed at that revision and were not being deleted, in their state at that revision."""
    state: dict[str, Record] = {}
    for record in history.records("pods"):
        if record.revision > revision:
            continue
        if record.kind == DELETED:
            state.pop(record.uid, None)
        else:
            state[record.uid] = record
    return [record for record in state.values() if not terminating(record.object)]
