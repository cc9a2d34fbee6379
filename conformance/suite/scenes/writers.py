"""Writers of objects, from the API server's audit log: the history alone does not name them, and rules would believe
any."""

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
"""The components that evict pods. KWOK deletes, as a kubelet does, what is terminating already."""
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
"""The garbage collector, which deletes objects whose owner others have deleted."""
OPERATOR = Role.OPERATOR.value
"""The user of the operator under test."""
LIMITS = frozenset({"resourcequotas", "limitranges"})
"""The limits of a namespace. In that of a test, only the suite has reason to change them."""
WITHIN = 2.0
"""Seconds within which the audit log contains a request that the history shows."""


def note(history: History, audit: AuditLog, begin: int) -> None:
    """Note in a history who deleted the pods that have the condition DisruptionTarget, what others than the suite and
    the components have written of nodes, statuses of pods and limits, and which statuses were stored otherwise than
    these have sent them. `begin`: the mark of its beginning."""
    pods = {record.name for record in history.records("pods") if _said_to_be_disrupted(record)}
    sent: dict[str, list[bytes]] = {}

    def look() -> bool:
        deleted_by: dict[str, set[str]] = {}
        nodes, statuses, limits = set[str](), dict[str, str](), list[str]()
        sent.clear()
        for request in audit.accepted(begin):
            evicts = (request.verb, request.resource) in EVICTIONS and _decides(request)
            if evicts and request.namespace == history.namespace and request.name in pods:
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
            elif request.resource in LIMITS and request.verb != "create" and _foreign(request.user):
                subject = f"{request.resource} {request.name}".rstrip()
                limits.append(f"{subject} of the test: the user {request.user} asked to {request.verb} it")
        history.origins.deleted_by = {pod: sorted(deleted_by[pod]) for pod in sorted(deleted_by)}
        history.origins.changed_nodes = sorted(nodes)
        history.origins.statuses = statuses
        history.origins.altered = limits
        return pods <= deleted_by.keys()

    Retrying(
        retry=retry_if_not_result(bool),
        wait=wait_fixed(0.05),
        stop=stop_after_delay(WITHIN),
        retry_error_callback=lambda state: None,
    )(look)
    history.origins.altered += pod_statuses.altered(history, sent)


def of_objects(audit: AuditLog, begin: int, namespace: str) -> set[tuple[str, str, str]]:
    """Return who has written what in a namespace, by user, resource and name, except the suite and the components of
    the cluster. `begin`: a mark of the audit log."""
    return {
        (request.user, request.resource, request.name)
        for request in audit.accepted(begin)
        if request.namespace == namespace and _foreign(request.user)
    }


def _foreign(user: str) -> bool:
    return user != users.SUITE and not users.is_component(user)


def _decides(request: AuditedRequest) -> bool:
    """Return whether a deletion was decided by who asked for it."""
    if not users.is_component(request.user):
        return True
    return request.program in EVICTORS and request.user != COLLECTOR


def _said_to_be_disrupted(record: Record) -> bool:
    if b"DisruptionTarget" not in record.raw:
        return False
    going = record.kind == DELETED or terminating(record.object)
    return going and bool(condition(record.object, "DisruptionTarget"))
