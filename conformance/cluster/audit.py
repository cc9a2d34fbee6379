"""The API server's audit log: which writes were made, by whom, how often.

The log holds writes only, leases left out (see `settings.audit_policy`); a line appears an instant after the client
has its answer, so count up to a mark that was taken when things were quiet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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


class _User(msgspec.Struct, frozen=True, gc=False):
    username: str = ""


class _Object(msgspec.Struct, frozen=True, gc=False):
    resource: str = ""
    subresource: str = ""
    apiGroup: str = ""  # noqa: N815 - the log's own word


class _Status(msgspec.Struct, frozen=True, gc=False):
    code: int = 0


class _Event(msgspec.Struct, frozen=True, gc=False):
    stage: str
    verb: str
    user: _User = _User()
    userAgent: str = ""  # noqa: N815
    objectRef: _Object = _Object()  # noqa: N815
    responseStatus: _Status = _Status()  # noqa: N815


_EVENT = msgspec.json.Decoder(_Event)


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
        for line in self._lines(since, self.mark() if until is None else until):
            event = _EVENT.decode(line)
            if event.stage != "ResponseComplete":
                continue
            target = event.objectRef
            resource = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
            counts[
                AuditKey(
                    event.verb,
                    target.apiGroup,
                    resource,
                    event.user.username,
                    event.userAgent,
                    event.responseStatus.code,
                )
            ] += 1
        return counts

    def _lines(self, since: int, until: int) -> Iterator[bytes]:
        """Whole lines that begin at or after `since` and before `until`; a line still being written is left out."""
        if until <= since:
            return
        with self._path.open("rb") as log:
            if since:
                log.seek(since - 1)
                log.readline()  # the rest of the line that the mark cut, or just the end of the one before
            while log.tell() < until:
                line = log.readline()
                if not line.endswith(b"\n"):
                    return
                if not line.isspace():
                    yield line
