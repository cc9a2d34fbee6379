"""Find out whether the cluster has rejected objects that a scene needs, for a reason that the scene has not caused.

If there is an audit log, it contains the API server's responses. Otherwise, the operator reports them in Events and in
the statuses of its objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from conformance.cluster.audit import AuditLog
from conformance.grove import refusals
from conformance.grove.fields import name
from conformance.history.query import History

_MESSAGE_FIELDS = ("message", "note", "description")
"""Fields that contain messages: in conditions, Events and lastErrors."""


class Refused:
    """The rejections of a cluster in one namespace. `hooks`: the cluster's own webhooks and policies; `acts`: the
    requests of the test."""

    def __init__(
        self,
        history: History,
        namespace: str,
        audit: AuditLog | None,
        hooks: Collection[str],
        acts: Sequence[tuple[str, Mapping[str, object]]],
        has_limit_range: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_limit_range`: returns whether the namespace has a LimitRange."""
        self._has_limit_range = has_limit_range
        self._history, self._namespace, self._audit, self._hooks, self._acts = history, namespace, audit, hooks, acts
        self._audit_mark = audit.mark() if audit is not None else 0

    def by_cluster(self, answer: str) -> bool:
        """Return whether a response of the API server is a rejection that the cluster itself has caused."""
        created = {word for verb, obj in self._acts if verb == "create" for word in (name(obj), str(obj.get("kind")))}
        if refusals.by_default_limits(answer):
            return "LimitRange" not in created and self._has_limit_range()
        return refusals.by_cluster(answer, created, self._hooks, quoted=self._audit is None)

    def words(self) -> str:
        """Return the message of such a rejection; empty if there was none."""
        messages = (
            self._audit.refused_creation_messages(self._namespace, self._audit_mark)
            if self._audit
            else self._reported_messages()
        )
        return next((" ".join(message.split()) for message in messages if self.by_cluster(message)), "")

    def _reported_messages(self) -> Iterator[str]:
        for record in self._history.records():
            yield from _messages(record.object)


def _messages(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in _MESSAGE_FIELDS and isinstance(item, str):
                yield item
            else:
                yield from _messages(item)
    elif isinstance(value, list):
        for item in value:
            yield from _messages(item)
