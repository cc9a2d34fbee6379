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


def clique_name(record: Record) -> str:
    """Return the name of a pod's clique."""
    return pods.clique(record.object)


def pod_states(span: Span) -> Iterator[tuple[Record, Mapping[str, Record]]]:
    """Yield each pod record with all pods at that time, by UID. The mapping is updated in place, so callers must not
    keep it."""
    state = {record.uid: record for record in span.start_view().records("pods")}
    for record in span.records("pods"):
        if record.kind == DELETED:
            state.pop(record.uid, None)
        else:
            state[record.uid] = record
        yield record, state


def ready_counts(state: Mapping[str, Record]) -> dict[str, int]:
    """Return clique → number of Ready pods that are not being deleted."""
    result: dict[str, int] = {}
    for record in state.values():
        if pods.is_ready(record.object) and not terminating(record.object):
            result[clique_name(record)] = result.get(clique_name(record), 0) + 1
    return result


def max_shortfalls(span: Span, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return clique → the largest number of Ready pods that it lacked at any time."""
    shortfalls = dict.fromkeys(sizes, 0)
    for _, state in pod_states(span):
        counts = ready_counts(state)
        for clique, size in sizes.items():
            shortfalls[clique] = max(shortfalls[clique], size - counts.get(clique, 0))
    return shortfalls


def concurrent_losses(span: Span, sizes: Mapping[str, int], part: Part, *, limit: int = 1) -> list[str]:
    """Return descriptions of the first three times at which cliques of more than `limit` parts lacked Ready pods."""
    violations: list[str] = []
    for record, state in pod_states(span):
        counts = ready_counts(state)
        incomplete = {part(clique) for clique, size in sizes.items() if counts.get(clique, 0) < size} - {""}
        if len(incomplete) > limit and len(violations) < 3:
            violations.append(f"+{record.at:.3f}s {', '.join(sorted(incomplete))} (pods/{record.name})")
    return violations


def parts_by_first_loss(span: Span, part: Part) -> list[str]:
    """Return the parts that lost pods, ordered by their first loss."""
    parts: list[str] = []
    for record in deletions(span):
        if (lost_part := part(clique_name(record))) and lost_part not in parts:
            parts.append(lost_part)
    return parts


def deleted_parts(span: Span, part: Part) -> list[str]:
    """Return the parts that lost cliques or pods, ordered by their first loss. The records of cliques count as well,
    because the garbage collector deletes the pods of deleted cliques in no fixed order."""
    revisions_and_parts = [(record.revision, part(record.name)) for record in deletions(span, "podcliques")]
    revisions_and_parts += [(record.revision, part(clique_name(record))) for record in deletions(span)]
    return list(dict.fromkeys(lost_part for _, lost_part in sorted(revisions_and_parts) if lost_part))


def deletions(span: Span, resource: str = "pods") -> list[Record]:
    """Return the first record that shows the deletion of each deleted object, in order."""
    deleted_uids = {record.uid for record in span.start_view().records(resource) if terminating(record.object)}
    first_deletions = []
    for record in span.records(resource):
        if record.uid not in deleted_uids and (record.kind == DELETED or terminating(record.object)):
            deleted_uids.add(record.uid)
            first_deletions.append(record)
    return first_deletions


def deletions_beside_outdated(span: Span, part: Part, is_outdated: Callable[[Record], bool]) -> list[Record]:
    """Return the deletions of up-to-date pods that were created before the last outdated pod of their part was deleted.
    A part with outdated pods may be recreated as a whole."""
    deleted_pods = deletions(span)
    last_loss_by_part = {part(clique_name(record)): record.revision for record in deleted_pods if is_outdated(record)}
    revision_by_uid = {record.uid: record.revision for record in span.records("pods") if record.kind == ADDED}
    last_loss_by_part.pop("", None)
    return [
        record
        for record in deleted_pods
        if not is_outdated(record)
        and revision_by_uid.get(record.uid, 0) < last_loss_by_part.get(part(clique_name(record)), 0)
    ]


def creation_counts(span: Span) -> dict[str, int]:
    """Return clique → number of pods created for it."""
    uids_by_clique: dict[str, set[str]] = {}
    earlier_uids = {record.uid for record in span.start_view().records("pods")}
    for record in span.records("pods"):
        if record.kind == ADDED and record.uid not in earlier_uids:
            uids_by_clique.setdefault(clique_name(record), set()).add(record.uid)
    return {clique: len(uids) for clique, uids in uids_by_clique.items()}


def hosts_by_clique(view: View, cliques: Iterable[str]) -> dict[str, list[str]]:
    """Return clique → index and host name of each of its pods, sorted."""
    result: dict[str, list[str]] = {clique: [] for clique in cliques}
    for record in view.records("pods"):
        if not terminating(record.object) and clique_name(record) in result:
            index, host = label(record.object, labels.POD_INDEX), text(record.object, "spec", "hostname")
            result[clique_name(record)].append(f"{index} {host}")
    return {clique: sorted(hosts) for clique, hosts in result.items()}


def pods_at_revision(history: History, revision: int) -> list[Record]:
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
