"""What only the API server's audit log tells about a history: who wrote what rules would otherwise believe."""

from __future__ import annotations

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.cluster import users
from conformance.cluster.audit import AuditLog, Request
from conformance.grove.fields import condition, terminating
from conformance.history.query import History
from conformance.history.record import DELETED, Record
from conformance.implementation.descriptor import Role

CHANGES = frozenset({"update", "patch"})
EVICTIONS = frozenset({("delete", "pods"), ("create", "pods/eviction")})
"""Verb and resource of the requests that delete one pod."""
EVICTORS = frozenset({"kube-controller-manager", "kube-scheduler"})
"""The components that evict pods. KWOK deletes, as a kubelet does, what is terminating already."""
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
"""It deletes what others have deleted the owner of."""
OPERATOR = Role.OPERATOR.value
"""The user of the operator under test."""
WITHIN = 2.0
"""Seconds within which the audit log contains a request that the history shows."""


def note(history: History, audit: AuditLog, since: int) -> None:
    """Note in a history who deleted the pods that have the condition DisruptionTarget, and which nodes and statuses of
    pods others than the suite and the components have written. `since`: the mark of its beginning."""
    pods = {record.name for record in history.records("pods") if _said_to_be_disrupted(record)}

    def look() -> bool:
        deleted_by: dict[str, set[str]] = {}
        nodes, statuses = set[str](), dict[str, str]()
        for request in audit.accepted(since):
            evicts = (request.verb, request.resource) in EVICTIONS and _decides(request)
            if evicts and request.namespace == history.namespace and request.name in pods:
                deleted_by.setdefault(request.name, set()).add(request.user)
            if request.resource in ("nodes", "nodes/status") and request.verb in CHANGES and _foreign(request.user):
                nodes.add(request.name)
            if request.resource == "pods/status" and request.namespace == history.namespace and _foreign(request.user):
                statuses[request.version] = request.user
        history.origins.deleted_by = {pod: sorted(deleted_by[pod]) for pod in sorted(deleted_by)}
        history.origins.changed_nodes = sorted(nodes)
        history.origins.statuses = statuses
        return pods <= deleted_by.keys()

    Retrying(
        retry=retry_if_not_result(bool),
        wait=wait_fixed(0.05),
        stop=stop_after_delay(WITHIN),
        retry_error_callback=lambda state: None,
    )(look)


def of_objects(audit: AuditLog, since: int, namespace: str) -> set[tuple[str, str, str]]:
    """Return who has written what in a namespace, by user, resource and name, except the suite and the components of
    the cluster. `since`: a mark of the audit log."""
    return {
        (request.user, request.resource, request.name)
        for request in audit.accepted(since)
        if request.namespace == namespace and _foreign(request.user)
    }


def _foreign(user: str) -> bool:
    return user != users.SUITE and not users.is_component(user)


def _decides(request: Request) -> bool:
    """Return whether a deletion was decided by who asked for it."""
    if not users.is_component(request.user):
        return True
    return request.program in EVICTORS and request.user != COLLECTOR


def _said_to_be_disrupted(record: Record) -> bool:
    if b"DisruptionTarget" not in record.raw:
        return False
    going = record.kind == DELETED or terminating(record.object)
    return going and bool(condition(record.object, "DisruptionTarget"))
