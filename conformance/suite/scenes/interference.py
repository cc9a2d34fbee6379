"""Find out whether the implementation has kept the cluster from doing its own work, before the cluster is blamed.

Some objects belong to the cluster or to the suite, and nobody else has a reason to write them: the Leases of nodes,
which tell KWOK which nodes to simulate, and their namespace; the rights of Kubernetes' controllers; nodes and
namespaces with the names of a test; and the quotas and limits of these namespaces. Webhooks and admission policies of
an implementation can also reject the requests of the cluster's components, such as the statuses of pods and nodes, and
the Leases that KWOK creates.

This is looked up only when a test would otherwise end without anybody being at fault, because the audit log is long,
and because an implementation may do all of this without harm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from conformance.cluster import users
from conformance.cluster.audit import AuditedRequest, AuditLog
from conformance.cluster.settings import NODE_LEASES
from conformance.grove import refusals
from conformance.suite.scenes.writers import LIMIT_RESOURCES

BUILTIN_PREFIX = "system:"
"""The prefix of the names of roles and bindings that Kubernetes creates for its own components."""


class Place(NamedTuple):
    """The namespace and the node pool of a test. Names of nodes and of a second namespace start with these."""

    namespace: str
    pool: str


def is_stranger(user: str, supplied: Collection[str]) -> bool:
    """Return whether a user can only be the implementation. `supplied`: the users of the roles that it does not
    play."""
    return user != users.SUITE and not users.is_component(user) and user not in supplied


def first(audit: AuditLog, mark: int, place: Place, supplied: Collection[str], hooks: Collection[str]) -> str:
    """Return a message about the first such act of the implementation; empty if there is none. `mark`: the audit log's
    mark at the start of the test, before which rejections do not count. `hooks`: the webhooks and policies of the
    cluster."""
    written = (
        f"{_described(request)}, which only the cluster and the suite write: the user {request.user} has done that"
        for request in audit.accepted()
        if is_stranger(request.user, supplied) and _belongs_to_others(request, place)
    )
    return next(written, "") or next(_rejections(audit.rejected(mark), hooks), "")


def _belongs_to_others(request: AuditedRequest, place: Place) -> bool:
    match request.resource:
        case "leases":
            return request.namespace == NODE_LEASES
        case "clusterroles" | "clusterrolebindings" | "roles" | "rolebindings":
            return request.name.startswith(BUILTIN_PREFIX)
        case "nodes":
            return request.name.startswith(f"{place.pool}-")
        case "namespaces":
            created = request.verb == "create" and request.name.startswith(place.namespace)
            return created or (request.verb == "delete" and request.name == NODE_LEASES)
        case resource:
            return resource in LIMIT_RESOURCES and request.namespace in (place.namespace, NODE_LEASES)


def _rejections(requests: Iterable[AuditedRequest], hooks: Collection[str]) -> Iterator[str]:
    for request in requests:
        by_component = request.user == users.SUITE or users.is_component(request.user)
        by_other_hook = refusals.by_webhook(request.message) and not refusals.by_cluster(request.message, (), hooks)
        if by_component and by_other_hook:
            yield f"{_described(request)} of the user {request.user} was rejected: {request.message}"


def _described(request: AuditedRequest) -> str:
    namespace = f" of the namespace {request.namespace}" if request.namespace else ""
    return f"the request to {request.verb} {request.resource} {request.name}".rstrip() + namespace
