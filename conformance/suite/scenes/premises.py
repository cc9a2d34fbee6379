"""The namespace and the nodes of a test, and the clients that have deleted or changed them.

Only the suite may delete these. If another client deletes nodes, the history shows it, and the API server's audit log
identifies the user. Unless the user is a component of the cluster, or a role that the implementation does not play,
this is a failure of the implementation, and its message names the user. Components do not delete a test's objects on
their own, but an owner reference can make the garbage collector do so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.cluster import users
from conformance.cluster.audit import AuditLog, Writer
from conformance.cluster.nodes import POOL
from conformance.errors import HarnessError
from conformance.grove.fields import label
from conformance.history.query import History
from conformance.history.record import DELETED
from conformance.suite.scenes import interference
from conformance.suite.scenes.writers import MAX_AUDIT_LAG_SECONDS, UPDATE_VERBS, note_writers

DELETE_VERBS = frozenset({"delete", "deletecollection"})


class Premises:
    """The namespace and the node pool of one test, observed from its start."""

    def __init__(
        self,
        history: History,
        namespace: str,
        pool: str,
        audit: AuditLog | None,
        supplied: Collection[str] = (),
        mutators: Callable[[], str] = lambda: "",
        hooks: Collection[str] = (),
    ) -> None:
        """`supplied`: users of the roles that the implementation does not play. `mutators`: returns a description of a
        webhook or policy with which the implementation changes other clients' objects; empty if there is none. `hooks`:
        the webhooks and policies of the cluster itself."""
        self._hooks = hooks
        self._history, self._namespace, self._pool, self._audit = history, namespace, pool, audit
        self._supplied, self._mutators = supplied, mutators
        self._audit_mark = audit.mark() if audit is not None else 0
        self._last_seq = history.log.last_seq()
        self._deleted_nodes: dict[str, None] = {}

    def deleted_nodes(self) -> list[str]:
        """Return the deleted nodes of the test, from the records that have arrived. Cheap if there are no new
        records."""
        for record in self._history.log.records_after(self._namespace, self._last_seq):
            self._last_seq = record.seq
            if record.resource == "nodes" and record.kind == DELETED and label(record.object, POOL) == self._pool:
                self._deleted_nodes[record.name] = None
        return list(self._deleted_nodes)

    def accusation(self, unusable: Sequence[str] = ()) -> str:
        """Return a message that names the user who has deleted the namespace or nodes of the test, or has written to
        nodes that are `unusable`, or the webhook or policy that makes the API server do so; empty if there is none.
        Raises HarnessError if nodes were deleted but not by the implementation."""
        if mutator := self._mutators():
            return mutator
        lost_nodes, deleted = self.deleted_nodes(), True
        if lost_nodes:
            writers = self._writers("nodes", lost_nodes, DELETE_VERBS, certain=True)
            more_nodes = f" and {len(lost_nodes) - 1} more" if len(lost_nodes) > 1 else ""
            damage = f"node {lost_nodes[0]}{more_nodes} of the test was deleted"
        elif writers := self._writers("namespaces", [self._namespace], DELETE_VERBS):
            damage = f"the namespace {self._namespace} of the test was deleted"
        else:
            writers, deleted = self._writers("nodes", unusable, UPDATE_VERBS) if unusable else [], False
            damage = f"node {unusable[0]} of the test is not usable, and was changed" if unusable else ""
        if implementation_writers := self._implementation_writers(writers):
            return f"{damage} by {_described(implementation_writers[0])}"
        if writers and deleted and (causers := self._causers(lost_nodes)):
            return (
                f"{damage}, and behind it is {_described(causers[0])}; the request is that of {_described(writers[0])}"
            )
        if lost_nodes:
            culprit = (
                f"by {_described(writers[0])}" if writers else "by an unknown client (the audit log does not have it)"
            )
            raise HarnessError(f"{damage} {culprit}", where=f"pool {self._pool}")
        return ""

    def interference(self) -> str:
        """Return a message about what the implementation has done to keep the cluster from working; empty if there is
        nothing. Call this before the cluster is blamed."""
        if self._audit is None:
            return ""
        place = interference.Place(self._namespace, self._pool)
        return interference.first(self._audit, self._audit_mark, place, self._supplied, self._hooks)

    def note_writers(self) -> None:
        """Note in the history, from the audit log, the writers of fields that rules would otherwise trust."""
        if self._audit is not None:
            note_writers(self._history, self._audit, self._audit_mark)

    def _implementation_writers(self, writers: Sequence[Writer]) -> list[Writer]:
        """Return the writers that can only be the implementation."""
        return [writer for writer in writers if interference.is_stranger(writer.user, self._supplied)]

    def _causers(self, deleted_nodes: Collection[str]) -> list[Writer]:
        """Return the writers that may have caused a deletion by a component: they changed the nodes, for example so
        that the garbage collector deletes them."""
        return (
            self._implementation_writers(self._writers("nodes", deleted_nodes, UPDATE_VERBS)) if deleted_nodes else []
        )

    def _writers(
        self, plural: str, names: Collection[str], verbs: Collection[str], *, certain: bool = False
    ) -> list[Writer]:
        """Return the writers other than the suite. With `certain`, the history shows that there was a write; in this
        case, wait briefly for the audit log, which may lag slightly."""
        audit = self._audit
        if audit is None:
            return []

        def find_writers() -> list[Writer]:
            writers = audit.writers(plural, names, verbs, self._audit_mark)
            return [writer for writer in writers if writer.user != users.SUITE]

        until_any: Callable[[Callable[[], list[Writer]]], list[Writer]] = Retrying(
            retry=retry_if_not_result(bool),
            wait=wait_fixed(0.05),
            stop=stop_after_delay(MAX_AUDIT_LAG_SECONDS),
            retry_error_callback=lambda state: [],
        )
        return until_any(find_writers) if certain else find_writers()


def _described(writer: Writer) -> str:
    return f'the user {writer.user} (client "{writer.agent}")'
