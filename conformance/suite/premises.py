"""The namespace and the nodes of a test, and who has deleted or changed them.

Only the suite deletes these. If anything else does, the history shows it for nodes, and the API server's audit log
tells the client: unless it was a component of the cluster, that is a failure of the implementation, whose message names
the user agent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.cluster.audit import AuditLog, Writer
from conformance.cluster.health import COMPONENTS
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.cluster.nodes import POOL
from conformance.errors import HarnessError
from conformance.grove.fields import label
from conformance.history.query import History
from conformance.history.record import DELETED

SUITE = "grove-conformance"
"""The prefix of all user agents of the suite."""
_COMPONENTS = frozenset({*COMPONENTS.values(), kubelet.COMPONENT, "kwok"})
DELETIONS = frozenset({"delete", "deletecollection"})
CHANGES = frozenset({"update", "patch"})
WRITTEN_WITHIN = 2.0
"""Seconds within which the audit log contains a request that the history shows."""


class Premises:
    """The namespace and the node pool of one test, from its beginning on."""

    def __init__(self, history: History, namespace: str, pool: str, audit: AuditLog | None) -> None:
        self._history, self._namespace, self._pool, self._audit = history, namespace, pool, audit
        self._since = audit.mark() if audit is not None else 0
        self._seen = history.log.last_seq()
        self._gone: dict[str, None] = {}

    def gone(self) -> list[str]:
        """Return the deleted nodes of the test, by what has arrived. Costs nothing if nothing is new."""
        for record in self._history.log.beyond(self._namespace, self._seen):
            self._seen = record.seq
            if record.resource == "nodes" and record.kind == DELETED and label(record.object, POOL) == self._pool:
                self._gone[record.name] = None
        return list(self._gone)

    def accusation(self, unusable: Sequence[str] = ()) -> str:
        """Return, as a sentence, who has deleted the namespace or nodes of the test, or has written to nodes that are
        `unusable`; empty if nobody has. Raises HarnessError if nodes were deleted and no foreign client did it."""
        gone = self.gone()
        if gone:
            found = self._others("nodes", gone, DELETIONS, certain=True)
            what = f"node {gone[0]}{f' and {len(gone) - 1} more' if len(gone) > 1 else ''} of the test was deleted"
        elif found := self._others("namespaces", [self._namespace], DELETIONS):
            what = f"the namespace {self._namespace} of the test was deleted"
        else:
            found = self._others("nodes", unusable, CHANGES) if unusable else []
            what = f"node {unusable[0]} of the test is not usable, and was changed" if unusable else ""
        if strangers := [each for each in found if each.program not in _COMPONENTS]:
            return f'{what} by the client "{strangers[0].agent}" (user {strangers[0].user})'
        if gone:
            who = f'by "{found[0].agent}"' if found else "by an unknown client (the audit log does not have it)"
            raise HarnessError(f"{what} {who}", where=f"pool {self._pool}")
        return ""

    def _others(
        self, plural: str, names: Collection[str], verbs: Collection[str], *, certain: bool = False
    ) -> list[Writer]:
        """Return the clients other than the suite that wrote. The log may be slightly behind the history, which makes a
        write `certain`."""
        audit = self._audit
        if audit is None:
            return []

        def look() -> list[Writer]:
            found = audit.writers(plural, names, verbs, self._since)
            return [each for each in found if not each.agent.startswith(SUITE)]

        until_found: Callable[[Callable[[], list[Writer]]], list[Writer]] = Retrying(
            retry=retry_if_not_result(bool),
            wait=wait_fixed(0.05),
            stop=stop_after_delay(WRITTEN_WITHIN),
            retry_error_callback=lambda state: [],
        )
        return until_found(look) if certain else look()
