"""Find the writers of objects in the API server's audit log. The history does not name them, and rules would otherwise
trust every writer."""

from __future__ import annotations

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.cluster import users
from conformance.cluster.audit import AuditedRequest, AuditLog
from conformance.grove.fields import condition, terminating
from conformance.history.query import History
from conformance.history.record import DELETED, Record
from conformance.implementation.descriptor import Role
from conformance.suite.scenes import pod_statuses

UPDATE_VERBS = frozenset({"update", "patch"})
EVICTIONS = frozenset({("delete", "pods"), ("create", "pods/eviction")})
"""Verb and resource of the requests that delete one pod."""
EVICTORS = frozenset({"kube-controller-manager", "kube-scheduler"})
"""The components that evict pods. KWOK, like a kubelet, only deletes pods that are already terminating."""
GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
"""The user of the garbage collector, which deletes objects whose owner another client has deleted."""
OPERATOR = Role.OPERATOR.value
"""The user of the operator under test."""
LIMIT_RESOURCES = frozenset({"resourcequotas", "limitranges"})
"""The resources that limit a namespace. In a test's namespace, only the suite has a reason to change them."""
MAX_AUDIT_LAG_SECONDS = 2.0
"""Seconds within which the audit log contains a request that the history shows."""


def note_writers(history: History, audit: AuditLog, mark: int) -> None:
    """Record in a history who deleted the pods with the condition DisruptionTarget; which nodes, pod statuses and
    limits were written by users other than the suite and the components; and which statuses were stored differently
    than the suite or the components sent them. `mark`: the audit log's mark at the start of the test."""
    pods = {record.name for record in history.records("pods") if _is_disrupted(record)}
    sent: dict[str, list[bytes]] = {}

    def read_log() -> bool:
        deleted_by: dict[str, set[str]] = {}
        nodes, statuses, limit_change_messages = set[str](), dict[str, str](), list[str]()
        sent.clear()
        for request in audit.accepted(mark):
            is_eviction = (request.verb, request.resource) in EVICTIONS and _is_decided_by_user(request)
            if is_eviction and request.namespace == history.namespace and request.name in pods:
                deleted_by.setdefault(request.name, set()).add(request.user)
            if (
                request.resource in ("nodes", "nodes/status")
                and request.verb in UPDATE_VERBS
                and _foreign(request.user)
            ):
                nodes.add(request.name)
            if request.namespace != history.namespace:
                continue
            if request.resource == "pods/status" and _foreign(request.user):
                statuses[request.version] = request.user
            elif request.resource == "pods/status" and request.sent:
                sent.setdefault(request.version, []).append(request.sent)
            elif request.resource in LIMIT_RESOURCES and request.verb != "create" and _foreign(request.user):
                subject = f"{request.resource} {request.name}".rstrip()
                limit_change_messages.append(
                    f"{subject} of the test: the user {request.user} asked to {request.verb} it"
                )
        history.origins.deleted_by = {pod: sorted(deleted_by[pod]) for pod in sorted(deleted_by)}
        history.origins.changed_nodes = sorted(nodes)
        history.origins.statuses = statuses
        history.origins.altered = limit_change_messages
        return pods <= deleted_by.keys()

    Retrying(
        retry=retry_if_not_result(bool),
        wait=wait_fixed(0.05),
        stop=stop_after_delay(MAX_AUDIT_LAG_SECONDS),
        retry_error_callback=lambda state: None,
    )(read_log)
    history.origins.statuses = pod_statuses.unconfirmed(history, history.origins.statuses, sent)
    history.origins.altered += pod_statuses.altered(history, sent)


def of_objects(audit: AuditLog, mark: int, namespace: str) -> set[tuple[str, str, str]]:
    """Return (user, resource, name) for all writes in a namespace, except those of the suite and the components of the
    cluster. `mark`: a mark of the audit log."""
    return {
        (request.user, request.resource, request.name)
        for request in audit.accepted(mark)
        if request.namespace == namespace and _foreign(request.user)
    }


def _foreign(user: str) -> bool:
    return user != users.SUITE and not users.is_component(user)


def _is_decided_by_user(request: AuditedRequest) -> bool:
    """Return whether a deletion was the requesting user's own decision, not a consequence of another request, as
    garbage collection is."""
    if not users.is_component(request.user):
        return True
    return request.program in EVICTORS and request.user != GARBAGE_COLLECTOR


def _is_disrupted(record: Record) -> bool:
    if b"DisruptionTarget" not in record.raw:
        return False
    is_deleted = record.kind == DELETED or terminating(record.object)
    return is_deleted and bool(condition(record.object, "DisruptionTarget"))
