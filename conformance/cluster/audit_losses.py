"""Writes that are missing from the audit log, detected in the API server's own log.

An event whose body is not JSON cannot be written to the audit log: up to Kubernetes 1.36, a client can cause this for
its own request with a server-side apply in YAML. The API server reports it in its own log, with the user and the
request. It reports in the same form that it cannot write the file, for example because the disk is full: then no client
is at fault.
"""

from __future__ import annotations

import re
from pathlib import Path

from conformance import regular
from conformance.cluster import users
from conformance.errors import HarnessError

_LOST_WRITE = re.compile(rb' AUDIT: id="[^"]*" .*?method="([a-z]+)" user="([^"\\]+)" .* uri="([^"\\]*)" response="2')
_UNWRITABLE = re.compile(rb" Error in audit plugin 'log' affecting \d+ audit events: write (/[^:]*): (.*)")
READ_BYTES = 1 << 20
"""The number of bytes of one read."""
MAX_LINE_BYTES = 1 << 16
"""The number of bytes of a line that are examined."""


class AuditLosses:
    """The log of an API server, read from its current end on. The log is truncated when the API server restarts."""

    def __init__(self, log: Path) -> None:
        self._log, self._incomplete_line = log, b""
        self._offset = log.stat().st_size if log.exists() else 0
        self._first_loss = ""
        self._failure: HarnessError | None = None

    def first(self) -> str:
        """Return a message about the first lost write of a user who is not a component of the cluster; empty if there
        is none. Raises HarnessError if the API server could not write the file."""
        if self._failure is not None:
            raise self._failure
        try:
            file = regular.OpenFile(self._log)
        except OSError:
            return self._first_loss
        if file.size < self._offset:
            self._offset, self._incomplete_line = 0, b""
        while not self._first_loss and (piece := file.at(self._offset, READ_BYTES)):
            self._offset += len(piece)
            *lines, self._incomplete_line = (self._incomplete_line + piece).split(b"\n")
            self._incomplete_line = self._incomplete_line[-MAX_LINE_BYTES:]
            self._first_loss = next((message for line in lines if (message := self._message(line))), "")
        return self._first_loss

    def _message(self, line: bytes) -> str:
        if match := _UNWRITABLE.search(line[:MAX_LINE_BYTES]):
            path, error = (part.decode("utf-8", "replace") for part in match.groups())
            problem = f"the API server cannot write its audit log: {error}"
            self._failure = HarnessError(problem, where=path, hint="make room, or make it writable")
            raise self._failure
        return _loss_message(line)


def _loss_message(line: bytes) -> str:
    if b" AUDIT: " not in line or (match := _LOST_WRITE.search(line[:MAX_LINE_BYTES])) is None:
        return ""
    verb, user, uri = (part.decode("utf-8", "replace") for part in match.groups())
    if user == users.SUITE or users.is_component(user):
        return ""
    return f"the user {user} has kept a request out of the audit log: {verb} {uri}"
