"""The API server's audit log: which writes were made, by whom, how often.

The log holds writes only, leases left out (see `settings.audit_policy`); a line appears an instant after the client
has its answer, so count up to a mark that was taken when things were quiet.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec


class AuditKey(NamedTuple):
    """One kind of write. `resource` is `pods` or `pods/status`; `group` is empty for the core group."""

    verb: str
    group: str
    resource: str
    user: str
    agent: str
    code: int

    @property
    def program(self) -> str:
        """The program in the user agent: `kube-scheduler` of `kube-scheduler/v1.36.3 (linux/amd64) …`."""
        return self.agent.partition("/")[0]


class Request(NamedTuple):
    """A request: who made it, as `AuditKey.program`, and what came of it; in which namespace (empty: of none) and when
    (seconds since 1970, by the server's clock)."""

    program: str
    code: int
    verb: str = ""
    namespace: str = ""
    at: float = 0.0


class Writer(NamedTuple):
    """Whose write the server agreed to."""

    user: str
    agent: str

    @property
    def program(self) -> str:
        """As `AuditKey.program`."""
        return self.agent.partition("/")[0]


class _User(msgspec.Struct, frozen=True, gc=False):
    username: str = ""


class _Object(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    resource: str = ""
    subresource: str = ""
    apiGroup: str = ""  # noqa: N815 - the log's own word

    @property
    def path(self) -> str:
        """`pods` or `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class _Status(msgspec.Struct, frozen=True, gc=False):
    code: int = 0


class _Event(msgspec.Struct, frozen=True, gc=False):
    stage: str
    verb: str
    user: _User = _User()
    userAgent: str = ""  # noqa: N815
    objectRef: _Object = _Object()  # noqa: N815
    responseStatus: _Status = _Status()  # noqa: N815
    stageTimestamp: datetime = datetime.fromtimestamp(0, UTC)  # noqa: N815

    @property
    def request(self) -> Request:
        program, _, _ = self.userAgent.partition("/")
        at = self.stageTimestamp.timestamp()
        return Request(program, self.responseStatus.code, self.verb, self.objectRef.namespace, at)


_EVENT = msgspec.json.Decoder(_Event)


READS = ("get", "list", "watch")


class AuditTail:
    """Reads a log that grows, from where it ends now. Watches are left out: clients renew them by the clock."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, AuditLog(path).mark()

    def poll(self) -> list[Request]:
        """The requests that were answered since the last call."""
        requests: list[Request] = []
        for line, end in _whole_lines(self._path, self._at):
            self._at = end
            event = _EVENT.decode(line)
            if event.verb != "watch":
                requests.append(event.request)
        return requests


class AuditLog:
    """The log at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> int:
        """The present end of the log, in bytes, to count from or to."""
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def count(self, since: int = 0, until: int | None = None) -> Counter[AuditKey]:
        """Finished writes between two marks, whether the server agreed to them or not (see the code)."""
        counts: Counter[AuditKey] = Counter()
        for event in self._finished(since, until):
            counts[
                AuditKey(
                    event.verb,
                    event.objectRef.apiGroup,
                    event.objectRef.path,
                    event.user.username,
                    event.userAgent,
                    event.responseStatus.code,
                )
            ] += 1
        return counts

    def refused(self, namespace: str, since: int = 0) -> Counter[str]:
        """Writes in a namespace that were forbidden or invalid since a mark, by verb and resource: the same request
        would be refused again."""
        return Counter(
            f"{event.verb} {event.objectRef.path}"
            for event in self._finished(since)
            if event.objectRef.namespace == namespace and event.responseStatus.code in (403, 422)
        )

    def writers(self, plural: str, names: Collection[str], verbs: Collection[str], since: int = 0) -> list[Writer]:
        """Who has written, since a mark, to cluster-scoped objects of these names, or to a whole collection of them."""
        return [
            Writer(event.user.username, event.userAgent)
            for event in self._finished(since)
            if event.objectRef.resource == plural
            and event.verb in verbs
            and (event.objectRef.name in names or not event.objectRef.name)
            and event.responseStatus.code < 300
        ]

    def _finished(self, since: int, until: int | None = None) -> Iterator[_Event]:
        until = self.mark() if until is None else until
        for line, end in _whole_lines(self._path, since):
            if end - len(line) >= until:
                return
            event = _EVENT.decode(line)
            if event.stage == "ResponseComplete" and event.verb not in READS:
                yield event


def _whole_lines(path: Path, since: int) -> Iterator[tuple[bytes, int]]:
    """Whole lines that begin at or after `since`, each with the offset of its end; a line still being written is left
    out. `since` may lie within a line: the server's writes are not atomic to those who ask for the file's size."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as log:
        if since:
            log.seek(since - 1)
            log.readline()  # the rest of the line that the mark cut, or just the end of the one before
        for line in iter(log.readline, b""):
            if not line.endswith(b"\n"):
                return
            if not line.isspace():
                yield line, log.tell()
